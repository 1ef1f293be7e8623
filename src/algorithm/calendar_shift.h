// How far the calendar is ahead of the time that this thread decides by, where the wall clock was corrected.
//
// A table's time begins with the wall clock and then runs evenly, so that periods in seconds never move. If the wall
// clock was wrong then, the days of a calendar would be wrong for as long. So windows of a calendar follow the wall
// clock, by a correction that is given beside the time:
//   - The calendar was behind: windows are those of the corrected clock at once. A key that has used some of a window
//     keeps that until the window ends as it was told.
//   - The calendar was ahead: the window that is on stays until it would have ended. The next one begins then, and
//   lasts
//     until the day (week, month) ends that follows the true one. So no day is begun twice, whichever keys are known.
// Each thread has its own; it holds while the object lives. Tested by calendar_shift_test.cc.
#pragma once

#include <cstdint>

namespace weir {

// Whole seconds, as calendars change at those.
struct CalendarShift {
  std::int64_t before_us = 0;  // wall clock - time, before the last correction
  std::int64_t now_us = 0;     // and since
  std::int64_t since_us = 0;   // when that was
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

}  // namespace weir
