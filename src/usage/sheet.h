// The accounts of the current day in bounded memory: a sketch like space_saving.h, with several sums and many rules.
//
// All rules share a fixed number of accounts. When all are taken, the account with the smallest weight of the rule is
// evicted, and its sums become the rule's floor: the most that a subject without an account can have. A new account
// starts at the floor, and stores the floor as its error. So after any evictions, a sum is never too low, and too high
// by at most its error. The weight is what the account was charged and refunded while it existed, plus the larger of
// the two errors. So no floor is above a weight. If a rule has N accounts, either error is at most 1/N of all that its
// subjects were charged and refunded. Each rule is guaranteed a fair part of the accounts: a rule with millions of
// addresses takes none from a rule with a hundred tenants. While places are free, sums are exact. One thread. Tested by
// tests/accounts_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "usage/accounts.h"

namespace weir::usage {

class Sheet {
 public:
  // Without `secret`, clients cannot construct subjects that collide.
  Sheet(std::int64_t day, std::size_t places, std::uint64_t secret) : day_(day), places_(places), secret_(secret) {}

  // The number of a rule in this sheet.
  std::uint32_t rule_of(std::string_view name);
  void add(std::uint32_t rule, std::string_view subject, const Sums& more) {
    add(rule, subject, mark_of_account(rule, subject), more);
  }

  // mark_of_account(), ask_for(), ask_further()
  //
  // For adding many: prefetch the memory of later accounts before adding to the first.
  std::uint64_t mark_of_account(std::uint32_t rule, std::string_view subject) const;
  void ask_for(std::uint64_t mark) const {
    if (!index_.empty()) __builtin_prefetch(&index_[place_of(mark)]);
  }
  void ask_further(std::uint64_t mark) const;
  void add(std::uint32_t rule, std::string_view subject, std::uint64_t mark, const Sums& more);

  // Loads saved accounts. Accounts without a place are evicted.
  void take(const DayAccounts& kept);

  DayAccounts copy() const;
  std::int64_t day() const { return day_; }
  std::size_t size() const { return accounts_.size(); }
  std::uint64_t evicted() const { return evicted_; }  // since it was made

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;
  struct Kept {
    Account account;
    std::uint64_t mark = 0;
    std::uint32_t rule = 0;
  };
  // The weight of an account when it was last read, which is never above its current weight.
  struct Least {
    std::uint64_t weight = 0;
    std::uint32_t account = 0;
  };
  struct RuleSheet {
    std::string name;
    Sums floors;
    std::vector<Least> heap;  // each of its accounts once, the lightest on top
    bool is_active = false;   // it has accounts or floors, or had some
  };

  std::size_t place_of(std::uint64_t mark) const { return mark & (index_.size() - 1); }
  std::uint32_t find(std::uint64_t mark, std::uint32_t rule, std::string_view subject) const;
  void put_in_index(std::uint64_t mark, std::uint32_t account);
  void drop_from_index(std::uint32_t account);
  void grow_index();
  // Starts at the floors, or with the saved sums.
  Kept& open(std::uint32_t rule, std::string_view subject, std::uint64_t mark, const Account* kept_before = nullptr);
  void activate(RuleSheet& rule);
  std::size_t part() const;
  std::uint32_t evict_for(std::uint32_t rule);
  std::uint32_t evict_from(RuleSheet& rule);

  const std::int64_t day_;
  const std::size_t places_;
  const std::uint64_t secret_;
  std::uint64_t evicted_ = 0;
  std::vector<Kept> accounts_;
  std::vector<std::uint32_t> index_;  // by mark; kNone is a gap
  std::vector<RuleSheet> rules_;
  std::unordered_map<std::string, std::uint32_t> numbers_;
  std::size_t active_ = 0;  // rules that are active
  std::size_t turn_ = 0;    // the rule that was last tried for an eviction
};

}  // namespace weir::usage
