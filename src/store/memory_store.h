// The memory store: charges requests to the table, by keys as text.
//
// It hashes keys to names. What a request does to the table is atomic. `now` is a reading of the store's clock and may
// be old when it is used: the table reads the clock again where that matters. Any thread may call any member. Tested by
// tests/store_contract_test.cc, a suite that every store must pass, and tests/full_table_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "store/store.h"
#include "table/table.h"
#include "weir/clock.h"
#include "weir/result.h"
#include "weir/verdict.h"

namespace weir::store {

struct StoreOptions {
  std::size_t keys = 0;       // 0: a million, or the capacity of the file
  std::size_t log_bytes = 0;  // for logs, permits in flight and large limits; 0: 32 for each key
  std::size_t memory = 0;     // total bytes: sets those above that are 0; 0: no total
  std::string file{};         // empty: in memory
  table::FindCalendar find_calendar{};
};

class MemoryStore final : public Store {
 public:
  // A null clock selects the table's own, which all processes of a file share.
  static Result<std::unique_ptr<MemoryStore>> open(StoreOptions options, std::shared_ptr<const Clock> clock);

  const Clock& clock() const { return *table_->clock(); }

  Result<Decision> check(const Charge& charge, std::int64_t now) override;
  // Consecutive requests for one key are decided together, so a hot key costs one change for all.
  void check_many(std::span<const Charge> charges, std::int64_t now, std::span<Result<Decision>> answers) override;
  // check() in two steps: find() starts to load the key's place into the cache, then check() decides.
  table::Name find(const Charge& charge) const;
  base::SipKey secret() const { return table_->secret(); }  // of hashing keys to places
  Result<Decision> check(const table::Name& place, const Charge& charge, std::int64_t now);

  using Store::commit;
  // Also says what was refunded of each charge.
  Result<Verdict> commit(std::span<const Charge> actual, std::string_view id, std::int64_t now,
                         std::span<Returned> returned) {
    return answer({.what = Request::What::commit, .charges = actual, .id = id, .now = now, .returned = returned});
  }
  // refund()
  //
  // Refunds charges that were admitted at `charged_us` with these costs, as far as they still count. A negative cost
  // has no time, so it would also refund later charges of other requests.
  Result<Verdict> refund(std::span<const Charge> charges, std::int64_t charged_us, std::int64_t now,
                         std::span<Returned> returned) {
    return answer({.what = Request::What::refund,
                   .charges = charges,
                   .now = now,
                   .charged_us = charged_us,
                   .returned = returned});
  }

  Result<table::Ruling> decide_all(const Request& request, std::span<Decision> decisions,
                                   std::span<std::int64_t> reserved) override;
  Result<Decision> preview(const Charge& charge, std::int64_t now) override;
  Result<Decision> acquire(const Charge& charge, std::string_view id, std::int64_t now) override;
  Result<bool> release(std::string_view key, std::string_view id, std::int64_t now) override;
  Result<bool> reset(std::string_view key, std::int64_t now) override;
  // reset() under one algorithm only, or only for the state that this limit uses.
  Result<bool> forget(Algorithm algorithm, std::string_view key, std::int64_t now) {
    return table_->forget(algorithm, key, now);
  }
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

  static constexpr std::size_t kBatch = 16;  // requests prefetched before the first is decided
  void prepare(std::span<const Charge> charges, table::Debit* debits) const;
  void check_run(std::span<table::Debit> debits, std::int64_t now, table::Unit* spotted,
                 std::span<Result<Decision>> answers);
  using Debits = base::Few<table::Debit, table::kChargesMax>;
  void add_debits(std::span<const Charge> charges, Debits& debits) const;
  Result<table::Ruling> settle(const Request& request, std::span<Decision> decisions, std::span<std::int64_t> reserved);
  table::Debit debit_of(const Charge& charge, table::Act act) const;
  Result<table::Debit> charge_alone(table::Debit debit, std::int64_t now);
  void refund_elsewhere(const table::Debit& settled, const table::Ticket& ticket, std::int64_t now);

  std::unique_ptr<table::Table> table_;
};

}  // namespace weir::store
