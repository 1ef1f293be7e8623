// The difference between calendar and table time on this thread, after the wall clock was corrected.
//
// A table's time starts at the wall clock and then runs evenly, so periods in seconds never move. If the wall clock
// was wrong at that moment, calendar days would stay wrong. So calendar windows follow the wall clock, through a
// correction that is passed beside the time:
//   - The calendar was behind: windows follow the corrected clock at once. A key that has used part of a window keeps
//     that usage until the window ends as announced.
//   - The calendar was ahead: the current window ends as announced. The next window begins there and ends with the day
//     (week, month) after the true one. So no day begins twice, whichever keys are known.
// Each thread has its own correction, in effect while the object lives. Tested by calendar_shift_test.cc.
#pragma once

#include <cstdint>

namespace weir::algorithm {

// In whole seconds, because calendars change at whole seconds.
struct CalendarShift {
  std::int64_t before_us = 0;  // wall clock - time, before the last correction
  std::int64_t now_us = 0;     // the same, since the last correction
  std::int64_t since_us = 0;   // the time of that correction
  friend bool operator==(const CalendarShift&, const CalendarShift&) = default;
};

class ShiftedCalendar {
 public:
  explicit ShiftedCalendar(const CalendarShift& shift) : outer_(here()) { here() = shift; }
  ~ShiftedCalendar() { here() = outer_; }
  ShiftedCalendar(const ShiftedCalendar&) = delete;
  ShiftedCalendar& operator=(const ShiftedCalendar&) = delete;

  static CalendarShift& here() {
    thread_local CalendarShift shift;
    return shift;
  }

 private:
  const CalendarShift outer_;
};

}  // namespace weir::algorithm
