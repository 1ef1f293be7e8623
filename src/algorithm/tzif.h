// Time zones: parses a TZif file (RFC 9636, versions 1 to 4) into offsets from UTC.
//
// The bytes are untrusted, so every count and index is checked before use. Nothing here opens a file; compile.cc
// does. A Zone is immutable: any thread may use it. Tested by tzif_test.cc, which compares every zone of the machine
// with the C library, and by fuzz/tzif.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <vector>

#include "weir/result.h"

namespace weir::algorithm {

inline constexpr std::int64_t kDay_s = 86'400;  // except where a zone makes it longer or shorter
inline constexpr std::size_t kZoneBytesMax = std::size_t{1} << 20;

// The yearly clock changes, as the last line of a TZif file describes them: `CET-1CEST,M3.5.0,M10.5.0/3`.
struct ZoneRule {
  struct Day {
    enum class Kind : std::uint8_t { month_week_day, day_without_leap, day_of_year };
    Kind kind = Kind::day_of_year;
    int month = 1, week = 1;         // month_week_day: week 5 is the last one
    int day = 0;                     // a weekday from Sunday, 1..365 or 0..365
    std::int32_t time_s = 2 * 3600;  // by the local clock before the change; may reach into other days
    friend bool operator==(const Day&, const Day&) = default;
  };
  std::int32_t standard_s = 0;  // local time minus UTC: Berlin has +3600
  bool has_daylight = false;
  std::int32_t daylight_s = 0;
  Day begin, end;  // of daylight saving
  friend bool operator==(const ZoneRule&, const ZoneRule&) = default;
};

// parse_zone_rule()
//
// Parses a POSIX TZ string with the extensions of RFC 9636: hours of -167 to 167, daylight saving of any sign, all
// year round.
Result<ZoneRule> parse_zone_rule(std::string_view text);

struct Zone {
  struct Transition {
    std::int64_t at_s = 0;  // from this UTC second on ...
    std::int32_t offset_s = 0;
    friend bool operator==(const Transition&, const Transition&) = default;
  };
  // A span of time with one offset.
  struct Stretch {
    std::int32_t offset_s = 0;
    std::int64_t end_s = std::numeric_limits<std::int64_t>::max();  // the first second that may have another offset
  };

  std::int32_t first_offset_s = 0;      // before the first transition
  std::vector<Transition> transitions;  // strictly ascending; includes the rule's up to year 2120
  std::optional<ZoneRule> rule;         // for all time after the last transition

  Stretch stretch_at(std::int64_t utc_s) const;
  std::int64_t offset_at(std::int64_t utc_s) const { return stretch_at(utc_s).offset_s; }
};

// parse_tzif()
//
// Refuses data that is not TZif, is truncated or contradicts itself. Also refuses files with leap seconds
// (`right/...`), because the system's clock does not count them.
Result<Zone> parse_tzif(std::string_view bytes);

}  // namespace weir::algorithm
