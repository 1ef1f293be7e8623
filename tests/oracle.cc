// The definitions of docs/algorithms.md, one algorithm after the other, each as the same functions:
//
//   admits   returns whether a request of this cost passes at time t, if nothing happens until then. `own` is the limit
//            of the state, `terms` the version that decides
//   correct  corrects a state that is ahead of `now` (time ran backwards), as the page says
//   bring    brings the state to `now`: drops what has expired by then
//   suits    returns whether the state, brought to `now`, may become one of the version that admits
//   convert  makes it one
//   take     records an admitted cost
//   give     refunds permits, newest first, never beyond full
//   refund   refunds permits that were charged at `at`, as far as they still count; true if any did
//
// A denial keeps only the correction. All else is kept only if permits are charged or refunded. A change that leaves
// `reset_after` 0 removes the key. One thread, as the header says.
#include "oracle.h"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "algorithm/calendar.h"

namespace weir::oracle {
namespace {

// ------------------------------------------------------------------------------------------- searches

// No wait is longer: a bucket fills within 2^52 µs, a window of ten years and its successor end well before.
constexpr std::int64_t kWaitEnd = std::int64_t{1} << 54;

// The smallest w >= 0 for which the condition is true. Once true, it must stay true for all larger w.
template <class Condition>
Micros smallest_wait(Condition holds) {
  if (holds(0)) return Micros{0};
  std::int64_t no = 0;
  std::int64_t yes = 1;
  while (!holds(yes)) {
    if (yes >= kWaitEnd) return kNever;
    no = yes;
    yes *= 2;
  }
  while (yes - no > 1) {
    const std::int64_t middle = no + (yes - no) / 2;
    (holds(middle) ? yes : no) = middle;
  }
  WEIR_ASSERT(holds(yes));
  WEIR_ASSERT(!holds(yes - 1));
  return Micros{yes};
}

// The largest cost in [0, limit] that passes; 0 also when not even that one does.
template <class Condition>
std::int64_t largest_cost(std::int64_t limit, Condition passes) {
  std::int64_t yes = 0;
  std::int64_t no = limit + 1;
  while (no - yes > 1) {
    const std::int64_t middle = yes + (no - yes) / 2;
    (passes(middle) ? yes : no) = middle;
  }
  return yes;
}

Int div_floor(Int a, Int b) { return a / b; }           // for a >= 0, b > 0
Int div_ceil(Int a, Int b) { return (a + b - 1) / b; }  // the same

// ---------------------------------------------------------------------------------------------- terms

bool is_bucket(const Limit& limit) {
  return limit.algorithm == Algorithm::token_bucket || limit.algorithm == Algorithm::leaky_bucket ||
         limit.algorithm == Algorithm::leaky_meter;
}

// What a decision calls `limit`.
std::int64_t limit_of(const Terms& terms) {
  return is_bucket(terms.limit) ? terms.limit.capacity : terms.limit.permits;
}

Window window_at(const Terms& terms, std::int64_t now) {
  if (terms.limit.period_us == 0) return terms.windows(now);
  const std::int64_t period = terms.limit.period_us;
  const std::int64_t since = (now - terms.limit.phase_us) % period;  // negative before the first one of all begins
  const std::int64_t start = now - (since < 0 ? since + period : since);
  return {start, start + period, start + 2 * period};
}

// Do both count in one state? Calendars are the same if they were given together, or are of one unit and zone.
bool same_state(const Terms& old, const Terms& terms) {
  const Limit& a = old.limit;
  const Limit& b = terms.limit;
  if (a.algorithm != b.algorithm) return false;
  if (is_bucket(a) || a.algorithm == Algorithm::concurrency) return true;
  const bool same_calendar = old.given == terms.given || (a.calendar != nullptr && b.calendar != nullptr &&
                                                          a.calendar->unit() == b.calendar->unit() &&
                                                          a.calendar->zone_name() == b.calendar->zone_name());
  return a.period_us == b.period_us && a.phase_us == b.phase_us && (a.period_us != 0 || same_calendar);
}

// What a refund is of: when it was charged, and under which limit.
struct Past {
  std::int64_t at = 0;
  Limit limit;
};
// Most states can become one of the version that decides at once; the others have their own suits() below.
bool suits(const auto&, const Terms&, std::int64_t) { return true; }
void convert(const auto&, const Terms&, const Terms&) {}

// --------------------------------------------------------------------------------------- fixed_window

// After correct(), the window of the state is that of `now`, the one after it, or one that is over.
Int used(const Count& s, std::int64_t t) { return t < s.end ? s.count : 0; }

bool admits(const Count& s, const Terms&, const Terms& terms, std::int64_t t, Int cost) {
  return used(s, t) + cost <= terms.limit.permits;
}

void correct(Count& s, const Terms& terms, std::int64_t now) {
  const Window window = window_at(terms, now);
  if (s.end > window.next_end) s.end = window.end;
}

void bring(Count& s, const Terms& terms, std::int64_t now) {
  if (now >= s.end) s = {window_at(terms, now).end, 0};
}

void take(Count& s, const Terms&, std::int64_t, Int cost) { s.count += cost; }
void give(Count& s, Int permits) { s.count = std::max<Int>(0, s.count - permits); }

bool refund(Count& s, const Terms& terms, std::int64_t now, const Past& past, Int permits) {
  if (now >= s.end || window_at(terms, past.at).end != s.end || s.count == 0) return false;
  give(s, permits);
  return true;
}

// ------------------------------------------------------------------------------------- sliding_window

// What the two counters are at time t, and the time since their window began.
struct Seen {
  Int previous, current, elapsed;
};
Seen seen(const TwoCounts& s, std::int64_t period, std::int64_t t) {
  const std::int64_t window = t / period;
  const std::int64_t elapsed = t % period;
  if (window < s.window) return {s.previous, s.current, 0};  // ahead: as if at that window's start
  if (window == s.window) return {s.previous, s.current, elapsed};
  if (window == s.window + 1) return {s.current, 0, elapsed};
  return {0, 0, elapsed};
}

Int used(const TwoCounts& s, std::int64_t period, std::int64_t t) {
  const Seen at = seen(s, period, t);
  return div_floor(at.previous * (period - at.elapsed), period) + at.current;
}

bool admits(const TwoCounts& s, const Terms&, const Terms& terms, std::int64_t t, Int cost) {
  return used(s, terms.limit.period_us, t) + cost <= terms.limit.permits;
}

void correct(TwoCounts& s, const Terms& terms, std::int64_t now) {
  const std::int64_t window = now / terms.limit.period_us;
  if (s.window > window + 1) s = {window, 0, std::min<Int>(s.previous + s.current, terms.limit.permits)};
}

void bring(TwoCounts& s, const Terms& terms, std::int64_t now) {
  const Seen at = seen(s, terms.limit.period_us, now);
  s = {std::max(s.window, now / terms.limit.period_us), at.previous, at.current};
}

bool suits(const TwoCounts& s, const Terms& terms, std::int64_t) { return s.previous <= terms.limit.permits; }

void take(TwoCounts& s, const Terms&, std::int64_t, Int cost) { s.current += cost; }

void give(TwoCounts& s, Int permits) {
  const Int from_current = std::min(permits, s.current);
  s.current -= from_current;
  s.previous = std::max<Int>(0, s.previous - (permits - from_current));
}

bool refund(TwoCounts& s, const Terms& terms, std::int64_t now, const Past& past, Int permits) {
  const std::int64_t charged = past.at / terms.limit.period_us;
  const std::int64_t window = std::max(s.window, now / terms.limit.period_us);
  TwoCounts at = s;
  bring(at, terms, now);
  Int none = 0;
  Int& counter = charged == window ? at.current : charged == window - 1 ? at.previous : none;
  if (counter == 0) return false;
  counter = std::max<Int>(0, counter - permits);
  s = at;
  return true;
}

// ---------------------------------------------------------------------------------------- sliding_log

// The first event later than `time`.
auto first_after(const Log& s, std::int64_t time) {
  return std::upper_bound(s.events.begin(), s.events.end(), time,
                          [](std::int64_t t, const Event& event) { return t < event.time; });
}

// The cost and the number of the events in (t - period, t]. After correct(), no event is later than t.
struct Live {
  Int cost = 0;
  std::int64_t events = 0;
};
Live live(const Log& s, std::int64_t period, std::int64_t t) {
  const auto oldest = first_after(s, t - period);
  if (oldest == s.events.end()) return {};
  return {s.events.back().total - oldest->total + oldest->cost, s.events.end() - oldest};
}

// A cost of 0 adds no event: it passes even while the log is full of events.
bool admits(const Log& s, const Terms&, const Terms& terms, std::int64_t t, Int cost) {
  const Live now = live(s, terms.limit.period_us, t);
  const bool full = now.events >= terms.limit.events_max && s.events.back().time != t;
  if (full && cost > 0) return false;
  return now.cost + cost <= terms.limit.permits;
}

void append(Log& s, std::int64_t time, Int cost) {
  const Int total = s.events.empty() ? 0 : s.events.back().total;
  if (s.events.empty() || s.events.back().time != time) s.events.push_back({time, 0, total});
  s.events.back().cost += cost;
  s.events.back().total += cost;
}

void correct(Log& s, const Terms&, std::int64_t now) {
  Int later = 0;
  while (!s.events.empty() && s.events.back().time > now) {
    later += s.events.back().cost;
    s.events.pop_back();
  }
  if (later > 0) append(s, now, later);
}

void bring(Log& s, const Terms& terms, std::int64_t now) {
  s.events.erase(s.events.cbegin(), first_after(s, now - terms.limit.period_us));
}

void take(Log& s, const Terms&, std::int64_t now, Int cost) { append(s, now, cost); }

void give(Log& s, Int permits) {
  while (permits > 0 && !s.events.empty()) {
    Event& newest = s.events.back();
    const Int part = std::min(permits, newest.cost);
    newest.cost -= part;
    newest.total -= part;
    permits -= part;
    if (newest.cost == 0) s.events.pop_back();
  }
}

bool refund(Log& s, const Terms& terms, std::int64_t now, const Past& past, Int permits) {
  Log left;
  bool found = false;
  for (const Event& event : s.events) {
    const bool is_it = event.time == past.at && event.time > now - terms.limit.period_us;
    found = found || is_it;
    const Int cost = is_it ? std::max<Int>(0, event.cost - permits) : event.cost;
    if (cost > 0) append(left, event.time, cost);
  }
  if (found) s = left;
  return found;
}

// ------------------------------------------------------------------------------------------- buckets

Int full_level(const Terms& terms) { return Int{terms.limit.capacity} * terms.limit.weight; }

Int spent_at(const Level& s, const Terms& terms, std::int64_t t) {
  return std::max<Int>(0, s.spent - Int{t - s.at} * terms.limit.rate);
}

// In units of another limit, rounded up.
Int in_units_of(const Terms& terms, Int spent, const Terms& own) {
  return div_ceil(spent * terms.limit.weight, own.limit.weight);
}

// It drains at its own rate until a request is admitted.
bool admits(const Level& s, const Terms& own, const Terms& terms, std::int64_t t, Int cost) {
  return in_units_of(terms, spent_at(s, own, t), own) + cost * terms.limit.weight <= full_level(terms);
}

void correct(Level& s, const Terms& terms, std::int64_t now) {
  if (s.at > now) s = {now, std::min(full_level(terms), s.spent + Int{s.at - now} * terms.limit.rate)};
}

void bring(Level& s, const Terms& terms, std::int64_t now) { s = {now, spent_at(s, terms, now)}; }

void convert(Level& s, const Terms& own, const Terms& terms) { s.spent = in_units_of(terms, s.spent, own); }

void take(Level& s, const Terms& terms, std::int64_t, Int cost) { s.spent += cost * terms.limit.weight; }

void give(Level& s, const Terms& terms, Int permits) {
  s.spent = std::max<Int>(0, s.spent - permits * terms.limit.weight);
}

// Others may have used what has drained since then. How much has drained is not known if the rate has changed.
bool refund(Level& s, const Terms& terms, std::int64_t now, const Past& past, Int permits) {
  const bool same_rate = past.limit.rate == terms.limit.rate && past.limit.weight == terms.limit.weight;
  const Int units = permits * terms.limit.weight - Int{now - past.at} * terms.limit.rate;
  if (!same_rate || past.at > now || units <= 0 || spent_at(s, terms, now) == 0) return false;
  bring(s, terms, now);
  s.spent = std::max<Int>(0, s.spent - units);
  return true;
}

// ---------------------------------------------------------------------------------------- concurrency

Int in_flight(const Holds& s, std::int64_t t) {
  Int sum = 0;
  for (const Hold& hold : s.held) sum += hold.expires > t ? hold.cost : 0;
  return sum;
}

// For an id that is not held.
bool admits(const Holds& s, const Terms&, const Terms& terms, std::int64_t t, Int cost) {
  return in_flight(s, t) + cost <= terms.limit.permits;
}

// For this id: its own old permits do not count against it.
bool admits(const Holds& s, const Terms& terms, std::int64_t t, std::string_view id, Int cost) {
  Int others = 0;
  for (const Hold& hold : s.held) others += hold.expires > t && hold.id != id ? hold.cost : 0;
  return others + cost <= terms.limit.permits;
}

void expire_by(Holds& s, std::int64_t time) {
  for (Hold& hold : s.held) hold.expires = std::min(hold.expires, time);
}

void correct(Holds& s, const Terms& terms, std::int64_t now) { expire_by(s, now + terms.limit.period_us); }

void bring(Holds& s, const Terms&, std::int64_t now) {
  std::erase_if(s.held, [&](const Hold& hold) { return hold.expires <= now; });
}

bool suits(const Holds& s, const Terms& terms, std::int64_t now) {
  return std::all_of(s.held.begin(), s.held.end(),
                     [&](const Hold& hold) { return hold.expires <= now + terms.limit.period_us; });
}

bool drop(Holds& s, std::string_view id) {
  return std::erase_if(s.held, [&](const Hold& hold) { return hold.id == id; }) > 0;
}

void give(Holds& s, Int permits) {
  while (permits > 0 && !s.held.empty()) {
    const Int part = std::min(permits, s.held.back().cost);
    s.held.back().cost -= part;
    permits -= part;
    if (s.held.back().cost == 0) s.held.pop_back();
  }
}

// ------------------------------------------------------------------------------------------- decisions

void give(auto& s, const Terms&, Int permits) { give(s, permits); }

// What every decision says of the state it leaves behind.
template <class State>
void report(Decision& decision, const State& s, const Terms& own, const Terms& terms, std::int64_t now) {
  decision.limit = limit_of(terms);
  decision.remaining = largest_cost(decision.limit, [&](Int cost) { return admits(s, own, terms, now, cost); });
  decision.reset_after = smallest_wait([&](std::int64_t w) { return admits(s, own, terms, now + w, decision.limit); });
}

// The time in which what was spent drains away.
Micros drained_after(const Level& s, const Terms& terms, std::int64_t now) {
  return smallest_wait([&](std::int64_t w) { return spent_at(s, terms, now + w) == 0; });
}

// `admitted_after(w)`: would this request pass w from now?
Decision judge(std::int64_t cost, const Terms& terms, auto admitted_after) {
  Decision decision;
  decision.allowed = cost < 0 || admitted_after(0);
  if (!decision.allowed) decision.retry_after = cost > limit_of(terms) ? kNever : smallest_wait(admitted_after);
  return decision;
}

// Gives the state to the version that admits, if possible.
template <class State>
void hand_over(State& s, Terms& own, const Terms& terms, std::int64_t now) {
  if (!suits(s, terms, now)) return;
  convert(s, own, terms);
  own = terms;
}

template <class State>
Decision decide(State& s, Terms& own, const Terms& terms, std::int64_t now, std::int64_t cost) {
  Decision decision = judge(cost, terms, [&](std::int64_t w) { return admits(s, own, terms, now + w, cost); });
  if (decision.allowed && cost != 0) {
    bring(s, own, now);
    if (cost > 0) hand_over(s, own, terms, now);
  }
  if constexpr (std::is_same_v<State, Level>) {
    const bool queues = terms.limit.algorithm == Algorithm::leaky_bucket;
    if (queues && decision.allowed && cost >= 0) decision.delay = drained_after(s, own, now);
  }
  if (decision.allowed && cost > 0) take(s, own, now, cost);
  if (decision.allowed && cost < 0) give(s, own, -Int{cost});
  report(decision, s, own, terms, now);
  return decision;
}

}  // namespace

Oracle::Oracle(const Limit& limit, WindowsAt windows) { change(limit, std::move(windows)); }

void Oracle::change(const Limit& limit, WindowsAt windows) { terms_ = {limit, std::move(windows), terms_.given + 1}; }

Oracle::State Oracle::fresh(Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::fixed_window:
      return Count{};
    case Algorithm::sliding_window:
      return TwoCounts{};
    case Algorithm::sliding_log:
      return Log{};
    case Algorithm::concurrency:
      return Holds{};
    case Algorithm::token_bucket:
    case Algorithm::leaky_bucket:
    case Algorithm::leaky_meter:
      return Level{};
  }
  return {};
}

// The state that the ruling limit counts in, corrected under the limit that it belongs to.
Oracle::Entry& Oracle::touch(std::int64_t now) {
  auto found = std::find_if(entries_.begin(), entries_.end(),
                            [&](const Entry& entry) { return same_state(entry.terms, terms_); });
  if (found == entries_.end()) {
    entries_.push_back({terms_, fresh(terms_.limit.algorithm)});
    found = entries_.end() - 1;
  }
  found->terms.windows = terms_.windows;  // the same zone, perhaps of a newer file
  std::visit([&](auto& state) { correct(state, found->terms, now); }, found->state);
  return *found;
}

// A peek changes nothing, not even by a correction or conversion: a temporary copy answers it.
Oracle Oracle::copy_to_peek() const {
  Oracle copy = *this;
  copy.is_copy_ = true;
  return copy;
}

// A change that leaves `reset_after` 0 removes the key. (A correction never does: a state that is ahead has charges.)
Decision Oracle::forget_if_unspent(const Entry& entry, const Decision& decision, std::int64_t cost) {
  const bool written = decision.allowed && cost != 0;
  if (written && decision.reset_after == Micros{0}) entries_.erase(entries_.begin() + (&entry - entries_.data()));
  return decision;
}

Decision Oracle::step(std::int64_t now, std::int64_t cost) {
  WEIR_ASSERT(now >= 0 && now < kTimeEnd);
  WEIR_ASSERT(terms_.limit.algorithm != Algorithm::concurrency);
  if (cost == 0 && !is_copy_) return copy_to_peek().step(now, 0);
  Entry& entry = touch(now);
  const Decision decision = std::visit(
      [&](auto& state) -> Decision {
        if constexpr (std::is_same_v<std::decay_t<decltype(state)>, Holds>) {
          return {};
        } else {
          return decide(state, entry.terms, terms_, now, cost);
        }
      },
      entry.state);
  return forget_if_unspent(entry, decision, cost);
}

Decision Oracle::refund(std::int64_t now, std::int64_t cost, std::int64_t at, const Limit& charged) {
  Terms past = terms_;
  past.limit = charged;
  const auto found =
      std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) { return same_state(entry.terms, past); });
  if (found != entries_.end() && cost > 0) {
    Entry& entry = *found;
    const bool changed = std::visit(
        [&](auto& state) {
          if constexpr (std::is_same_v<std::decay_t<decltype(state)>, Holds>) {
            return false;
          } else {
            correct(state, entry.terms, now);
            return weir::oracle::refund(state, entry.terms, now, Past{at, charged}, cost);
          }
        },
        entry.state);
    const Decision left = std::visit(
        [&](auto& state) {
          Decision decision;
          report(decision, state, entry.terms, entry.terms, now);
          return decision;
        },
        entry.state);
    if (changed && left.reset_after == Micros{0}) entries_.erase(found);
  }
  Decision decision = step(now, 0);
  decision.allowed = true;
  decision.retry_after = Micros{0};
  return decision;
}

Decision Oracle::acquire(std::int64_t now, std::string_view id, std::int64_t cost) {
  WEIR_ASSERT(now >= 0 && now < kTimeEnd);
  WEIR_ASSERT(terms_.limit.algorithm == Algorithm::concurrency);
  if (cost == 0 && !is_copy_) return copy_to_peek().acquire(now, id, 0);
  Entry& entry = touch(now);
  Holds& holds = std::get<Holds>(entry.state);
  Decision decision = judge(cost, terms_, [&](std::int64_t w) { return admits(holds, terms_, now + w, id, cost); });
  if (decision.allowed && cost != 0) {
    bring(holds, entry.terms, now);
    if (cost < 0) give(holds, -Int{cost});
    if (cost > 0) {
      drop(holds, id);
      holds.held.push_back({std::string(id), cost, now + terms_.limit.period_us});
      hand_over(holds, entry.terms, terms_, now);
    }
  }
  report(decision, holds, entry.terms, terms_, now);
  return forget_if_unspent(entry, decision, cost);
}

bool Oracle::release(std::int64_t now, std::string_view id) {
  WEIR_ASSERT(now >= 0 && now < kTimeEnd);
  const auto found = std::find_if(entries_.begin(), entries_.end(), [](const Entry& entry) {
    return entry.terms.limit.algorithm == Algorithm::concurrency;
  });
  if (found == entries_.end()) return false;
  Entry& entry = *found;
  Holds& holds = std::get<Holds>(entry.state);
  correct(holds, entry.terms, now);
  const bool held = std::any_of(holds.held.begin(), holds.held.end(),
                                [&](const Hold& hold) { return hold.id == id && hold.expires > now; });
  if (!held) return false;
  bring(holds, entry.terms, now);
  return drop(holds, id);
}

}  // namespace weir::oracle
