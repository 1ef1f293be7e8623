// A list of permits by name. See unsynced_permits.h.
#include "fleet/unsynced_permits.h"

#include <utility>

namespace weir::fleet {

std::string UnsyncedPermits::name_of(std::string_view key, std::string_view id) {
  return std::to_string(key.size()).append(":").append(key).append(id);
}

void UnsyncedPermits::wait(std::string name) {
  waiting_.push_back(std::move(name));
  waiting_count_.store(waiting_.size(), std::memory_order_relaxed);
}

// A permit that is acquired again under its id lasts longer. Redis receives that, too.
void UnsyncedPermits::add(UnsyncedPermit permit) {
  std::string name = name_of(permit.key, permit.id);
  const base::MutexLock lock(mutex_);
  const auto known = entries_.find(name);
  if (known == entries_.end()) {
    if (entries_.size() >= most_ || waiting_.size() >= most_) return;
    entries_.emplace(name, Entry{std::move(permit)});
    return wait(std::move(name));
  }
  known->second.permit = std::move(permit);
  known->second.is_released = false;
}

void UnsyncedPermits::release(std::string_view key, std::string_view id) {
  const base::MutexLock lock(mutex_);
  const auto known = entries_.find(name_of(key, id));
  if (known == entries_.end()) return;
  if (known->second.is_taken) {
    known->second.is_released = true;
  } else {
    entries_.erase(known);
  }
}

void UnsyncedPermits::forget(std::string_view key) {
  const base::MutexLock lock(mutex_);
  for (auto entry = entries_.begin(); entry != entries_.end();) {
    const bool is_of_key = entry->second.permit.key == key;
    if (is_of_key) entry->second.is_released = true;
    entry = is_of_key && !entry->second.is_taken ? entries_.erase(entry) : std::next(entry);
  }
}

std::vector<UnsyncedPermit> UnsyncedPermits::take(std::size_t most, Micros now) {
  std::vector<UnsyncedPermit> out;
  const base::MutexLock lock(mutex_);
  while (!waiting_.empty() && out.size() < most) {
    const auto known = entries_.find(waiting_.back());
    waiting_.pop_back();
    if (known == entries_.end() || known->second.is_taken) continue;
    if (known->second.permit.until <= now) {
      entries_.erase(known);
      continue;
    }
    known->second.is_taken = true;
    out.push_back(known->second.permit);
  }
  waiting_count_.store(waiting_.size(), std::memory_order_relaxed);
  return out;
}

bool UnsyncedPermits::finish(const UnsyncedPermit& permit, bool is_known) {
  std::string name = name_of(permit.key, permit.id);
  const base::MutexLock lock(mutex_);
  const auto known = entries_.find(name);
  if (known == entries_.end()) return false;
  const bool is_released = known->second.is_released, is_renewed = known->second.permit.until != permit.until;
  if (is_released || (is_known && !is_renewed)) {
    entries_.erase(known);
    return is_released;
  }
  known->second.is_taken = false;
  wait(std::move(name));
  return false;
}

}  // namespace weir::fleet
