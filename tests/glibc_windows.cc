// See glibc_windows.h. A window is known by its first day; days are counted from 1970-01-01 by std::chrono, whose civil
// calendar knows no zones, so that zones come from glibc alone.
#include "glibc_windows.h"

#include <chrono>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

namespace weir::oracle {
namespace {

using std::chrono::days;
using std::chrono::months;
using std::chrono::sys_days;
using std::chrono::weekday;
using std::chrono::year_month_day;
using std::chrono::years;

constexpr std::int64_t kSecond = 1'000'000;
constexpr std::int64_t kDaySeconds = 86'400;

// Sets TZ while this object exists.
class ZoneInForce {
 public:
  explicit ZoneInForce(const std::string& zone) {
    if (const char* old = std::getenv("TZ")) old_ = old;
    setenv("TZ", (":" + zone).c_str(), 1);
    tzset();
  }
  ~ZoneInForce() {
    if (old_) {
      setenv("TZ", old_->c_str(), 1);
    } else {
      unsetenv("TZ");
    }
    tzset();
  }
  ZoneInForce(const ZoneInForce&) = delete;
  ZoneInForce& operator=(const ZoneInForce&) = delete;

 private:
  std::optional<std::string> old_;
};

// What the local clock shows at `seconds`, itself as seconds since the epoch.
std::int64_t local_clock(std::int64_t seconds) {
  const std::time_t time = seconds;
  std::tm tm{};
  localtime_r(&time, &tm);
  return seconds + tm.tm_gmtoff;
}

sys_days first_day(CalendarUnit unit, sys_days day) {
  const year_month_day date{day};
  switch (unit) {
    case CalendarUnit::day:
      return day;
    case CalendarUnit::week:
      return day - (weekday{day} - std::chrono::Monday);
    case CalendarUnit::month:
      return date.year() / date.month() / 1;
    case CalendarUnit::year:
      return date.year() / 1 / 1;
  }
  return day;
}

sys_days next_first_day(CalendarUnit unit, sys_days first) {
  const year_month_day date{first};
  switch (unit) {
    case CalendarUnit::day:
      return first + days{1};
    case CalendarUnit::week:
      return first + days{7};
    case CalendarUnit::month:
      return date + months{1};
    case CalendarUnit::year:
      return date + years{1};
  }
  return first;
}

// The first second at which the local clock shows this midnight, or has jumped over it. Minute by minute, since a clock
// that is set back just after midnight reaches it twice; then second by second. No zone was ever 16 hours ahead of UTC.
std::int64_t reached_at(sys_days day) {
  const std::int64_t midnight = day.time_since_epoch().count() * kDaySeconds;
  std::int64_t at = midnight - 16 * 3'600;
  while (local_clock(at) < midnight) at += 60;
  at -= 60;
  while (local_clock(at) < midnight) ++at;
  return at * kSecond;
}

Window window_at(CalendarUnit unit, std::int64_t now) {
  const std::int64_t shown = local_clock(now / kSecond);
  const std::int64_t shown_day = (shown >= 0 ? shown : shown - kDaySeconds + 1) / kDaySeconds;
  sys_days day = first_day(unit, sys_days{days{shown_day}});
  const auto next_reached_at = [&] { return reached_at(day = next_first_day(unit, day)); };

  // A clock that was set back over midnight shows yesterday, but this midnight was reached already: hence the first
  // loop. A day that the calendar skips begins and ends at one moment, and no time lies in it: hence the second.
  Window window{reached_at(day), next_reached_at(), 0};
  while (window.end <= now) window = {window.end, next_reached_at(), 0};
  window.next_end = next_reached_at();
  while (window.next_end <= window.end) window.next_end = next_reached_at();
  return window;
}

}  // namespace

Result<WindowsAt> glibc_windows(const CalendarPeriod& period) {
  // glibc silently uses UTC for an unknown zone.
  const std::string file = "/usr/share/zoneinfo/" + period.zone;
  if (!std::filesystem::is_regular_file(file)) {
    return fail(ErrorCode::not_found, "no time zone \"" + period.zone + "\" (looked for " + file + ")");
  }
  const auto known = std::make_shared<std::map<std::int64_t, Window>>();  // by end
  return WindowsAt([period, known](std::int64_t now) {
    const auto found = known->upper_bound(now);
    if (found != known->end() && found->second.start <= now) return found->second;
    const ZoneInForce zone(period.zone);
    const Window window = window_at(period.unit, now);
    known->emplace(window.end, window);
    return window;
  });
}

}  // namespace weir::oracle
