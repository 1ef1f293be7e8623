// Fuzzes the parser of time zone files: a file is refused, or gives a zone whose calendar windows are in order.
//
// The bytes are also parsed as the rule in the last line of a file, which the fuzzer would seldom reach otherwise.
#include <algorithm>
#include <cstdint>
#include <string_view>

#include "algorithm/calendar.h"
#include "algorithm/tzif.h"
#include "fuzz.h"

void fuzz(std::string_view bytes) {
  using namespace weir;
  static_cast<void>(algorithm::parse_zone_rule(bytes));
  const auto zone = algorithm::parse_tzif(bytes);
  if (!zone) return;
  for (const std::int64_t at : {INT64_MIN, INT64_MAX}) WEIR_ASSERT(zone->stretch_at(at).offset_s < 93'600);
  for (const CalendarUnit unit : {CalendarUnit::day, CalendarUnit::week, CalendarUnit::month, CalendarUnit::year}) {
    const algorithm::Calendar calendar(unit, "Fuzz/Zone", *zone);
    for (const std::int64_t now : {std::int64_t{0}, std::int64_t{1'721'000'000'000'000}, kTimeEnd - 1}) {
      const algorithm::Window window = calendar.window_at(now);
      WEIR_ASSERT(window.start_us <= now);
      WEIR_ASSERT(now < window.end_us);
      WEIR_ASSERT(window.end_us < window.next_end_us);
      WEIR_ASSERT(calendar.window_at(std::max<std::int64_t>(0, window.start_us)) == window);
    }
  }
}
