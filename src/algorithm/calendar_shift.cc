// Corrections of the clock that calendar windows read. See calendar_shift.h.
#include "algorithm/calendar_shift.h"

#include <algorithm>
#include <limits>

#include "weir/clock.h"

namespace weir::algorithm {
namespace {

// Shorter than any window, also than a day in which daylight saving begins.
constexpr std::int64_t kNear = 20 * std::int64_t{3'600'000'000};
// Longer than any window.
constexpr std::int64_t kLongest = 370 * std::int64_t{86'400'000'000};
// Instead of a floor: the clock stood still for some calendars.
constexpr std::int64_t kInDoubt = kTimeEnd;

std::int64_t in_range(std::int64_t us) { return std::clamp<std::int64_t>(us, 0, kTimeEnd - 1); }

// What the wall clock shows.
std::int64_t true_time(const CalendarShift& shift, std::int64_t time_us) { return in_range(time_us + shift.now_us); }

// Whether windows of a calendar still stand at `far`, which is more than a window ahead. If it is not, they wait for
// it, as for `near`.
struct Standing {
  bool stands = false, is_beyond = false;
  Window marked{};
};
Standing standing(const CalendarShift& shift, const Calendar& calendar, std::int64_t now_us) {
  const CalendarShift::Hold& far = shift.far;
  if (now_us >= far.floor_us) return {};
  Window marked = calendar.window_at(in_range(far.mark_us));
  const CalendarShift::Skipped& skipped = shift.skipped;  // a window whose end was skipped has not ended
  if (skipped.from_us < marked.end_us && marked.end_us <= skipped.to_us) {
    marked = calendar.window_at(in_range(skipped.to_us));
  }
  const bool is_beyond = far.floor_us >= marked.next_end_us;
  return {!is_beyond || now_us < marked.end_us, is_beyond, marked};
}

// Small corrections of a clock that drifts are left out, or windows would stand still again with each of them.
CalendarShift::Skipped skip(CalendarShift::Skipped skipped, std::int64_t was, std::int64_t is) {
  constexpr std::int64_t kDrift = 60'000'000;
  if (is <= was) return {std::min(skipped.from_us, is), std::min(skipped.to_us, is)};
  if (is - was < kDrift) return skipped;
  if (skipped.to_us == 0) return {was, is};
  return {std::min(skipped.from_us, was), std::max(skipped.to_us, is)};
}

// Windows that ended between two jumps are then kept too long, never too short. After a correction backward, a jump may
// lie within an earlier one.
void join_closest(std::array<CalendarShift::Jump, 3>& jumps, const CalendarShift::Jump& added) {
  std::array<CalendarShift::Jump, 4> all{jumps[0], jumps[1], jumps[2], added};
  std::size_t closest = 0;
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (std::size_t i = 0; i + 1 < all.size(); ++i) {
    const std::int64_t gap = all[i + 1].from_us - all[i].to_us;
    if (gap < least) least = gap, closest = i;
  }
  CalendarShift::Jump& first = all[closest];
  const CalendarShift::Jump& second = all[closest + 1];
  first = {std::min(first.from_us, second.from_us), std::max(first.to_us, second.to_us),
           std::min(first.behind_us, second.behind_us)};
  std::move(all.begin() + static_cast<std::ptrdiff_t>(closest) + 2, all.end(),
            all.begin() + static_cast<std::ptrdiff_t>(closest) + 1);
  std::copy_n(all.begin(), jumps.size(), jumps.begin());
}

// The time until which a window that a jump passed over is kept: as announced, but not into a day that begins after the
// last correction.
std::int64_t kept_until(const CalendarShift& shift, const Calendar& calendar, const CalendarShift::Jump& jump,
                        std::int64_t end_us) {
  const std::int64_t jumped = calendar.window_at(in_range(jump.to_us)).end_us;
  const std::int64_t last = calendar.window_at(true_time(shift, shift.since_us)).end_us;
  return std::min(end_us - jump.behind_us, std::min(jumped, last) - shift.now_us);
}

}  // namespace

CalendarShift corrected(const CalendarShift& before, std::int64_t now_us, std::int64_t time_us, std::int64_t last_us) {
  CalendarShift after = before;
  after.now_us = now_us;
  after.since_us = time_us;
  after.before_us = before.now_us;
  after.before_since_us = before.since_us;
  after.before_floor_us = before.far.floor_us != 0 ? kInDoubt : before.near.floor_us;
  const std::int64_t was = std::max(true_time(before, last_us), before.near.floor_us);
  const std::int64_t is = true_time(after, time_us);
  after.skipped = skip(before.skipped, was, is);
  const std::int64_t far_until =
      std::min(before.far.floor_us, std::max(before.far.mark_us, after.skipped.to_us) + kLongest);
  if (is >= far_until) after.far = {};
  if (was - is > kNear) {
    after.near = {};
    after.far = {std::max(was, after.far.floor_us), is};
  } else {
    after.near = {was, std::min(is, was)};
    after.far.mark_us = std::min(after.far.mark_us, is);
  }
  if (after.far.floor_us == 0 || after.far.mark_us == is) after.skipped = {};
  // In the order of time. Those that were in effect since the correction before are kept for charged_window_end().
  auto kept = std::remove_if(after.jumps.begin(), after.jumps.end(), [&](const CalendarShift::Jump& jump) {
    return jump.to_us <= jump.from_us || jump.to_us - jump.behind_us <= before.since_us || is >= jump.to_us + kLongest;
  });
  std::fill(kept, after.jumps.end(), CalendarShift::Jump{});
  if (now_us <= before.now_us || is <= was) return after;
  const CalendarShift::Jump jump{was, is, before.now_us};
  if (kept == after.jumps.end()) {
    join_closest(after.jumps, jump);
  } else {
    *kept = jump;
  }
  return after;
}

std::int64_t shown_by(const Calendar& calendar, std::int64_t time_us) {
  const CalendarShift* const shift = ShiftedCalendar::here();
  if (shift == nullptr) return time_us;
  const std::int64_t now_us = true_time(*shift, time_us);
  if (standing(*shift, calendar, now_us).stands) return in_range(std::max(shift->near.floor_us, shift->far.floor_us));
  return in_range(std::max(now_us, shift->near.floor_us));
}

std::int64_t end_by(const Calendar& calendar, std::int64_t end_us, std::int64_t time_us) {
  const CalendarShift* const shift = ShiftedCalendar::here();
  if (shift == nullptr) return end_us;
  const std::int64_t now_us = true_time(*shift, time_us), shown = shown_by(calendar, time_us);
  const Standing far = standing(*shift, calendar, now_us);
  if (end_us > shown) {
    if (far.is_beyond && far.stands) return far.marked.end_us - shift->now_us;
    // Windows of the time when the clock was far ahead are over, also the next one.
    const bool is_over = far.is_beyond && end_us > calendar.window_at(shown).end_us;
    return is_over ? time_us : end_us - shift->now_us;
  }
  std::int64_t latest_us = time_us;
  for (const CalendarShift::Jump& jump : shift->jumps) {
    if (end_us <= jump.from_us || end_us > jump.to_us) continue;
    if (far.is_beyond && far.stands && end_us > far.marked.end_us) {  // of the next window, or of one that is over
      return (end_us > far.marked.next_end_us ? far.marked.end_us : end_us) - shift->now_us;
    }
    latest_us = std::max(latest_us, kept_until(*shift, calendar, jump, end_us));
  }
  return latest_us;
}

std::int64_t charged_window_end(const Calendar& calendar, std::int64_t at_us, std::int64_t time_us) {
  const CalendarShift* const shift = ShiftedCalendar::here();
  if (shift == nullptr) return calendar.window_at(at_us).end_us;
  if (at_us < shift->before_since_us) return 0;
  std::int64_t shown = shown_by(calendar, at_us);
  if (at_us < shift->since_us) {
    if (shift->before_floor_us == kInDoubt || shift->far.floor_us != 0) return 0;
    shown = in_range(std::max(at_us + shift->before_us, shift->before_floor_us));
  }
  const Window window = calendar.window_at(shown);
  const Standing far = at_us < shift->since_us ? Standing{} : standing(*shift, calendar, true_time(*shift, at_us));
  if (far.is_beyond && far.stands && true_time(*shift, time_us) >= far.marked.end_us) return 0;  // it is over
  for (const CalendarShift::Jump& jump : shift->jumps) {  // it may have been charged to a window kept from before it
    if (jump.to_us == 0 || window.start_us <= jump.from_us) continue;
    const std::int64_t end_us = std::min(window.start_us, jump.to_us);
    const bool is_earlier = at_us < shift->since_us;
    const std::int64_t kept_us = is_earlier ? end_us - jump.behind_us : kept_until(*shift, calendar, jump, end_us);
    if (far.stands || at_us < kept_us) return 0;
  }
  return window.end_us;
}

}  // namespace weir::algorithm
