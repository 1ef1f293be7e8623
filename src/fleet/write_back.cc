// Builds batches and handles their replies. See write_back.h.
#include "fleet/write_back.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/random_id.h"
#include "fleet/key_name.h"

namespace weir::fleet {

namespace {

std::vector<Charge> charges_of(const std::vector<UnsyncedCharge>& unsynced) {
  std::vector<Charge> out;
  for (const UnsyncedCharge& charge : unsynced)
    out.push_back({.key = charge.key(), .limit = &charge.limit, .cost = charge.cost});
  return out;
}

}  // namespace

WriteBacks::WriteBacks(UnsyncedCharges& unsynced, KeyMemory& memory)
    : unsynced_(unsynced), memory_(memory), node_(base::random_id()) {}

// Charges that have recovered need not be written.
std::optional<WriteBack> WriteBacks::batch_of(std::vector<UnsyncedCharge> unsynced, Micros now) {
  WriteBack batch;
  for (UnsyncedCharge& charge : unsynced) {
    if (charge.until <= now || charge.cost <= 0) {
      unsynced_.settle(charge, true);
    } else {
      batch.unsynced.push_back(std::move(charge));
    }
  }
  if (batch.unsynced.empty()) return {};
  batch.id = node_ + std::to_string(next_.fetch_add(1));
  batch.charges = charges_of(batch.unsynced);
  return batch;
}

std::optional<WriteBack> WriteBacks::take(std::size_t most, Micros now) {
  {
    const base::MutexLock lock(mutex_);
    if (!again_.empty()) {
      WriteBack batch = std::move(again_.back());
      again_.pop_back();
      count_waiting();
      return batch;
    }
  }
  while (!unsynced_.is_empty()) {
    std::vector<UnsyncedCharge> unsynced = unsynced_.take(most);
    if (unsynced.empty()) break;
    if (auto batch = batch_of(std::move(unsynced), now)) return batch;
  }
  return {};
}

WriteBacks::ForRequest WriteBacks::take_for(std::span<const Charge> charges, std::uint32_t unsynced_places,
                                            Micros now) {
  if (unsynced_places == 0) return {};
  ForRequest out;
  std::vector<UnsyncedCharge> unsynced;
  for (std::size_t i = 0; i < charges.size(); ++i) {
    if ((unsynced_places >> i & 1) == 0) continue;
    const KeyName name(charges[i]);
    if (auto charge = unsynced_.take_one({name, memory_.mark_of(name)}, *charges[i].limit, out.are_elsewhere)) {
      unsynced.push_back(*std::move(charge));
    }
  }
  if (!unsynced.empty()) out.batch = batch_of(std::move(unsynced), now);
  return out;
}

void WriteBacks::count_waiting() { waiting_.store(again_.size() + parts_.size()); }

void WriteBacks::send_again(WriteBack batch, const SharedTicket& shared) {
  const base::MutexLock lock(mutex_);
  if (shared.id && shared.count > 1) {
    WEIR_ASSERT(shared.place < shared.count);
    std::vector<Part>& parts = parts_[*shared.id];
    parts.push_back({std::move(batch), shared.place});
    if (parts.size() < shared.count) return count_waiting();
    std::ranges::sort(parts, {}, &Part::place);  // the first one selects the ticket's key
    WriteBack all{.id = *shared.id};
    for (Part& part : parts) std::ranges::move(part.batch.unsynced, std::back_inserter(all.unsynced));
    all.charges = charges_of(all.unsynced);
    parts_.erase(*shared.id);
    batch = std::move(all);
  }
  again_.push_back(std::move(batch));
  count_waiting();
}

void WriteBacks::finish(WriteBack batch, const Reply& reply, Micros now) {
  if (reply.state == State::failed) {
    if (reply.is_in_doubt) return send_again(std::move(batch), reply.shared);
    for (const UnsyncedCharge& charge : batch.unsynced) unsynced_.settle(charge, false);
    return;
  }
  if (reply.state == State::refused) {
    // Redis cannot read the value of one of the keys: the others are written one by one.
    const bool is_one = batch.unsynced.size() == 1;
    for (UnsyncedCharge& charge : batch.unsynced) {
      if (is_one) {
        unsynced_.settle(charge, true);
        continue;
      }
      std::vector<UnsyncedCharge> alone;
      alone.push_back(std::move(charge));
      if (auto again = batch_of(std::move(alone), now)) send_again(*std::move(again));
    }
    return;
  }
  WEIR_ASSERT(reply.decisions.size() == batch.unsynced.size());
  const KeyMemory::Asked asked = memory_.begin(now);
  for (std::size_t i = 0; i < batch.unsynced.size(); ++i) {
    const UnsyncedCharge& charge = batch.unsynced[i];
    memory_.note(charge.mark, charge.limit, 0, reply.decisions[i], reply.decided_us, asked, 0, now,
                 memory_.is_lasting(charge.key()));
    unsynced_.settle(charge, true);
    memory_.recount_unsynced(charge.mark, charge.limit);
    written_.fetch_add(static_cast<std::uint64_t>(charge.cost), std::memory_order_relaxed);
  }
}

void WriteBacks::give_up() {
  const base::MutexLock lock(mutex_);
  for (const WriteBack& batch : again_) {
    for (const UnsyncedCharge& charge : batch.unsynced) unsynced_.settle(charge, false);
  }
  for (const auto& [id, parts] : parts_) {
    for (const Part& part : parts) {
      for (const UnsyncedCharge& charge : part.batch.unsynced) unsynced_.settle(charge, false);
    }
  }
  again_.clear();
  parts_.clear();
  count_waiting();
}

}  // namespace weir::fleet
