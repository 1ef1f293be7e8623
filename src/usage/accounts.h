// The accounts of a day: what each subject used under each rule, with the bounds of its error.
//
// Plain values, and the text that saves them between two runs of a process. The text ends with the hash of everything
// before it, so that an incomplete text is detected. Subjects are ids, see policy/subject.h. Pure; any thread. Tested
// by tests/accounts_test.cc, tests/client_usage_test.cc and fuzz/usage_text.cc.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weir/clock.h"
#include "weir/result.h"
#include "weir/usage.h"

namespace weir::usage {

inline constexpr std::uint64_t kSumMax = std::uint64_t{1} << 62;  // sums saturate here
inline constexpr Micros kDay{86'400'000'000};

constexpr std::uint64_t add_capped(std::uint64_t a, std::uint64_t b) {
  return std::min(kSumMax, std::min(a, kSumMax) + std::min(b, kSumMax));
}

struct Sums {
  std::uint64_t charged = 0;   // permits
  std::uint64_t returned = 0;  // permits refunded
  std::uint64_t denied = 0;    // requests

  void add(const Sums& more) {
    charged = add_capped(charged, more.charged);
    returned = add_capped(returned, more.returned);
    denied = add_capped(denied, more.denied);
  }
  void raise_to(const Sums& other) {
    charged = std::max(charged, other.charged);
    returned = std::max(returned, other.returned);
    denied = std::max(denied, other.denied);
  }
  friend bool operator==(const Sums&, const Sums&) = default;
};

// No sum is too low, and each is too high by at most its error.
struct Account {
  std::string subject{};
  Sums sums{}, errors{};
  friend bool operator==(const Account&, const Account&) = default;
};

struct RuleAccounts {
  std::string rule{};
  Sums floors{};  // the most that a subject without an account can have
  std::vector<Account> accounts{};
  friend bool operator==(const RuleAccounts&, const RuleAccounts&) = default;
};

struct DayAccounts {
  std::int64_t day = 0;  // since the epoch
  std::vector<RuleAccounts> rules{};
  friend bool operator==(const DayAccounts&, const DayAccounts&) = default;
};

std::string to_text(const DayAccounts& accounts);
// Returns an error if the text is invalid. ErrorCode::out_of_range means a newer version, whose text may be valid.
Result<DayAccounts> parse_accounts(std::string_view text);

// `2026-09-21`
std::string day_text(std::int64_t day);
Result<std::int64_t> parse_day(std::string_view text);

// Reports combine the accounts of several days and processes: usage_report.cc. If one of them has no account of a
// subject, it may have evicted it. Then the most that the account can have had is added to the number and to its error.

// For one subject, by its id: a row for each rule and day with an account.
void report_subject(std::span<const DayAccounts> days, std::string_view id, std::string_view rule, UsageReport& out);

// The n highest certain usages over all days: a row for each subject and rule. `*` is not a subject here.
void report_top(std::span<const DayAccounts> days, std::string_view rule, std::size_t n, UsageReport& out);

}  // namespace weir::usage
