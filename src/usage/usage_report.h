// Combines the accounts of several days and processes into a report.
//
// If one of them has no account of a subject, it may have evicted it. Then the most that the account can have had is
// added to the number and to its error. Pure; any thread. Tested by tests/client_usage_test.cc.
#pragma once

#include <span>
#include <string_view>

#include "usage/accounts.h"
#include "weir/usage.h"

namespace weir::usage {

// For one subject, by its id: a row for each rule and day with an account.
void report_subject(std::span<const DayAccounts> days, std::string_view id, std::string_view rule, UsageReport& out);

// The n highest certain usages over all days: a row for each subject and rule. `*` is not a subject here.
void report_top(std::span<const DayAccounts> days, std::string_view rule, std::size_t n, UsageReport& out);

}  // namespace weir::usage
