// The reference: a slow and simple limiter, written only from the definitions in docs/algorithms.md.
//
// It shares no code with the library and uses no closed forms. It keeps what the page describes (a count in a window, a
// list of events, an exact level, a list of holds) and evaluates the definition: it searches for the first moment at
// which the definition admits, and for the largest cost that it admits. Of a Limit it reads the numbers only; the
// windows of a calendar come from the caller.
//
// A plain value: copy it to try something. Not for several threads at once. Tested by oracle_test.cc and
// tests/scenarios.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "weir/limit.h"
#include "weir/verdict.h"

namespace weir::oracle {

__extension__ typedef __int128 Int;  // wide enough that nothing here can overflow

// The calendar window that holds `now`, [start, end), and the end of the one after it.
struct Window {
  std::int64_t start = 0;
  std::int64_t end = 0;
  std::int64_t next_end = 0;
  friend bool operator==(const Window&, const Window&) = default;
};
using WindowsAt = std::function<Window(std::int64_t now)>;

// The limit of a state, and its windows if they are of a calendar. Functions cannot be compared, so `given` is the
// number of the call of change() that set them.
struct Terms {
  Limit limit;
  WindowsAt windows;
  int given = 0;
};

// fixed_window: what was admitted in the window that ends at `end`.
struct Count {
  std::int64_t end = 0;
  Int count = 0;
};

// sliding_window: what was admitted in window number `window` since the epoch, and in the one before it.
struct TwoCounts {
  std::int64_t window = 0;
  Int previous = 0;
  Int current = 0;
};

// sliding_log: every admitted event, oldest first. `total` is the running sum of costs up to and with this event.
struct Event {
  std::int64_t time = 0;
  Int cost = 0;
  Int total = 0;
};
struct Log {
  std::deque<Event> events;
};

// The buckets: what was spent as of `at`, in units of 1/weight permit.
struct Level {
  std::int64_t at = 0;
  Int spent = 0;
};

// concurrency: the permits in flight, in the order in which they were acquired.
struct Hold {
  std::string id;
  Int cost = 0;
  std::int64_t expires = 0;
};
struct Holds {
  std::vector<Hold> held;
};

class Oracle {
 public:
  explicit Oracle(const Limit& limit, WindowsAt windows = {});

  // The limit applies from the next step on. Another algorithm is another state, and so is another period of a window
  // or log; the old state stays as it is.
  void change(const Limit& limit, WindowsAt windows = {});

  // Any int64 is a cost. `now` is in [0, kTimeEnd) and may run backwards.
  Decision step(std::int64_t now, std::int64_t cost);
  // Refunds permits that were charged at `at` under `charged`. Returns what a peek returns afterwards.
  Decision refund(std::int64_t now, std::int64_t cost, std::int64_t at, const Limit& charged);
  Decision acquire(std::int64_t now, std::string_view id, std::int64_t cost);
  // True if `id` was in flight. A release names no limit, so a changed limit does not apply here.
  bool release(std::int64_t now, std::string_view id);

 private:
  using State = std::variant<Count, TwoCounts, Log, Level, Holds>;
  struct Entry {
    Terms terms;  // that `state` belongs to: those that last admitted
    State state;
  };
  static State fresh(Algorithm algorithm);
  Entry& touch(std::int64_t now);
  Oracle copy_to_peek() const;
  Decision forget_if_unspent(const Entry& entry, const Decision& decision, std::int64_t cost);

  bool is_copy_ = false;
  Terms terms_;
  std::vector<Entry> entries_;  // one for each algorithm and, of windows and logs, each period
};

}  // namespace weir::oracle
