// Desks and the book. See owed.h.
#include "fleet/owed.h"

#include <algorithm>
#include <utility>

namespace weir {
namespace {

std::size_t own_desk(std::size_t desks) {
  static std::atomic<std::size_t> threads{0};
  static thread_local const std::size_t number = threads.fetch_add(1);
  return number % desks;
}

}  // namespace

void Owed::add(std::string_view name, const Limit& limit, std::int64_t cost, Micros until, Spent spent) {
  Desk& desk = desks_[own_desk(kDesks)];
  List full;
  {
    const std::lock_guard lock(desk.mutex);
    List& list = desk.list;
    if (list.limits.empty() || !(list.limits.back() == limit)) list.limits.push_back(limit);
    list.names.append(name);
    list.lines.push_back({.name_size = static_cast<std::uint32_t>(name.size()),
                          .limit = static_cast<std::uint32_t>(list.limits.size() - 1),
                          .cost = cost,
                          .until = until,
                          .spent = spent});
    lines_.fetch_add(1);
    if (list.lines.size() >= kLinesMax) full = std::exchange(list, {});
  }
  if (full.lines.empty()) return;
  const std::lock_guard lock(mutex_);
  enter(full);
}

// The book's lock is held.
void Owed::enter_all() {
  if (lines_.load() == 0) return;
  for (Desk& desk : desks_) {
    List list;
    {
      const std::lock_guard lock(desk.mutex);
      if (desk.list.lines.empty()) continue;
      list = std::exchange(desk.list, {});
    }
    enter(list);
  }
}

void Owed::enter(const List& list) {
  std::string_view names = list.names;
  for (const Line& line : list.lines) {
    enter(names.substr(0, line.name_size), line, list.limits[line.limit]);
    names.remove_prefix(line.name_size);
  }
  keys_.store(book_.size());
  lines_.fetch_sub(list.lines.size());
}

void Owed::enter(std::string_view name, const Line& line, const Limit& limit) {
  auto known = book_.find(name);
  if (known == book_.end()) {
    if (line.cost <= 0) return;
    if (book_.size() >= keys_max_) {
      lost_ += static_cast<std::uint64_t>(line.cost);
      return;
    }
    known = book_.try_emplace(std::string(name)).first;
    known->second.name = name;
  }
  Debt& debt = known->second;
  debt.limit = limit;
  if (line.spent.at >= debt.spent.at) debt.spent = line.spent;
  debt.cost = std::clamp<std::int64_t>(debt.cost + line.cost, 0, std::max<std::int64_t>(0, debt.spent.most));
  debt.until = std::max(debt.until, line.until);
}

void Owed::forget(std::string_view name) {
  const std::lock_guard lock(mutex_);
  enter_all();
  if (const auto known = book_.find(name); known != book_.end()) book_.erase(known);
  keys_.store(book_.size());
}

std::int64_t Owed::cost_of(std::string_view name, Micros now) {
  const std::lock_guard lock(mutex_);
  enter_all();
  const auto known = book_.find(name);
  return known == book_.end() || known->second.until <= now ? 0 : known->second.cost;
}

std::vector<Debt> Owed::take(std::size_t most) {
  std::vector<Debt> out;
  const std::lock_guard lock(mutex_);
  enter_all();
  while (!book_.empty() && out.size() < most) {
    out.push_back(std::move(book_.begin()->second));
    book_.erase(book_.begin());
  }
  keys_.store(book_.size());
  return out;
}

std::uint64_t Owed::lost() {
  const std::lock_guard lock(mutex_);
  enter_all();
  return lost_;
}

std::size_t Owed::size() {
  const std::lock_guard lock(mutex_);
  enter_all();
  return book_.size();
}

}  // namespace weir
