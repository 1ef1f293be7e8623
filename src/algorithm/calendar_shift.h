// The clock that calendar windows read: the table's time, plus how far the wall clock is ahead of it.
//
// A table's time starts at the wall clock and then runs evenly, so periods in seconds never move. If the wall clock
// was wrong at that moment, calendar days would stay wrong. So calendars have a clock of their own, which follows the
// wall clock. The state of a window has its end by that clock, which identifies the day (week, month, year) whatever
// the corrections. After a correction
//   - backward: the clock stands still until the true time reaches what it has shown. So no day begins twice. If it
//     was ahead by more than a window, it stands still only until the true window ends.
//   - forward: new keys get the true window at once. A key that has used part of a window keeps that usage until the
//     window ends as announced or the true window ends, whichever is earlier.
// Each thread has its own correction, in effect while the object lives. Tested by calendar_shift_test.cc.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "algorithm/calendar.h"

namespace weir::algorithm {

// All in microseconds, and the differences in whole seconds, because calendars change at whole seconds. All zero:
// never corrected. A table stores the members in this order.
struct CalendarShift {
  // The clock has shown `floor_us`, and was then set back to `mark_us`.
  struct Hold {
    std::int64_t floor_us = 0, mark_us = 0;
    friend bool operator==(const Hold&, const Hold&) = default;
  };
  // The clock was set forward over this time, which thus never passed.
  struct Skipped {
    std::int64_t from_us = 0, to_us = 0;
    friend bool operator==(const Skipped&, const Skipped&) = default;
  };
  // The clock was set forward, when the wall clock had been `behind_us` ahead of the table's time.
  struct Jump {
    std::int64_t from_us = 0, to_us = 0, behind_us = 0;
    friend bool operator==(const Jump&, const Jump&) = default;
  };

  std::int64_t now_us = 0;           // wall clock - time, since the last correction
  std::int64_t since_us = 0;         // the time of that correction
  Hold near{};                       // set back by less than any window
  Hold far{};                        // set back by more
  Skipped skipped{};                 // after that, on the way to far.floor_us
  std::int64_t before_us = 0;        // now_us, before the last correction
  std::int64_t before_since_us = 0;  // since_us, before it
  std::int64_t before_floor_us = 0;  // near.floor_us, before it; kTimeEnd if there was a far.floor_us
  std::array<Jump, 3> jumps{};       // those that may still be in effect for some window
  friend bool operator==(const CalendarShift&, const CalendarShift&) = default;
};
inline constexpr std::size_t kCalendarShiftWords = sizeof(CalendarShift) / sizeof(std::int64_t);

// corrected()
//
// The wall clock is now `now_us` ahead of `time_us`. `last_us` is the latest time at which the clock before was read:
// the same, except after a boot.
CalendarShift corrected(const CalendarShift& before, std::int64_t now_us, std::int64_t time_us, std::int64_t last_us);

class ShiftedCalendar {
 public:
  explicit ShiftedCalendar(const std::optional<CalendarShift>& shift) : outer_(here()) {
    here() = shift && shift->since_us != 0 ? &shift_.emplace(*shift) : nullptr;
  }
  ~ShiftedCalendar() { here() = outer_; }
  ShiftedCalendar(const ShiftedCalendar&) = delete;
  ShiftedCalendar& operator=(const ShiftedCalendar&) = delete;

  // This thread's correction; null if there is none.
  static const CalendarShift*& here() {
    thread_local const CalendarShift* shift = nullptr;
    return shift;
  }

 private:
  std::optional<CalendarShift> shift_;
  const CalendarShift* const outer_;
};

// shown_by()
//
// What a calendar's clock shows at this time.
std::int64_t shown_by(const Calendar& calendar, std::int64_t time_us);

// end_by()
//
// The time at which a window ends, given its end by the calendar's clock; a time until `time_us` if it has ended.
std::int64_t end_by(const Calendar& calendar, std::int64_t end_us, std::int64_t time_us);

// charged_window_end()
//
// The end, by the calendar's clock, of the window in which a charge was made at a time before `time_us`. 0 if that
// window is over, or if the corrections since then leave it in doubt.
std::int64_t charged_window_end(const Calendar& calendar, std::int64_t at_us, std::int64_t time_us);

}  // namespace weir::algorithm
