// Batches out, answers in. See write_back.h.
#include "fleet/write_back.h"

#include <utility>

#include "fleet/key_name.h"
#include "random_id.h"

namespace weir {

WriteBacks::WriteBacks(Owed& owed, KeyMemory& memory) : owed_(owed), memory_(memory), node_(random_id()) {}

// Charges that have been recovered from need not be written.
std::optional<WriteBack> WriteBacks::batch_of(std::vector<Debt> debts, Micros now) {
  WriteBack batch;
  for (Debt& debt : debts) {
    if (debt.until <= now || debt.cost <= 0) {
      owed_.settle(debt, true);
    } else {
      batch.debts.push_back(std::move(debt));
    }
  }
  if (batch.debts.empty()) return {};
  batch.id = node_ + std::to_string(next_.fetch_add(1));
  for (const Debt& debt : batch.debts) {
    batch.charges.push_back({.key = debt.key(), .limit = &debt.limit, .cost = debt.cost});
  }
  return batch;
}

std::optional<WriteBack> WriteBacks::take(std::size_t most, Micros now) {
  {
    const std::lock_guard lock(mutex_);
    if (!again_.empty()) {
      WriteBack batch = std::move(again_.back());
      again_.pop_back();
      waiting_.store(again_.size());
      return batch;
    }
  }
  while (!owed_.is_empty()) {
    std::vector<Debt> debts = owed_.take(most);
    if (debts.empty()) break;
    if (auto batch = batch_of(std::move(debts), now)) return batch;
  }
  return {};
}

WriteBacks::ForRequest WriteBacks::take_for(std::span<const Charge> charges, std::uint32_t owing, Micros now) {
  if (owing == 0) return {};
  ForRequest out;
  std::vector<Debt> debts;
  for (std::size_t i = 0; i < charges.size(); ++i) {
    if ((owing >> i & 1) == 0) continue;
    if (auto debt = owed_.take_one(KeyName(charges[i]), *charges[i].limit, out.are_elsewhere))
      debts.push_back(*std::move(debt));
  }
  if (!debts.empty()) out.batch = batch_of(std::move(debts), now);
  return out;
}

void WriteBacks::send_again(WriteBack batch) {
  const std::lock_guard lock(mutex_);
  again_.push_back(std::move(batch));
  waiting_.store(again_.size());
}

void WriteBacks::finish(WriteBack batch, const Reply& reply, Micros now) {
  if (reply.state == Ask::State::failed) {
    if (reply.is_in_doubt) return send_again(std::move(batch));
    for (const Debt& debt : batch.debts) owed_.settle(debt, false);
    return;
  }
  if (reply.state == Ask::State::refused) {
    // Redis cannot read the value of one of the keys: the others are written one by one.
    const bool is_one = batch.debts.size() == 1;
    for (Debt& debt : batch.debts) {
      if (is_one) {
        owed_.settle(debt, true);
        continue;
      }
      std::vector<Debt> alone;
      alone.push_back(std::move(debt));
      if (auto again = batch_of(std::move(alone), now)) send_again(*std::move(again));
    }
    return;
  }
  const KeyMemory::Asked asked = memory_.begin(now);
  for (std::size_t i = 0; i < batch.debts.size(); ++i) {
    const Debt& debt = batch.debts[i];
    memory_.note(memory_.mark_of(debt.name), debt.limit, 0, reply.decisions[i], reply.decided_us, asked, 0, now);
    owed_.settle(debt, true);
    written_.fetch_add(static_cast<std::uint64_t>(debt.cost), std::memory_order_relaxed);
  }
}

void WriteBacks::give_up() {
  const std::lock_guard lock(mutex_);
  for (const WriteBack& batch : again_) {
    for (const Debt& debt : batch.debts) owed_.settle(debt, false);
  }
  again_.clear();
  waiting_.store(0);
}

}  // namespace weir
