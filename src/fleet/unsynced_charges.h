// Unsynced charges: what a node admitted without Redis, until it has been written back there.
//
//   unsynced.add(key, limit, cost, until);
//   for (UnsyncedCharge& charge : unsynced.take(100)) ...      // in flight from now on
//   unsynced.settle(charge, is_written);             // removed, or taken again later
//
// A refund carries the time of its charge. It lowers charges that have been waiting since then. A charge that has
// been taken since then may be in Redis, so it is lowered only if it comes back.
//
// cost_of() includes waiting charges and those in flight: this node counts a charge until Redis has confirmed it.
// Charges add up by name and period: versions of a limit share a state, and a limit with another period has its own.
// Bounded: beyond the bound on keys, charges are only counted as dropped. Names are those of key_name.h. add() appends
// a line to one of several short lists, each behind a lock with little contention. Readers move the lines into
// `book_`, a table by key. tidy() does so while no caller waits. Any thread. Tested by unsynced_charges_test.cc.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "algorithm/limit.h"
#include "base/mutex.h"
#include "fleet/flat_map.h"
#include "fleet/key_name.h"
#include "fleet/local_usage.h"
#include "weir/verdict.h"

namespace weir::fleet {

struct UnsyncedCharge {
  std::string name{};
  KeyMark mark{};
  Limit limit{};  // the whole limit, not this node's share
  std::int64_t cost = 0;
  Micros until{0};  // monotonic: from then on it has recovered
  LocalUsage local_usage{};
  std::int64_t outside = 0;  // the part of `cost` that `local_usage` excludes: it was not charged to this node's share
  std::int64_t since_us = INT64_MAX;  // time of its first charge, by the clock of this node's store, if known
  std::int64_t cut = 0;               // was admitted, and no longer used: it has recovered or was refunded
  std::uint64_t epoch = UINT64_MAX;   // when it was taken: see UnsyncedCharges::epoch()

  std::int64_t lowered_by(std::int64_t refund, const LocalUsage& after, std::int64_t& cut_left) const;
  std::string_view key() const { return std::string_view(name).substr(1); }
};

class UnsyncedCharges {
 public:
  // `on_full` is called when there is something to tidy. It runs on the thread that adds, so it must be quick.
  explicit UnsyncedCharges(std::size_t keys_max, std::function<void()> on_full = {})
      : keys_max_(keys_max), on_full_(std::move(on_full)) {}

  // The unsynced cost never exceeds what is still used, however much was admitted. The rest has recovered, as it
  // would have in Redis. If several threads report `local_usage`, the latest counts (LocalUsage::take). A charge
  // without `local_usage` is unsynced in addition. A negative cost is a refund of what was charged at `charged_us`. It
  // may arrive after charges that were made later.
  void add(const KnownKey& key, const Limit& limit, std::int64_t cost, Micros until, LocalUsage local_usage = {},
           std::int64_t charged_us = 0);
  void forget(KeyMark mark);

  // A charge that may or may not be in Redis. It counts as in flight until settle(), which needs the epoch that this
  // returns.
  std::uint64_t doubt(const KnownKey& key, const Limit& limit, std::int64_t cost);

  // The unsynced cost of one key, waiting and in flight, unless it has recovered.
  std::int64_t cost_of(const KnownKey& key, const Limit& limit, Micros now);
  // Takes charges that wait. They are in flight until settle().
  std::vector<UnsyncedCharge> take(std::size_t most);
  // Takes the waiting charge of one key. `is_elsewhere`: some of it is already in flight, or in doubt, and nothing was
  // taken.
  std::optional<UnsyncedCharge> take_one(const KnownKey& key, const Limit& limit, bool& is_elsewhere);
  // `is_written`: Redis has the charge, or this much of its cost. Otherwise it waits again. If the key was reset
  // meanwhile, nothing is unsynced.
  void settle(const UnsyncedCharge& charge, bool is_written);
  // The number of calls of forget(). A charge that was taken or in doubt before one is not among those in flight after
  // it.
  std::uint64_t epoch() const { return epoch_.load(); }

  std::size_t size();  // keys
  // False if some may be waiting. Costs nothing.
  bool is_empty() const { return !has_lines_.load() && keys_.load() == 0; }
  // The same, including those in flight: Redis has all charges of this node.
  bool is_synced() const { return is_empty() && in_flight_keys_.load() == 0; }
  // Moves the lines of full lists into `book_`.
  void tidy();
  std::uint64_t dropped_permits();

 private:
  static constexpr std::size_t kInboxes = 16;
  static constexpr std::size_t kLinesMax = 1'024;  // so that a list stays in the cache
  static constexpr std::size_t kRecent = 1'024;
  static constexpr std::size_t kMarkBits = 16'384;
  static constexpr std::size_t kFullMax = 16;  // lists; the thread that fills one more enters them itself

  struct Line {
    KeyMark mark{};
    std::uint32_t name_size = 0;
    std::uint32_t limit = 0;  // index into limits
    std::int64_t cost = 0;
    Micros until{0};
    LocalUsage local_usage{};
    std::int64_t charged_us = 0;  // of the first charge, if the line adds up several
  };
  struct List {
    std::vector<Line> lines;
    std::vector<Limit> limits;
    std::string names;                                  // of all lines, concatenated
    std::array<std::uint16_t, kRecent> recent{};        // by mark: a likely line, since most keys repeat
    std::array<std::uint64_t, kMarkBits / 64> marks{};  // a bit for the mark of each line
    bool has_refunds = false;

    bool may_have(KeyMark mark) const;
    void set_mark(KeyMark mark);
    bool add_to_known(const Line& more, const Limit& limit);
    void clear();
  };
  struct alignas(64) Inbox {
    std::atomic<bool> has_lines{false};
    base::Mutex mutex;
    List list GUARDED_BY(mutex);
  };
  // A key under a period. Marks replace names, see key_memory.h.
  struct State {
    KeyMark mark{};
    std::uint64_t period = 0;
    friend bool operator==(const State&, const State&) = default;
  };
  struct Hash {
    std::size_t operator()(const State& one) const { return static_cast<std::uint64_t>(one.mark) ^ one.period; }
  };
  static State state_of(KeyMark mark, const Limit& limit) { return {mark, algorithm::period_print(limit)}; }

  bool put_aside(List& list) EXCLUDES(lists_mutex_);
  void swap_for_empty(List& list) REQUIRES(lists_mutex_);
  void use_again(List& list) EXCLUDES(lists_mutex_);
  bool may_have_line(KeyMark mark) REQUIRES(mutex_);
  void enter_lines_of(KeyMark mark) REQUIRES(mutex_);
  void enter_all() REQUIRES(mutex_);
  void enter(const List& list, bool is_of_refunds) REQUIRES(mutex_);
  void enter(std::string_view name, const Line& line, const Limit& limit) REQUIRES(mutex_);
  void send(const State& state, std::int64_t cost, Micros until) REQUIRES(mutex_);
  void refund_in_flight(const State& state, const Line& line) REQUIRES(mutex_);

  const std::size_t keys_max_;
  const std::function<void()> on_full_;
  std::array<Inbox, kInboxes> inboxes_;  // each thread writes to one of them
  base::Mutex lists_mutex_;
  std::vector<List> full_ GUARDED_BY(lists_mutex_), spare_ GUARDED_BY(lists_mutex_);
  std::atomic<bool> has_lines_{false};  // false only if there are none
  std::atomic<std::size_t> keys_{0};    // entered by a refund: the charge may come later
  std::atomic<std::size_t> in_flight_keys_{0};
  base::Mutex mutex_;
  std::uint64_t dropped_permits_ GUARDED_BY(mutex_) = 0;
  std::vector<State> refund_only_ GUARDED_BY(mutex_);  // created by refunds whose charges may still arrive
  FlatMap<State, UnsyncedCharge, Hash> book_ GUARDED_BY(mutex_);
  std::size_t taken_ GUARDED_BY(mutex_) = 0;  // where the next take() begins
  struct Refund {
    std::int64_t charged_us = 0, cost = 0;
    LocalUsage after{};
  };
  struct InFlight {
    std::int64_t cost = 0;
    Micros until{0};
    std::uint64_t epoch = 0;        // at the first of its charges
    std::vector<Refund> refunds{};  // subtracted if it comes back

    std::int64_t take_refunds(const UnsyncedCharge& charge, std::int64_t& cut_left);
  };
  std::atomic<std::uint64_t> epoch_{0};
  FlatMap<State, InFlight, Hash> in_flight_ GUARDED_BY(mutex_);
};

}  // namespace weir::fleet
