// Three commands that are a token bucket: their arguments -> values, a decision -> their five integers.
//
//   CL.THROTTLE key max_burst count period [quantity]              redis-cell's: max_burst + 1 permits at once
//   GCRA key max-burst tokens-per-period period [TOKENS n]         Redis's own: the same, its period a decimal
//   THROTTLE key max_burst count period [quantity]                 throttlecrab's: max_burst permits at once
//
// A negative quantity is an error: a client that charges a limit could refund it for all. WEIR.LIMIT refunds. Errors
// begin as the originals word them, so that what matches on them still does. Pure; any thread. Tested by
// throttle_test.cc and, with time, by server/resp_session_test.cc.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "weir/quota.h"
#include "weir/result.h"
#include "weir/verdict.h"

namespace weir {

struct Throttle {
  std::string_view key;  // points into the arguments
  Quota quota;
  std::int64_t cost = 1;  // 0 peeks
};

// `args` come without the command's name. Those of GCRA and THROTTLE have been counted.
Result<Throttle> parse_cell_throttle(std::span<const std::string_view> args);
Result<Throttle> parse_gcra(std::span<const std::string_view> args);
Result<Throttle> parse_crab_throttle(std::span<const std::string_view> args);

// parse_quantity()
//
// The last argument alone, for whoever knows the bucket already; nothing if it is no cost that a bucket takes.
std::optional<std::int64_t> parse_long_quantity(std::string_view text);
inline std::optional<std::int64_t> parse_quantity(std::string_view text) {
  if (text.size() == 1 && text[0] >= '0' && text[0] <= '9') return text[0] - '0';
  return parse_long_quantity(text);
}

// Of CL.THROTTLE and GCRA: 0 allowed or 1 limited; limit; remaining; seconds to retry, -1 when allowed and when never;
// seconds to full.
std::array<std::int64_t, 5> cell_reply(const Decision& decision);
// Of THROTTLE: 1 allowed or 0 limited; limit; remaining; seconds to full; seconds to retry, 0 when allowed, -1 if
// never.
std::array<std::int64_t, 5> crab_reply(const Decision& decision);

}  // namespace weir
