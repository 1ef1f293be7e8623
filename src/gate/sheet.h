// The accounts of a day under way, in bounded memory: a sketch like space_saving.h with several sums and many rules.
//
// So many accounts are kept, of all rules together. When they are all taken, the account of its rule that weighs least
// makes room for the next one, and what it had becomes the rule's floor: what a subject without an account has at most.
// A new account begins at the floor and keeps it as its error. So a sum is never too low, and too high by its error at
// most, whoever was evicted. The weight is what the account was seen to spend and return, and the larger of the errors
// of both; so no floor is above a weight, and of all that the rule's subjects spent and returned, either error is at
// most the N-th part where N accounts are its. Each rule has a fair part of them for sure: a rule of millions of
// addresses takes no account from a rule of a hundred tenants. While there is room sums are exact. One thread. Tested
// by tests/accounts_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "gate/accounts.h"

namespace weir {

class Sheet {
 public:
  // `secret` keeps clients from making subjects that collide.
  Sheet(std::int64_t day, std::size_t places, std::uint64_t secret) : day_(day), places_(places), secret_(secret) {}

  // The number of a rule in this sheet.
  std::uint32_t rule_of(std::string_view name);
  void add(std::uint32_t rule, std::string_view subject, const Sums& more) {
    add(rule, subject, mark_of_account(rule, subject), more);
  }

  // mark_of_account(), ask_for(), ask_further()
  //
  // For who adds to many: the memory of the next ones is asked for before the first is added to.
  std::uint64_t mark_of_account(std::uint32_t rule, std::string_view subject) const;
  void ask_for(std::uint64_t mark) const {
    if (!index_.empty()) __builtin_prefetch(&index_[place_of(mark)]);
  }
  void ask_further(std::uint64_t mark) const;
  void add(std::uint32_t rule, std::string_view subject, std::uint64_t mark, const Sums& more);

  // Accounts that were kept before. Those that find no place are evicted.
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
  // What an account weighed when it was last looked at, which is never more than it does.
  struct Least {
    std::uint64_t weight = 0;
    std::uint32_t account = 0;
  };
  struct RuleSheet {
    std::string name;
    Sums floors;
    std::vector<Least> heap;  // each of its accounts once, the least on top
    bool is_active = false;   // it has accounts or floors, or had some
  };

  std::size_t place_of(std::uint64_t mark) const { return mark & (index_.size() - 1); }
  std::uint32_t find(std::uint64_t mark, std::uint32_t rule, std::string_view subject) const;
  void put_in_index(std::uint64_t mark, std::uint32_t account);
  void drop_from_index(std::uint32_t account);
  void grow_index();
  // It begins at the floors, or as it was kept.
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
  std::vector<std::uint32_t> index_;  // by mark, with gaps; kNone is one
  std::vector<RuleSheet> rules_;
  std::unordered_map<std::string, std::uint32_t> numbers_;
  std::size_t active_ = 0;  // rules that are active
  std::size_t turn_ = 0;    // the rule that was last asked to make room for another
};

}  // namespace weir
