// The memory store: a request's charges on the table, with keys as people write them.
//
// It turns keys into names, merges a key that is given twice, and puts a verdict together; what a request does to the
// table is one event. `now` is a reading of the store's clock, and may be old by the time it is used: the table asks
// the clock again where that matters. All members may be called from any thread. Tested by
// tests/store_contract_test.cc, a suite that any store must pass, and tests/full_table_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "table/table.h"
#include "weir/clock.h"
#include "weir/result.h"
#include "weir/verdict.h"

namespace weir {

struct StoreOptions {
  std::size_t keys = 0;       // 0: a million, or what the file has room for
  std::size_t log_bytes = 0;  // for logs, permits in flight and large limits; 0: 32 for each key
  std::size_t memory = 0;     // bytes of the whole: what was left at 0 above follows from it; 0: no matter
  std::string file{};         // empty: in memory
  table::FindCalendar find_calendar{};
};

// An idempotency id. An empty name is none.
struct RequestId {
  std::string_view name{};
  Micros lasts{600'000'000};
};

// What whoever settles is told if there is nothing to settle; and who reserves under an id that is in use.
inline Error not_reserved() {
  return {ErrorCode::not_found, "no such reservation on these keys: it was settled before, or it has ended"};
}
inline Error reserved_already() {
  return {ErrorCode::invalid_argument, "this reservation is open already: settle it, or take another id"};
}

class MemoryStore {
 public:
  // A null clock is the table's own, which all processes of a file share.
  static Result<std::unique_ptr<MemoryStore>> open(StoreOptions options, std::shared_ptr<const Clock> clock);

  const Clock& clock() const { return *table_->clock(); }

  // check(), check_many()
  //
  // Requests of one charge each: the fast way. Many are decided in their order; those of one key that follow each other
  // are decided at once, so that a hot key costs one change for all.
  Result<Decision> check(const Charge& charge, std::int64_t now);
  void check_many(std::span<const Charge> charges, std::int64_t now, std::span<Result<Decision>> answers);
  // The same of one in two steps: its place, which comes into the cache meanwhile, and the decision.
  table::Name find(const Charge& charge) const;
  table::SipKey secret() const { return table_->secret(); }  // of places
  Result<Decision> check(const table::Name& place, const Charge& charge, std::int64_t now);

  // charge()
  //
  // One request of up to 32 charges: all are taken or none is. The same key and limit twice are merged. If a request
  // of the same id was allowed before, this one is too, is told what its keys hold, and takes nothing.
  Result<Verdict> charge(std::span<const Charge> charges, std::int64_t now, RequestId id = {});

  // The same into the caller's room, one decision for each charge: nothing is asked of the heap.
  struct Judgement {
    bool allowed = false;
    std::size_t binding = 0;
  };
  Result<Judgement> judge(std::span<const Charge> charges, std::int64_t now, std::span<Decision> decisions);

  // preview()
  //
  // What check() would say, with what is left before it. Changes nothing.
  Result<Decision> preview(const Charge& charge, std::int64_t now);

  // overdraw()
  //
  // Up to 32 charges, each as much of it as there is room for: never denied.
  Result<Verdict> overdraw(std::span<const Charge> charges, std::int64_t now);

  // reserve(), commit()
  //
  // Up to 16 charges that are settled later, once, with what they really cost. What was reserved too much is refunded
  // to the state that was charged, as of then; what was too little is charged now, at most to full. Committing what is
  // not reserved any more is not_found. `returned`, if it is given, has room for each charge.
  struct Returned {
    std::int64_t permits = 0;     // that came back
    std::int64_t charged_us = 0;  // when they were charged
  };
  Result<Verdict> reserve(std::span<const Charge> charges, std::string_view id, Micros lasts, std::int64_t now);
  Result<Verdict> commit(std::span<const Charge> actual, std::string_view id, std::int64_t now,
                         std::span<Returned> returned = {});
  // refund()
  //
  // Takes back charges that were admitted at `charged_us` with these costs, as far as they still count. A negative cost
  // has no time, so it would also refund what others were charged for since.
  Result<Verdict> refund(std::span<const Charge> charges, std::int64_t charged_us, std::int64_t now,
                         std::span<Returned> returned);

  Result<Decision> acquire(const Charge& charge, std::string_view id, std::int64_t now);
  Result<bool> release(std::string_view key, std::string_view id, std::int64_t now);
  Result<bool> reset(std::string_view key, std::int64_t now);
  // The same, under one algorithm only; or only the state that this limit counts in.
  Result<bool> forget(Algorithm algorithm, std::string_view key, std::int64_t now);
  Result<bool> forget(const Limit& limit, std::string_view key, std::int64_t now);

  // sweep()
  //
  // Removes keys that have recovered from a slice of the table, in well below a millisecond. True if that ended a
  // round. For any one thread, which then rests so long that a lapsed key is gone within another of its periods; but a
  // round takes at least a second.
  bool sweep(std::int64_t now);
  Micros sweep_rest() const;

  // Keys held, lapsed ones that no sweep has met yet included.
  std::size_t size() const { return table_->size(); }
  std::size_t capacity() const { return table_->capacity(); }
  table::Counters counters() const { return table_->counters(); }
  table::Table& table() { return *table_; }

 private:
  explicit MemoryStore(std::unique_ptr<table::Table> table) : table_(std::move(table)) {}

  class Batch;
  static constexpr std::size_t kBatch = 16;  // requests whose lines are asked for before the first is decided
  void prepare(std::span<const Charge> charges, table::Debit* debits) const;
  void check_run(std::span<table::Debit> debits, std::int64_t now, table::Unit* spotted,
                 std::span<Result<Decision>> answers);
  Result<Verdict> settle(std::span<const Charge> charges, std::string_view id, Micros lasts, std::int64_t now,
                         bool take, std::span<Returned> returned);
  void refund_elsewhere(const table::Debit& settled, const table::Ticket& ticket, std::int64_t now);

  std::unique_ptr<table::Table> table_;
};

}  // namespace weir
