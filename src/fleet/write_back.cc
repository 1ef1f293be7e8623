// Builds batches and handles their replies. See write_back.h.
#include "fleet/write_back.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/random_id.h"
#include "fleet/key_name.h"

namespace weir {

namespace {

std::vector<Charge> charges_of(const std::vector<Debt>& debts) {
  std::vector<Charge> out;
  for (const Debt& debt : debts) out.push_back({.key = debt.key(), .limit = &debt.limit, .cost = debt.cost});
  return out;
}

}  // namespace

WriteBacks::WriteBacks(Owed& owed, KeyMemory& memory) : owed_(owed), memory_(memory), node_(random_id()) {}

// Charges that have recovered need not be written.
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
  batch.charges = charges_of(batch.debts);
  return batch;
}

std::optional<WriteBack> WriteBacks::take(std::size_t most, Micros now) {
  {
    const std::lock_guard lock(mutex_);
    if (!again_.empty()) {
      WriteBack batch = std::move(again_.back());
      again_.pop_back();
      count_waiting();
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
    const KeyName name(charges[i]);
    if (auto debt = owed_.take_one({name, memory_.mark_of(name)}, *charges[i].limit, out.are_elsewhere)) {
      debts.push_back(*std::move(debt));
    }
  }
  if (!debts.empty()) out.batch = batch_of(std::move(debts), now);
  return out;
}

// The lock is held.
void WriteBacks::count_waiting() { waiting_.store(again_.size() + parts_.size()); }

void WriteBacks::send_again(WriteBack batch, const SharedTicket& shared) {
  const std::lock_guard lock(mutex_);
  if (shared.id && shared.count > 1) {
    std::vector<Part>& parts = parts_[*shared.id];
    parts.push_back({std::move(batch), shared.place});
    if (parts.size() < shared.count) return count_waiting();
    std::ranges::sort(parts, {}, &Part::place);  // the first one selects the ticket's key
    WriteBack all{.id = *shared.id};
    for (Part& part : parts) std::ranges::move(part.batch.debts, std::back_inserter(all.debts));
    all.charges = charges_of(all.debts);
    parts_.erase(*shared.id);
    batch = std::move(all);
  }
  again_.push_back(std::move(batch));
  count_waiting();
}

void WriteBacks::finish(WriteBack batch, const Reply& reply, Micros now) {
  if (reply.state == Ask::State::failed) {
    if (reply.is_in_doubt) return send_again(std::move(batch), reply.shared);
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
    memory_.note(debt.mark, debt.limit, 0, reply.decisions[i], reply.decided_us, asked, 0, now);
    owed_.settle(debt, true);
    memory_.recount_unsynced(debt.mark, debt.limit);
    written_.fetch_add(static_cast<std::uint64_t>(debt.cost), std::memory_order_relaxed);
  }
}

void WriteBacks::give_up() {
  const std::lock_guard lock(mutex_);
  for (const WriteBack& batch : again_) {
    for (const Debt& debt : batch.debts) owed_.settle(debt, false);
  }
  for (const auto& [id, parts] : parts_) {
    for (const Part& part : parts) {
      for (const Debt& debt : part.batch.debts) owed_.settle(debt, false);
    }
  }
  again_.clear();
  parts_.clear();
  count_waiting();
}

}  // namespace weir
