// The accounts of a day. See sheet.h. One thread.
//
// A hash table with open addressing finds accounts. For each rule, a heap finds the account with the smallest weight.
// It is only corrected when it is used: weights only grow, so the top may be outdated but never too high.
#include "usage/sheet.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "usage/space_saving.h"

namespace weir::usage {
namespace {

std::uint64_t weight_of(const Account& account) {
  const Sums &sums = account.sums, &errors = account.errors;
  return (sums.charged - errors.charged) + (sums.returned - errors.returned) +
         std::max(errors.charged, errors.returned);
}

}  // namespace

std::uint32_t Sheet::rule_of(std::string_view name) {
  const auto [at, is_new] = numbers_.try_emplace(std::string(name), static_cast<std::uint32_t>(rules_.size()));
  if (is_new) rules_.push_back({.name = std::string(name)});
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

// Later entries move up, so that no search ends too early at the gap.
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
    std::ranges::pop_heap(rule.heap, std::greater{}, &Least::weight);
    const std::uint64_t weight = weight_of(accounts_[least.account].account);
    if (weight > least.weight) {
      rule.heap.back().weight = weight;
      std::ranges::push_heap(rule.heap, std::greater{}, &Least::weight);
      continue;
    }
    rule.heap.pop_back();
    rule.floors.raise_to(accounts_[least.account].account.sums);
    drop_from_index(least.account);
    ++evicted_;
    return least.account;
  }
}

void Sheet::activate(RuleSheet& rule) {
  if (!std::exchange(rule.is_active, true)) ++active_;
}

std::size_t Sheet::part() const { return places_ / std::max<std::size_t>(active_, 1); }

// A rule below its part takes a place from the next rule above its part. If there is none, it takes one from the rule
// with the most accounts.
std::uint32_t Sheet::evict_for(std::uint32_t number) {
  if (!rules_[number].heap.empty() && rules_[number].heap.size() >= part()) return evict_from(rules_[number]);
  std::size_t largest = turn_;
  for (std::size_t asked = 0; asked < rules_.size(); ++asked) {
    turn_ = turn_ + 1 < rules_.size() ? turn_ + 1 : 0;
    if (rules_[turn_].heap.size() > part()) return evict_from(rules_[turn_]);
    if (rules_[turn_].heap.size() > rules_[largest].heap.size()) largest = turn_;
  }
  return evict_from(rules_[largest]);
}

Sheet::Kept& Sheet::open(std::uint32_t number, std::string_view subject, std::uint64_t mark,
                         const Account* kept_before) {
  if (2 * (accounts_.size() + 1) > index_.size()) grow_index();
  RuleSheet& rule = rules_[number];
  // First everything that may throw.
  std::string name(subject);
  if (rule.heap.size() == rule.heap.capacity()) rule.heap.reserve(std::max<std::size_t>(16, 2 * rule.heap.size()));
  activate(rule);
  std::uint32_t account = static_cast<std::uint32_t>(accounts_.size());
  if (accounts_.size() < places_) {
    accounts_.emplace_back();
  } else {
    account = evict_for(number);
  }
  Kept& kept = accounts_[account];
  kept.account.subject = std::move(name);
  kept.account.sums = kept_before == nullptr ? rule.floors : kept_before->sums;
  kept.account.errors = kept_before == nullptr ? rule.floors : kept_before->errors;
  kept.mark = mark;
  kept.rule = number;
  put_in_index(mark, account);
  rule.heap.push_back({weight_of(kept.account), account});
  std::ranges::push_heap(rule.heap, std::greater{}, &Least::weight);
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

// Every rule gets its part before any gets more. The heaviest accounts come first, so the ones without a place are
// the lightest.
void Sheet::take(const DayAccounts& kept) {
  for (const RuleAccounts& from : kept.rules) {
    RuleSheet& rule = rules_[rule_of(from.rule)];
    if (!from.accounts.empty() || !(from.floors == Sums{})) activate(rule);
    rule.floors.raise_to(from.floors);
  }
  for (const RuleAccounts& from : kept.rules) {
    const std::uint32_t number = rule_of(from.rule);
    std::vector<const Account*> order;
    for (const Account& one : from.accounts) order.push_back(&one);
    std::ranges::stable_sort(order, std::greater{}, [](const Account* one) { return weight_of(*one); });
    for (const Account* const one : order) {
      const std::uint64_t mark = mark_of_account(number, one->subject);
      if (find(mark, number, one->subject) != kNone) continue;  // it is here already
      if (accounts_.size() < places_ || rules_[number].heap.size() < part()) {
        open(number, one->subject, mark, one);
      } else {
        rules_[number].floors.raise_to(one->sums);
        ++evicted_;
      }
    }
  }
}

DayAccounts Sheet::copy() const {
  DayAccounts out{.day = day_};
  for (const RuleSheet& rule : rules_) {
    out.rules.push_back({rule.name, rule.floors, {}});
    out.rules.back().accounts.reserve(rule.heap.size());
  }
  for (const Kept& kept : accounts_) out.rules[kept.rule].accounts.push_back(kept.account);
  std::erase_if(out.rules, [](const RuleAccounts& one) { return one.accounts.empty() && one.floors == Sums{}; });
  return out;
}

}  // namespace weir::usage
