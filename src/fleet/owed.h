// Unsynced charges: what a node admitted without Redis, until it has been written back there.
//
//   owed.add(key, limit, cost, until);
//   for (Debt& debt : owed.take(100)) ...      // in flight from now on
//   owed.settle(debt, is_written);             // gone, or to be taken again
//
// A refund names the time of its charge. It lowers charges that have waited since then. What has been taken since then
// may be in Redis, and is lowered only if it comes back.
//
// cost_of() has both what waits and what is in flight: until Redis has confirmed a charge, this node counts it. Charges
// add up by name and period: versions of a limit share a state, limits with another period have their own. Bounded:
// beyond a bound of keys, charges are only counted. Names are those of key_name.h. add() writes a line into one of
// several short lists, each behind a lock with little contention; readers enter the lines into the book, and tidy()
// does so in time that nobody waits for. Any thread. Tested by owed_test.cc.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "algorithm/limit.h"
#include "fleet/flat_map.h"
#include "fleet/key_name.h"
#include "weir/verdict.h"

namespace weir {

// What was still spent of a key on this node, at some time of the monotonic clock.
struct Spent {
  std::int64_t most = INT64_MAX;
  Micros at{0};
  bool is_refunded = false;  // less than before, then

  bool is_known() const { return most != INT64_MAX; }
  // The later of both counts. Of two charges at nearly the same time it is not known which came first, so the larger
  // does.
  void take(const Spent& other) {
    constexpr Micros kNearly{100'000};
    const Micros tolerated = is_refunded || other.is_refunded ? Micros{0} : kNearly;
    if (!is_known() || other.at - at >= tolerated) {
      *this = other;
    } else if (at - other.at < tolerated) {
      *this = {.most = std::max(most, other.most), .at = std::max(at, other.at)};
    }
  }
};

struct Debt {
  std::string name{};
  KeyMark mark{};
  Limit limit{};  // the whole one
  std::int64_t cost = 0;
  Micros until{0};  // monotonic: from then on it has been recovered from
  Spent spent{};
  std::int64_t outside = 0;  // of its cost, what `spent` does not know of: it was not charged to this node's share
  std::int64_t since_us = INT64_MAX;  // the first of its charges, by the clock of this node's store; if that is known

  std::string_view key() const { return std::string_view(name).substr(1); }
};

class Owed {
 public:
  // `on_full` is called when there is something to tidy; by whoever adds, so it is quick.
  explicit Owed(std::size_t keys_max, std::function<void()> on_full = {})
      : keys_max_(keys_max), on_full_(std::move(on_full)) {}
  Owed(const Owed&) = delete;
  Owed& operator=(const Owed&) = delete;

  // No more is owed than is still spent, whatever was let through: the rest has been recovered from, as it would have
  // in Redis. Of what several threads say the latest counts (Spent::take). A charge that says nothing of that is owed
  // besides. A cost below 0 is a refund of what was charged at `charged_us`.
  void add(const KnownKey& key, const Limit& limit, std::int64_t cost, Micros until, Spent spent = {},
           std::int64_t charged_us = 0);
  void forget(KeyMark mark);

  // A charge of which it is not known yet whether Redis has it: it counts as in flight until settle().
  void doubt(const KnownKey& key, const Limit& limit, std::int64_t cost);

  // Of one key, waiting and in flight, unless it has been recovered from.
  std::int64_t cost_of(const KnownKey& key, const Limit& limit, Micros now);
  // Some that wait, or that of one key: they are in flight until settle().
  std::vector<Debt> take(std::size_t most);
  // What is_elsewhere says: some are in flight already, or in doubt, and nothing was taken.
  std::optional<Debt> take_one(const KnownKey& key, const Limit& limit, bool& is_elsewhere);
  // The debt, or as much of its cost, is written in Redis; or it is not, and waits again. A key that was reset
  // meanwhile owes nothing.
  void settle(const Debt& debt, bool is_written);

  std::size_t size();  // keys
  // False if there may be any that wait. Costs nothing.
  bool is_empty() const { return !has_lines_.load() && keys_.load() == 0; }
  // The same, of those in flight, too: Redis has all charges of this node.
  bool is_synced() const { return is_empty() && in_flight_keys_.load() == 0; }
  // Enters full lists.
  void tidy();
  std::uint64_t lost();

 private:
  static constexpr std::size_t kDesks = 16;
  static constexpr std::size_t kLinesMax = 1'024;  // so that a list stays in the cache
  static constexpr std::size_t kRecent = 1'024;
  static constexpr std::size_t kMarkBits = 16'384;
  static constexpr std::size_t kFullMax = 16;  // lists; whoever has one more enters them

  struct Line {
    KeyMark mark{};
    std::uint32_t name_size = 0;
    std::uint32_t limit = 0;  // of limits
    std::int64_t cost = 0;
    Micros until{0};
    Spent spent{};
    std::int64_t charged_us = 0;  // the first, if they are several
  };
  struct List {
    std::vector<Line> lines;
    std::vector<Limit> limits;
    std::string names;                            // of all lines, one behind the other
    std::array<std::uint16_t, kRecent> recent{};  // by its mark, where a key may stand: most that come have come before
    std::array<std::uint64_t, kMarkBits / 64> marks{};  // a bit for the mark of each line

    bool may_have(KeyMark mark) const;
    void set_mark(KeyMark mark);
    bool add_to_known(const Line& more, const Limit& limit);
    void clear();
  };
  struct alignas(64) Desk {
    std::atomic<bool> has_lines{false};
    std::mutex mutex;
    List list;
  };
  // A key under a period. Marks stand for names, see key_memory.h.
  struct State {
    KeyMark mark{};
    std::uint64_t period = 0;
    friend bool operator==(const State&, const State&) = default;
  };
  struct Hash {
    std::size_t operator()(const State& one) const { return static_cast<std::uint64_t>(one.mark) ^ one.period; }
  };
  static State state_of(KeyMark mark, const Limit& limit) { return {mark, period_print(limit)}; }

  bool put_aside(List& list);
  void swap_for_empty(List& list);
  void use_again(List& list);
  bool may_have_line(KeyMark mark);
  void enter_lines_of(KeyMark mark);
  void enter_all();
  void enter(const List& list);
  void enter(std::string_view name, const Line& line, const Limit& limit);
  void send(const State& state, std::int64_t cost, Micros until);
  void refund_in_flight(const State& state, const Line& line);

  const std::size_t keys_max_;
  const std::function<void()> on_full_;
  std::array<Desk, kDesks> desks_;  // a thread writes at one of them
  std::mutex lists_mutex_;          // guards the lists that are full, and those that can be used again
  std::vector<List> full_, spare_;
  std::atomic<bool> has_lines_{false};  // may have
  std::atomic<std::size_t> keys_{0};    // in the book
  std::atomic<std::size_t> in_flight_keys_{0};
  std::mutex mutex_;  // guards what follows
  std::uint64_t lost_ = 0;
  std::vector<State> given_back_;  // that were entered by a cost below 0: what it is of may come yet
  FlatMap<State, Debt, Hash> book_;
  std::size_t taken_ = 0;  // where the next is taken
  struct Refund {
    std::int64_t charged_us = 0, cost = 0;
  };
  struct InFlight {
    std::int64_t cost = 0;
    Micros until{0};
    std::vector<Refund> refunds{};  // if it comes back, it is less by them

    std::int64_t take_refunds(std::int64_t since_us, std::int64_t most);
  };
  FlatMap<State, InFlight, Hash> in_flight_;
};

}  // namespace weir
