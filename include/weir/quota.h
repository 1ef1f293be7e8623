// A quota is a limit as text: `100/minute`, `10/s burst 50`, `20 concurrent`.
//
//   auto quota = weir::parse_quota("10/s burst 50");          // a token bucket: only buckets burst
//   auto login = weir::parse_quota("5/5min", weir::Algorithm::sliding_log);
//   auto limit = weir::compile(*login);                       // checked once, then only integers
//
// The grammar. Every part of Weir that reads a quota uses it:
//
//   quota    = permits "/" [count] unit ["burst" permits]     100/minute  5/5min  10/s burst 50
//            | permits "/" "calendar_" day|week|month|year [zone]   100/calendar_month Europe/Berlin
//            | permits "concurrent" ["for" [count] unit]      20 concurrent for 5min
//   unit     = us | ms | s | min | h | day | week | month (30 days) | year (365 days), and their long forms
//
// If no algorithm is named, the text decides: `burst` means token_bucket, `calendar_` means fixed_window,
// `concurrent` means concurrency, anything else sliding_window. Pure; any thread. Tested by quota_test.cc.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "weir/clock.h"
#include "weir/result.h"

namespace weir {

enum class Algorithm : std::uint8_t {
  fixed_window,
  sliding_log,
  sliding_window,
  token_bucket,
  leaky_bucket,
  leaky_meter,
  concurrency,
};
inline constexpr Algorithm kAlgorithms[] = {Algorithm::fixed_window, Algorithm::sliding_log,  Algorithm::sliding_window,
                                            Algorithm::token_bucket, Algorithm::leaky_bucket, Algorithm::leaky_meter,
                                            Algorithm::concurrency};

std::string_view to_string(Algorithm algorithm);
Result<Algorithm> parse_algorithm(std::string_view name);

enum class CalendarUnit : std::uint8_t { day, week, month, year };

struct CalendarPeriod {
  CalendarUnit unit = CalendarUnit::day;
  std::string zone = "UTC";  // an IANA name
  friend bool operator==(const CalendarPeriod&, const CalendarPeriod&) = default;
};

inline constexpr std::int64_t kPermitsMax = std::int64_t{1} << 40;
inline constexpr Micros kPeriodMin{1'000};
inline constexpr Micros kPeriodMax{315'576'000'000'000};  // 10 years of 365.25 days
inline constexpr Micros kHoldDefault{60'000'000};         // of `20 concurrent` without a time
inline constexpr std::int64_t kConcurrentMax = 10'000;    // an acquire scans every permit in flight

struct Quota {
  Algorithm algorithm = Algorithm::sliding_window;
  std::int64_t permits = 0;
  Micros period{0};                          // concurrency: how long an unreleased permit lasts; calendar: 0
  std::optional<CalendarPeriod> calendar{};  // fixed_window only
  std::optional<std::int64_t> burst{};       // buckets only; without it, the permits of one period
  friend bool operator==(const Quota&, const Quota&) = default;
};

// parse_quota()
//
// If `algorithm` is given, the text must suit it: a fixed window has no burst. Errors name the column and the nearest
// valid form.
Result<Quota> parse_quota(std::string_view text, std::optional<Algorithm> algorithm = {});

// to_string()
//
// The shortest text that parses to the same quota, given its algorithm.
std::string to_string(const Quota& quota);

}  // namespace weir
