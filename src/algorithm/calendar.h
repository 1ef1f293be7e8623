// Calendar windows: days, weeks from Monday, months and years in a time zone.
//
// A window begins when the local clock first reaches its midnight. So if daylight saving skips a midnight, the day
// begins late. A midnight that occurs twice begins its day once. A clock set back across midnight does not return to
// yesterday's window. A day that a zone left out (Samoa, 2011-12-30) has no window. A Calendar is immutable: any
// thread may use it. Tested by calendar_test.cc.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "algorithm/tzif.h"
#include "weir/quota.h"

namespace weir::algorithm {

// [start_us, end_us), and the end of the next window. Near the epoch a start may be negative: Berlin's 1970 began an
// hour before it.
struct Window {
  std::int64_t start_us = 0;
  std::int64_t end_us = 0;
  std::int64_t next_end_us = 0;
  friend bool operator==(const Window&, const Window&) = default;
};

class Calendar {
 public:
  // The default Zone is UTC.
  Calendar(CalendarUnit unit, std::string zone_name, Zone zone)
      : unit_(unit), zone_name_(std::move(zone_name)), zone_(std::move(zone)), tag_(make_tag(unit_, zone_name_)) {}

  CalendarUnit unit() const { return unit_; }
  const std::string& zone_name() const { return zone_name_; }
  // Unit and zone identify a calendar, whichever version of the zone's file it was made from.
  friend bool operator==(const Calendar& a, const Calendar& b) {
    return a.unit_ == b.unit_ && a.zone_name_ == b.zone_name_;
  }

  // For now in [0, 2^52), by the calendar's clock: see calendar_shift.h.
  Window window_at(std::int64_t now_us) const;

  // tag()
  //
  // A number in [1, 2^31) that identifies unit and zone in a stored state. The same in every build and on every
  // machine.
  std::int64_t tag() const { return tag_; }

 private:
  static std::int64_t make_tag(CalendarUnit unit, std::string_view zone_name);

  CalendarUnit unit_;
  std::string zone_name_;
  Zone zone_;
  std::int64_t tag_;
};

std::string_view to_string(CalendarUnit unit);

// Whether a text can be a zone name: Europe/Berlin, Etc/GMT+5. Appended to a folder, such a name stays inside it.
bool is_zone_name(std::string_view name);

}  // namespace weir::algorithm
