// Computes calendar windows from civil dates and a zone's offsets. Any thread.
//
// Everything rests on begin_of(): the first second at which the local clock shows a given midnight or a later time.
// However the clock changes, a later midnight never gives an earlier second. So windows never overlap and leave no gap.
#include "algorithm/calendar.h"

#include <algorithm>
#include <chrono>
#include <iterator>

#include "base/fnv.h"
#include "weir/clock.h"

namespace weir::algorithm {
namespace {

using std::chrono::days;
using std::chrono::sys_days;
using std::chrono::year_month_day;

constexpr std::int64_t kSecond_us = 1'000'000;

// The first day of the unit that contains this day.
sys_days first_day(CalendarUnit unit, sys_days day) {
  const year_month_day date{day};
  switch (unit) {
    case CalendarUnit::day:
      return day;
    case CalendarUnit::week:
      return day - (std::chrono::weekday{day} - std::chrono::Monday);
    case CalendarUnit::month:
      return sys_days{date.year() / date.month() / 1};
    case CalendarUnit::year:
      return sys_days{date.year() / std::chrono::January / 1};
  }
  return day;
}

// The longest unit, counted from a first day, always ends in the next one.
sys_days next_first_day(CalendarUnit unit, sys_days first) {
  constexpr days kLongest[] = {days{1}, days{7}, days{31}, days{366}};  // in the order of CalendarUnit
  const auto place = static_cast<std::size_t>(unit);
  return first_day(unit, first + (place < std::size(kLongest) ? kLongest[place] : days{1}));
}

// The first UTC second at which the local clock shows this midnight or a later time. The search starts 26 hours
// earlier, because no zone is further ahead of UTC.
std::int64_t begin_of(const Zone& zone, sys_days local_day) {
  const std::int64_t midnight = local_day.time_since_epoch().count() * kDay_s;
  std::int64_t at = midnight - 26 * 3600;
  while (true) {
    const Zone::Stretch stretch = zone.stretch_at(at);
    const std::int64_t reached = std::max(at, midnight - stretch.offset_s);
    if (reached < stretch.end_s) return reached;
    at = stretch.end_s;
  }
}

Window window_of(CalendarUnit unit, const Zone& zone, std::int64_t now_us) {
  const std::int64_t now = now_us / kSecond_us;
  const std::int64_t local = now + zone.offset_at(now);
  sys_days first = first_day(unit, std::chrono::floor<days>(std::chrono::sys_seconds{std::chrono::seconds{local}}));
  sys_days next = next_first_day(unit, first);
  std::int64_t end = begin_of(zone, next);
  while (end <= now) {  // the clock passed it and was set back, or a day was left out
    first = next;
    next = next_first_day(unit, next);
    end = begin_of(zone, next);
  }
  std::int64_t next_end = end;
  while (next_end == end) {
    next = next_first_day(unit, next);
    next_end = begin_of(zone, next);
  }
  return {begin_of(zone, first) * kSecond_us, end * kSecond_us, next_end * kSecond_us};
}

}  // namespace

Window Calendar::window_at(std::int64_t now_us) const { return window_of(unit_, zone_, now_us); }

std::int64_t Calendar::make_tag(CalendarUnit unit, std::string_view zone_name) {
  const char unit_byte = static_cast<char>(unit);
  const std::uint64_t hash = base::fnv1a_64(zone_name, base::fnv1a_64({&unit_byte, 1}));
  return 1 + static_cast<std::int64_t>(hash % ((std::uint64_t{1} << 31) - 1));
}

std::string_view to_string(CalendarUnit unit) {
  constexpr std::string_view kNames[] = {"day", "week", "month", "year"};  // in the order of CalendarUnit
  const auto place = static_cast<std::size_t>(unit);
  return place < std::size(kNames) ? kNames[place] : "?";
}

bool is_zone_name(std::string_view name) {
  if (name.empty() || name.size() > 64 || name.front() == '/' || name.back() == '/') return false;
  if (name.find("//") != std::string_view::npos) return false;
  return std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '+' ||
           c == '-' || c == '/';
  });
}

}  // namespace weir::algorithm
