// Three commands that charge a token bucket: parses their arguments, and turns a decision into their five integers.
//
//   CL.THROTTLE key max_burst count period [quantity]              redis-cell's: max_burst + 1 permits at once
//   GCRA key max-burst tokens-per-period period [TOKENS n]         Redis's own: the same, its period a decimal
//   THROTTLE key max_burst count period [quantity]                 throttlecrab's: max_burst permits at once
//
// A negative quantity is an error, because any client that may charge a limit could otherwise refund it for all
// clients. WEIR.LIMIT refunds. Errors start with the original wording, so clients that match on it keep working.
// Pure; any thread may call it. Tested by throttle_test.cc and, with time, by resp_limit_commands_test.cc.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "weir/quota.h"
#include "weir/result.h"
#include "weir/verdict.h"

namespace weir::protocol {

struct Throttle {
  std::string_view key;  // points into the arguments
  Quota quota;
  std::int64_t cost = 1;  // 0 peeks
};

// `args` does not include the command's name. For GCRA and THROTTLE the caller has checked the number of arguments.
Result<Throttle> parse_cell_throttle(std::span<const std::string_view> args);
Result<Throttle> parse_gcra(std::span<const std::string_view> args);
Result<Throttle> parse_crab_throttle(std::span<const std::string_view> args);

// parse_quantity()
//
// Parses only the last argument, for a caller that knows the bucket already. Returns nothing if it is no valid cost.
std::optional<std::int64_t> parse_long_quantity(std::string_view text);
inline std::optional<std::int64_t> parse_quantity(std::string_view text) {
  if (text.size() == 1 && text[0] >= '0' && text[0] <= '9') return text[0] - '0';
  return parse_long_quantity(text);
}

// The reply of CL.THROTTLE and GCRA: 0 allowed or 1 limited; limit; remaining; seconds to retry (-1 if allowed or
// never); seconds until full.
std::array<std::int64_t, 5> cell_reply(const Decision& decision);
// The reply of THROTTLE: 1 allowed or 0 limited; limit; remaining; seconds until full; seconds to retry (0 if
// allowed, -1 if never).
std::array<std::int64_t, 5> crab_reply(const Decision& decision);

}  // namespace weir::protocol
