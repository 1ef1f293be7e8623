// The body of POST /v1/check: JSON text -> one charge, or a request for the rules, or an error that names the member.
//
//   {"key":"job:7","limit":"10/s burst 50","algorithm":"token_bucket","cost":1}
//   {"user":"42","path":"/api/search","ip":"192.0.2.1","headers":{"x-org":"acme"}}
//
// A limit of its own needs a key; without both, the rules decide by what is known of the request. Strict on purpose: an
// unknown or repeated member is an error, because a misspelt "cost" that is ignored would be a limit that does not
// hold. Read as a stream of events, without a tree. Pure; any thread. Tested by check_json_test.cc.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/quota.h"
#include "weir/request.h"
#include "weir/result.h"

namespace weir {

inline constexpr std::size_t kJsonAttributesMax = 256;  // headers, and entries

struct CheckRequest {
  std::string key;
  std::string limit;      // as it was written
  Quota quota;            // and what it means
  std::int64_t cost = 1;  // 0 peeks, negative gives back
};

// What the rules are asked with. The texts are here, a Request looks at them.
struct RuleCheck {
  using Pairs = std::vector<std::pair<std::string, std::string>>;
  std::string user, api_key, ip, tenant, plan, method, host, path;
  Pairs headers, entries;
  std::int64_t cost = 1;

  // Views of this and of `attributes`, which both must outlive it.
  Request request(std::vector<Attribute>& attributes) const;
};

struct CheckBody {
  std::optional<CheckRequest> charge;  // with a limit of its own; else by the rules
  RuleCheck by_rules;
};

Result<CheckBody> parse_check(std::string_view body);

}  // namespace weir
