// The body of POST /v1/check: JSON text -> the values of one charge, or an error that names the member.
//
//   {"key":"job:7","limit":"10/s burst 50","algorithm":"token_bucket","cost":1}
//
// `algorithm` and `cost` may be left out. Strict on purpose: an unknown or repeated member is an error, because
// a misspelt "cost" that is ignored would be a limit that does not hold. Read as a stream of events, without
// a tree: no depth, no memory but for the texts. Pure; any thread. Tested by check_json_test.cc.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "weir/quota.h"
#include "weir/result.h"

namespace weir {

struct CheckRequest {
  std::string key;
  std::string limit;      // as it was written
  Quota quota;            // and what it means
  std::int64_t cost = 1;  // 0 peeks, negative gives back
};

Result<CheckRequest> parse_check(std::string_view body);

}  // namespace weir
