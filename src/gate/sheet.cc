// Keeping the accounts of a day. See sheet.h.
//
// Accounts are found through a table with open addressing. Which of a rule's has spent least is told by a heap that is
// put right only when it is asked: sums only grow, so what stands on top may be old, but never too high.
#include "gate/sheet.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "space_saving.h"

namespace weir {

std::uint32_t Sheet::rule_of(std::string_view name) {
  const auto [at, is_new] = numbers_.try_emplace(std::string(name), static_cast<std::uint32_t>(rules_.size()));
  if (is_new) rules_.push_back({std::string(name), {}, {}});
  return at->second;
}

std::uint64_t Sheet::mark_of_account(std::uint32_t rule, std::string_view subject) const {
  return mark_of(subject, secret_ + rule * std::uint64_t{0x9e3779b97f4a7c15});
}

std::uint32_t Sheet::find(std::uint64_t mark, std::uint32_t rule, std::string_view subject) const {
  if (index_.empty()) return kNone;
  for (std::size_t at = place_of(mark); index_[at] != kNone; at = (at + 1) & (index_.size() - 1)) {
    const Kept& kept = accounts_[index_[at]];
    if (kept.mark == mark && kept.rule == rule && kept.account.subject == subject) return index_[at];
  }
  return kNone;
}

void Sheet::put_in_index(std::uint64_t mark, std::uint32_t account) {
  std::size_t at = place_of(mark);
  while (index_[at] != kNone) at = (at + 1) & (index_.size() - 1);
  index_[at] = account;
}

// What stood behind it moves up, so that no search ends at the gap too early.
void Sheet::drop_from_index(std::uint32_t account) {
  const std::size_t mask = index_.size() - 1;
  std::size_t gap = place_of(accounts_[account].mark);
  while (index_[gap] != account) gap = (gap + 1) & mask;
  for (std::size_t at = (gap + 1) & mask; index_[at] != kNone; at = (at + 1) & mask) {
    const std::size_t wanted = place_of(accounts_[index_[at]].mark);
    if (((at - wanted) & mask) < ((at - gap) & mask)) continue;
    index_[gap] = index_[at];
    gap = at;
  }
  index_[gap] = kNone;
}

void Sheet::grow_index() {
  std::vector<std::uint32_t> larger(std::max<std::size_t>(64, 2 * index_.size()), kNone);
  index_.swap(larger);
  for (std::uint32_t i = 0; i < accounts_.size(); ++i) put_in_index(accounts_[i].mark, i);
}

std::uint32_t Sheet::evict_from(RuleSheet& rule) {
  while (true) {
    const Least least = rule.heap.front();
    std::ranges::pop_heap(rule.heap, std::greater{}, &Least::spent);
    const std::uint64_t spent = accounts_[least.account].account.sums.spent;
    if (spent > least.spent) {
      rule.heap.back().spent = spent;
      std::ranges::push_heap(rule.heap, std::greater{}, &Least::spent);
      continue;
    }
    rule.heap.pop_back();
    rule.floors.raise_to(accounts_[least.account].account.sums);
    drop_from_index(least.account);
    ++evicted_;
    return least.account;
  }
}

// A rule that has less than its part takes from one that has more than that. Some rule has, by counting; of more rules
// than places any that has one.
std::uint32_t Sheet::evict_for(std::uint32_t number) {
  const std::size_t part = places_ / std::max<std::size_t>(active_, 1);
  if (!rules_[number].heap.empty() && rules_[number].heap.size() >= part) return evict_from(rules_[number]);
  const std::size_t wanted = part == 0 ? 1 : part + 1;
  do turn_ = turn_ + 1 < rules_.size() ? turn_ + 1 : 0;
  while (rules_[turn_].heap.size() < wanted);
  return evict_from(rules_[turn_]);
}

Sheet::Kept& Sheet::open(std::uint32_t number, std::string_view subject, std::uint64_t mark) {
  if (2 * (accounts_.size() + 1) > index_.size()) grow_index();
  RuleSheet& rule = rules_[number];
  const bool is_first = rule.heap.empty() && rule.floors == Sums{};
  // What may throw comes first.
  std::string name(subject);
  if (rule.heap.size() == rule.heap.capacity()) rule.heap.reserve(std::max<std::size_t>(16, 2 * rule.heap.size()));
  if (is_first) ++active_;
  std::uint32_t account = static_cast<std::uint32_t>(accounts_.size());
  if (accounts_.size() < places_) {
    accounts_.emplace_back();
  } else {
    account = evict_for(number);
  }
  Kept& kept = accounts_[account];
  kept.account.subject = std::move(name);
  kept.account.sums = kept.account.errors = rule.floors;
  kept.mark = mark;
  kept.rule = number;
  put_in_index(mark, account);
  rule.heap.push_back({kept.account.sums.spent, account});
  std::ranges::push_heap(rule.heap, std::greater{}, &Least::spent);
  return kept;
}

void Sheet::ask_further(std::uint64_t mark) const {
  if (index_.empty()) return;
  const std::uint32_t account = index_[place_of(mark)];
  if (account != kNone) __builtin_prefetch(&accounts_[account]);
}

void Sheet::add(std::uint32_t rule, std::string_view subject, std::uint64_t mark, const Sums& more) {
  if (places_ == 0) return;
  const std::uint32_t found = find(mark, rule, subject);
  Kept& kept = found == kNone ? open(rule, subject, mark) : accounts_[found];
  kept.account.sums.add(more);
}

// Those who spent most come first, so that those who find no place are those who spent least.
void Sheet::take(const DayAccounts& kept) {
  for (const RuleAccounts& from : kept.rules) {
    const std::uint32_t number = rule_of(from.rule);
    std::vector<const Account*> order;
    for (const Account& one : from.accounts) order.push_back(&one);
    std::ranges::stable_sort(order, std::greater{}, [](const Account* one) { return one->sums.spent; });
    if (rules_[number].heap.empty() && rules_[number].floors == Sums{} && !(from.floors == Sums{})) ++active_;
    rules_[number].floors.raise_to(from.floors);
    for (const Account* const one : order) {
      if (accounts_.size() >= places_) {
        rules_[number].floors.raise_to(one->sums);
        ++evicted_;
        continue;
      }
      const std::uint64_t mark = mark_of_account(number, one->subject);
      if (find(mark, number, one->subject) != kNone) continue;  // it is told of once
      Account& account = open(number, one->subject, mark).account;
      account.sums = one->sums;
      account.errors = one->errors;
    }
  }
}

DayAccounts Sheet::copy() const {
  DayAccounts out{.day = day_};
  for (const RuleSheet& rule : rules_) out.rules.push_back({rule.name, rule.floors, {}});
  for (const Kept& kept : accounts_) out.rules[kept.rule].accounts.push_back(kept.account);
  std::erase_if(out.rules, [](const RuleAccounts& one) { return one.accounts.empty() && one.floors == Sums{}; });
  return out;
}

}  // namespace weir
