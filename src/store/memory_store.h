// The memory store: charges requests to the table, by keys as text.
//
// It hashes keys to names, merges a key that is given twice, and assembles the verdict. What a request does to the
// table is atomic. `now` is a reading of the store's clock and may be old when it is used: the table reads the clock
// again where that matters. Any thread may call any member. Tested by tests/store_contract_test.cc, a suite that
// every store must pass, and tests/full_table_test.cc.
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
  std::size_t keys = 0;       // 0: a million, or the capacity of the file
  std::size_t log_bytes = 0;  // for logs, permits in flight and large limits; 0: 32 for each key
  std::size_t memory = 0;     // total bytes: sets those above that are 0; 0: no total
  std::string file{};         // empty: in memory
  table::FindCalendar find_calendar{};
};

// An idempotency id; an empty name means none.
struct RequestId {
  std::string_view name{};
  Micros lasts{600'000'000};
};

// The errors of settling a reservation that does not exist, and of reserving under an id that is in use.
inline Error not_reserved() {
  return {ErrorCode::not_found, "no such reservation for this request: it was already settled, or it has expired"};
}
inline Error reserved_already() {
  return {ErrorCode::invalid_argument, "this reservation is already open: settle it, or use another id"};
}

class MemoryStore {
 public:
  // A null clock selects the table's own, which all processes of a file share.
  static Result<std::unique_ptr<MemoryStore>> open(StoreOptions options, std::shared_ptr<const Clock> clock);

  const Clock& clock() const { return *table_->clock(); }

  // check(), check_many()
  //
  // The fast path: requests of one charge each. Many are decided in order. Consecutive requests for one key are
  // decided together, so a hot key costs one change for all.
  Result<Decision> check(const Charge& charge, std::int64_t now);
  void check_many(std::span<const Charge> charges, std::int64_t now, std::span<Result<Decision>> answers);
  // check() in two steps: find() starts to load the key's place into the cache, then check() decides.
  table::Name find(const Charge& charge) const;
  table::SipKey secret() const { return table_->secret(); }  // of hashing keys to places
  Result<Decision> check(const table::Name& place, const Charge& charge, std::int64_t now);

  // charge()
  //
  // One request of up to 32 charges: charges all or none. Equal keys with equal limits are merged. If a request with
  // this id was allowed before, this one is allowed, returns the current state of its keys and is charged nothing.
  Result<Verdict> charge(std::span<const Charge> charges, std::int64_t now, RequestId id = {});

  // The same into the caller's array, one decision per charge, without allocation.
  struct Judgement {
    bool allowed = false;
    std::size_t binding = 0;
  };
  Result<Judgement> judge(std::span<const Charge> charges, std::int64_t now, std::span<Decision> decisions);

  // preview()
  //
  // What check() would return, except that `remaining` is what is left before the charge. Changes nothing.
  Result<Decision> preview(const Charge& charge, std::int64_t now);

  // overdraw()
  //
  // Up to 32 charges, each as much as fits. Never denies.
  Result<Verdict> overdraw(std::span<const Charge> charges, std::int64_t now);

  // reserve(), commit()
  //
  // Charges up to 16 limits, to be settled later, once, at the actual costs. Excess is refunded to the state that was
  // charged, as of then; a shortfall is charged now, at most to full. commit() fails with not_found if there is no
  // such reservation. `returned` is empty or has one element per charge.
  struct Returned {
    std::int64_t permits = 0;     // refunded
    std::int64_t charged_us = 0;  // when they were charged
  };
  Result<Verdict> reserve(std::span<const Charge> charges, std::string_view id, Micros lasts, std::int64_t now);
  Result<Verdict> commit(std::span<const Charge> actual, std::string_view id, std::int64_t now,
                         std::span<Returned> returned = {});
  // refund()
  //
  // Refunds charges that were admitted at `charged_us` with these costs, as far as they still count. A negative cost
  // has no time, so it would also refund later charges of other requests.
  Result<Verdict> refund(std::span<const Charge> charges, std::int64_t charged_us, std::int64_t now,
                         std::span<Returned> returned);

  Result<Decision> acquire(const Charge& charge, std::string_view id, std::int64_t now);
  Result<bool> release(std::string_view key, std::string_view id, std::int64_t now);
  Result<bool> reset(std::string_view key, std::int64_t now);
  // reset() under one algorithm only, or only for the state that this limit uses.
  Result<bool> forget(Algorithm algorithm, std::string_view key, std::int64_t now);
  Result<bool> forget(const Limit& limit, std::string_view key, std::int64_t now);

  // sweep()
  //
  // Removes recovered keys from a slice of the table, in well below 1 ms. Returns true at the end of a round. One
  // thread at a time may call it, and then rests for sweep_rest(). A round takes about the shortest period of all
  // limits, but at least 1 s and at most 8 s, and at least 1 ms per slice.
  bool sweep(std::int64_t now);
  Micros sweep_rest() const;

  // Stored keys, including expired keys that are not swept yet.
  std::size_t size() const { return table_->size(); }
  std::size_t capacity() const { return table_->capacity(); }
  table::Counters counters() const { return table_->counters(); }
  table::Table& table() { return *table_; }

 private:
  explicit MemoryStore(std::unique_ptr<table::Table> table) : table_(std::move(table)) {}

  class Batch;
  static constexpr std::size_t kBatch = 16;  // requests prefetched before the first is decided
  void prepare(std::span<const Charge> charges, table::Debit* debits) const;
  void check_run(std::span<table::Debit> debits, std::int64_t now, table::Unit* spotted,
                 std::span<Result<Decision>> answers);
  Result<Verdict> settle(std::span<const Charge> charges, std::string_view id, Micros lasts, std::int64_t now,
                         bool take, std::span<Returned> returned);
  void refund_elsewhere(const table::Debit& settled, const table::Ticket& ticket, std::int64_t now);

  std::unique_ptr<table::Table> table_;
};

}  // namespace weir
