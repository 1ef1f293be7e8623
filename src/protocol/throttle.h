// CL.THROTTLE, the command of redis-cell: its arguments -> values, a decision -> its five integers.
//
// `CL.THROTTLE key max_burst count period [quantity]` is a token bucket of max_burst + 1 that refills `count`
// each `period` seconds. Errors are worded as redis-cell words them, so that what matches on them still
// does. Pure; any thread. Tested by throttle_test.cc and, with time, by server/resp_session_test.cc.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "weir/quota.h"
#include "weir/result.h"
#include "weir/verdict.h"

namespace weir {

struct Throttle {
  std::string_view key;  // points into the arguments
  Quota quota;
  std::int64_t cost = 1;  // 0 peeks, negative gives back
};

// `args` come without the command's name.
Result<Throttle> parse_throttle(std::span<const std::string_view> args);

// 0 allowed or 1 limited; limit; remaining; seconds to retry, -1 when allowed and when never; seconds to full.
std::array<std::int64_t, 5> throttle_reply(const Decision& decision);

}  // namespace weir
