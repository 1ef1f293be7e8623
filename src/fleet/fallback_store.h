// Decisions by this node's share of every limit, counted in its own memory, while Redis does not decide alone.
//
// A key starts with this node's part of what Redis last said was left of it. Limits with Fallback::open are whole on
// every node, and those with Fallback::closed deny. What is admitted is unsynced (unsynced_charges.h), unless the
// caller asks Redis next. Permits in flight are also reported to Redis (unsynced_permits.h). A request is charged as
// one event, as in any store. Any thread. Tested by fallback_store_test.cc.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "fleet/doubt.h"
#include "fleet/key_memory.h"
#include "fleet/local_usage.h"
#include "fleet/script_call.h"
#include "fleet/share.h"
#include "fleet/unsynced_charges.h"
#include "fleet/unsynced_permits.h"
#include "store/memory_store.h"
#include "weir/result.h"
#include "weir/verdict.h"

namespace weir::fleet {

// What happens to an admitted charge.
class Booking {
 public:
  enum Kind : std::uint8_t {
    unsynced,  // it is unsynced
    none,      // none: Redis is asked, too
  };
  Booking(Kind kind) : kind_(kind) {}  // NOLINT(google-explicit-constructor): it is one
  // Redis may have it: the outcome of this call decides (settle() of unsynced_charges.h).
  explicit Booking(Doubt& doubt) : doubt_(&doubt) {}

  bool is_none() const { return kind_ == none; }
  Doubt* doubt() const { return doubt_; }  // null: Redis does not have it

 private:
  Kind kind_ = unsynced;
  Doubt* doubt_ = nullptr;
};

class FallbackStore {
 public:
  FallbackStore(KeyMemory& memory, UnsyncedCharges& unsynced, UnsyncedPermits& unsynced_permits, NodeRank rank = {});

  void use(store::MemoryStore& here) {
    here_ = &here;
    memory_.share_secret(here.secret());
  }

  void set_rank(NodeRank rank) { rank_.store(rank, std::memory_order_relaxed); }
  NodeRank rank() const { return rank_.load(std::memory_order_relaxed); }

  // A moment on both clocks: the monotonic clock, and the clock of this node's store.
  struct Moment {
    Micros steady;
    std::int64_t here;
  };
  Moment moment(Micros now) const { return {now, here_->clock().now().count()}; }

  // Finds the table slot of a charge to one limit, the most common request. The slot is prefetched while others are
  // looked at.
  table::Name find(const Charge& charge) const { return here_->find(charge); }
  Result<Decision> check(const Charge& charge, const table::Name& place, const KnownKey& key, Moment now,
                         Booking booking = Booking::unsynced);
  // Decides any request that script_call.h defines. `now` is of the monotonic clock.
  Result<Verdict> answer(const ScriptRequest& request, Moment now, Booking booking = Booking::unsynced);
  Result<Verdict> answer(const ScriptRequest& request, Micros now, Booking booking = Booking::unsynced) {
    return answer(request, moment(now), booking);
  }
  // refund()
  //
  // Refunds charges that answer() admitted at `charged_us`, by the clock of this node's store, if the request is not
  // admitted after all. The refund has that time, so later charges stay. `booked_us`: when they were booked, if they
  // were.
  void refund(std::span<const Charge> charges, std::int64_t charged_us, std::optional<std::int64_t> booked_us,
              Micros now);
  // decide_from_known()
  //
  // Decides charges that Redis did not decide although it answers others, from what is known of their keys
  // (KeyMemory::admit_alone()): all or none. Returns nothing if that is unknown for one of them, or if one has a
  // fallback other than `local`. Then the share decides.
  std::optional<Verdict> decide_from_known(std::span<const Charge> charges, Moment now, Booking booking);
  std::optional<Decision> decide_one_from_known(const Charge& charge, const KnownKey& key, Moment now, Booking booking);
  // Books admitted charges that were not booked.
  void book_all(std::span<const Charge> charges, Moment now, Booking booking);
  // Undoes the booking of charges that decide_from_known() booked at that time, if the request is not admitted after
  // all.
  void unbook(std::span<const Charge> charges, Moment booked, Booking booking);
  // Whether this process was forked. In a child, locks may be held by threads that do not exist, and nothing writes
  // charges back.
  bool is_child() const;
  Result<bool> release(std::string_view key, std::string_view id);
  Result<bool> forget(std::string_view key);

 private:
  class Shares;
  Result<Verdict> ask(const ScriptRequest& request, std::int64_t time,
                      std::span<store::MemoryStore::Returned> returned = {});
  void begin_key(const KnownKey& key, const Charge& whole, const Limit& part, Moment now);
  Result<Verdict> acquire(const Charge& charge, std::string_view id, Micros now);
  const Limit* share(const Limit& limit, Fallback fallback) const;
  struct Booked {
    std::int64_t cost = 0;
    std::int64_t charged_us = 0;  // by the clock of this node's store
    Booking booking = Booking::unsynced;
    RefundCount refunds{};   // of the key before it
    bool is_charge = false;  // admitted: no more is used now than its version of the limit allows
  };
  void add_in_doubt(const Charge& charge, const KnownKey& key, Doubt& doubt);
  void book(const Charge& charge, const KnownKey& key, const Limit& part, Decision& decision, Booked booked,
            Micros now);

  KeyMemory& memory_;
  UnsyncedCharges& unsynced_;
  UnsyncedPermits& unsynced_permits_;
  RefundOrder refund_order_;
  const std::uint64_t forks_;  // at construction
  store::MemoryStore* here_ = nullptr;
  std::atomic<NodeRank> rank_;
  static_assert(std::atomic<NodeRank>::is_always_lock_free);
};

}  // namespace weir::fleet
