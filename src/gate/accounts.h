// The accounts of a day: what each subject spent by each rule, as far as it is known, and how far that is.
//
// Plain values, and the text that they are kept in between two lives of a process. A text ends with the hash of all
// before it, so that half of one is told from a whole. Subjects are ids, see policy/subject.h. Pure; any thread. Tested
// by tests/accounts_test.cc and fuzz/usage_text.cc.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weir/clock.h"
#include "weir/result.h"

namespace weir {

inline constexpr std::uint64_t kSumMax = std::uint64_t{1} << 62;  // more is that much
inline constexpr Micros kDay{86'400'000'000};

constexpr std::uint64_t add_capped(std::uint64_t a, std::uint64_t b) {
  return std::min(kSumMax, std::min(a, kSumMax) + std::min(b, kSumMax));
}

struct Sums {
  std::uint64_t spent = 0;     // permits that were taken
  std::uint64_t returned = 0;  // permits that came back
  std::uint64_t denied = 0;    // requests

  void add(const Sums& more) {
    spent = add_capped(spent, more.spent);
    returned = add_capped(returned, more.returned);
    denied = add_capped(denied, more.denied);
  }
  void raise_to(const Sums& other) {
    spent = std::max(spent, other.spent);
    returned = std::max(returned, other.returned);
    denied = std::max(denied, other.denied);
  }
  friend bool operator==(const Sums&, const Sums&) = default;
};

// None of the sums is too low, and each is too high by its error at most.
struct Account {
  std::string subject{};
  Sums sums{}, errors{};
  friend bool operator==(const Account&, const Account&) = default;
};

struct RuleAccounts {
  std::string rule{};
  Sums floors{};  // what a subject that is not there has at most
  std::vector<Account> accounts{};
  friend bool operator==(const RuleAccounts&, const RuleAccounts&) = default;
};

struct DayAccounts {
  std::int64_t day = 0;  // since the epoch
  std::vector<RuleAccounts> rules{};
  friend bool operator==(const DayAccounts&, const DayAccounts&) = default;
};

std::string to_text(const DayAccounts& accounts);
// An error says what is wrong with it; ErrorCode::out_of_range that it is of a newer version, and may be well.
Result<DayAccounts> parse_accounts(std::string_view text);

// `2026-09-21`
std::string day_text(std::int64_t day);
Result<std::int64_t> parse_day(std::string_view text);

}  // namespace weir
