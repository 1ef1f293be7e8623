// A memory store as an engine for one key, to be compared with the oracle on traces.
//
// Also what such tests ask of a store directly: a refund, whether the table can keep the limits of a trace, and how
// many limits are in blocks. One thread. Used by versions_test.cc, churn_test.cc, restart_test.cc and blocks_test.cc.
#pragma once

#include <algorithm>
#include <memory>
#include <string_view>

#include "store/memory_store.h"
#include "trace.h"

namespace weir::test {

// Refunds permits of a charge that was made at `at`, as when a reservation is settled.
inline Result<Decision> refund(store::MemoryStore& store, const Charge& charge, std::int64_t now, std::int64_t at) {
  const algorithm::Charged charged = algorithm::charged_at(*charge.limit, at);
  table::Debit debit{.name = store.table().key_name(*charge.limit, charge.key),
                     .limit = charge.limit,
                     .cost = -charge.cost,
                     .act = table::Act::refund,
                     .charged = &charged};
  if (const auto ruling = store.table().charge({&debit, 1}, {}, now); !ruling) return fail(ruling.error());
  return debit.decision;
}

// Whether the states of all limits of a trace fit blocks of the table.
inline bool fits_blocks(const Trace& trace) {
  return std::ranges::all_of(trace.limits, [](const Limit& limit) { return table::packing_of(limit).fits_block; });
}

// The keys whose limit is in their block, since it has no number.
inline int limits_in_blocks(store::MemoryStore& store) {
  int count = 0;
  const table::Region& region = store.table().region();
  for (std::uint64_t i = 0; i < region.pages(); ++i) {
    for (const auto& line : region.page(i).slots) {
      for (const table::Unit& unit : line) count += table::limit_of(unit.tag) == table::kInBlock;
    }
  }
  return count;
}

class TableEngine final : public Engine {
 public:
  explicit TableEngine(const Limit& limit) : limit_(limit) {}
  std::string_view name() const override { return "the table"; }
  std::unique_ptr<Engine> clone() const override { return nullptr; }
  void change(const Limit& limit) override { limit_ = limit; }
  Decision check(std::int64_t now, std::int64_t cost) override {
    clock_->set(Micros{now});
    return store_->check({.key = "k", .limit = &limit_, .cost = cost}, now).value_or(kFailed);
  }
  Decision acquire(std::int64_t now, std::string_view id, std::int64_t cost) override {
    clock_->set(Micros{now});
    return store_->acquire({.key = "k", .limit = &limit_, .cost = cost}, id, now).value_or(kFailed);
  }
  Decision refund(std::int64_t now, std::int64_t cost, std::int64_t at) override {
    clock_->set(Micros{now});
    return test::refund(*store_, {.key = "k", .limit = &limit_, .cost = cost}, now, at).value_or(kFailed);
  }
  bool release(std::int64_t now, std::string_view id) override {
    clock_->set(Micros{now});
    return store_->release("k", id, now).value_or(false);
  }

 private:
  static constexpr Decision kFailed{.limit = -1};

  std::shared_ptr<ManualClock> clock_ = std::make_shared<ManualClock>(Micros{0});
  std::unique_ptr<store::MemoryStore> store_ =
      store::MemoryStore::open({.keys = 200, .log_bytes = 1 << 22}, clock_).value();
  Limit limit_;
};

}  // namespace weir::test
