// Decisions by this node's share of every limit, counted in its own memory, while Redis does not decide alone.
//
// A key starts with this node's part of what Redis last said was left of it. Limits with Fallback::open are whole on
// every node, and those with Fallback::closed deny. What is admitted is unsynced (owed.h), unless the caller asks
// Redis next. Permits in flight are also reported to Redis (lent.h). A request is charged as one event, as in any
// store. Any thread. Tested by local_test.cc.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "fleet/key_memory.h"
#include "fleet/lent.h"
#include "fleet/owed.h"
#include "fleet/script_call.h"
#include "fleet/share.h"
#include "store/memory_store.h"
#include "weir/result.h"
#include "weir/verdict.h"

namespace weir {

// What happens to an admitted charge.
enum class Booking : std::uint8_t {
  owe,    // it is unsynced
  doubt,  // Redis may have it: settle() of owed.h decides
  none,   // none: Redis is asked, too
};

class Local {
 public:
  Local(KeyMemory& memory, Owed& owed, Lent& lent, Seat seat = {});
  Local(const Local&) = delete;
  Local& operator=(const Local&) = delete;

  void use(MemoryStore& here) {
    here_ = &here;
    memory_.share_secret(here.secret());
  }

  void sit(Seat seat) { seat_.store(std::uint64_t{seat.nodes} << 32 | seat.rank, std::memory_order_relaxed); }
  Seat seat() const {
    const std::uint64_t seat = seat_.load(std::memory_order_relaxed);
    return {static_cast<std::uint32_t>(seat), static_cast<std::uint32_t>(seat >> 32)};
  }

  // A moment on both clocks: the monotonic clock, and the clock of this node's store.
  struct Moment {
    Micros steady;
    std::int64_t here;
  };
  Moment moment(Micros now) const { return {now, here_->clock().now().count()}; }

  // Finds the table slot of a charge to one limit, the most common request. The slot is prefetched while others are
  // looked at.
  table::Name find(const Charge& charge) const { return here_->find(charge); }
  Result<Decision> check(const Charge& charge, const table::Name& place, const KnownKey& key, Micros now,
                         Booking booking = Booking::owe);
  // Answers any question that script_call.h defines. `now` is of the monotonic clock.
  Result<Verdict> answer(ScriptRequest::What what, std::span<const Charge> charges, std::string_view id, Micros lasts,
                         Moment now, Booking booking = Booking::owe);
  Result<Verdict> answer(ScriptRequest::What what, std::span<const Charge> charges, std::string_view id, Micros lasts,
                         Micros now, Booking booking = Booking::owe) {
    return answer(what, charges, id, lasts, moment(now), booking);
  }
  // refund()
  //
  // Refunds charges that answer() admitted at `charged_us`, by the clock of this node's store, if the request is not
  // admitted after all. The refund has that time, so later charges stay. `booked_us`: when they were booked, if they
  // were.
  void refund(std::span<const Charge> charges, std::int64_t charged_us, std::optional<std::int64_t> booked_us,
              Micros now);
  // shed()
  //
  // Decides charges that Redis did not decide although it answers others, from what is known of their keys
  // (KeyMemory::spare()): all or none. Returns nothing if that is unknown for one of them, or if one has a fallback
  // other than `local`. Then the share decides.
  std::optional<Verdict> shed(std::span<const Charge> charges, Moment now, Booking booking);
  std::optional<Decision> shed_one(const Charge& charge, const KnownKey& key, Moment now, Booking booking);
  // Books admitted charges that were not booked.
  void book_all(std::span<const Charge> charges, Moment now, Booking booking);
  // Undoes the booking of charges that shed() booked at that time, if the request is not admitted after all.
  void unbook(std::span<const Charge> charges, Moment booked, Booking booking);
  // Whether this process was forked. In a child, locks may be held by threads that do not exist, and nothing writes
  // charges back.
  bool is_child() const;
  Result<bool> release(std::string_view key, std::string_view id);
  Result<bool> forget(std::string_view key);

 private:
  class Shares;
  Result<Verdict> ask(ScriptRequest::What what, std::span<const Charge> charges, std::string_view id, Micros lasts,
                      std::int64_t time, std::span<MemoryStore::Returned> returned);
  void begin_key(const KnownKey& key, const Charge& whole, const Limit& part, Moment now);
  Result<Verdict> acquire(const Charge& charge, std::string_view id, Micros now);
  const Limit* share(const Limit& limit, Fallback fallback) const;
  struct Booked {
    std::int64_t cost = 0;
    std::int64_t charged_us = 0;  // by the clock of this node's store
    Booking booking = Booking::owe;
  };
  void book(const Charge& charge, const KnownKey& key, const Limit& part, Decision& decision, Booked booked,
            Micros now);

  KeyMemory& memory_;
  Owed& owed_;
  Lent& lent_;
  const std::uint64_t forks_;  // at construction
  MemoryStore* here_ = nullptr;
  std::atomic<std::uint64_t> seat_{0};
};

}  // namespace weir
