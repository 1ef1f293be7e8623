// Accounts of many days, and of several processes, put together for who asks about them.
//
// Where one of them does not know a subject it may have left it out: then the most that it can have left out is added,
// to the number and to its error. Pure; any thread. Tested by tests/spending_test.cc.
#pragma once

#include <span>
#include <string_view>

#include "gate/accounts.h"
#include "weir/spending.h"

namespace weir {

// Of one subject, by its id: a row for each rule and day that know it.
void report_subject(std::span<const DayAccounts> days, std::string_view id, std::string_view rule, SpendingReport& out);

// The n who spent most, for sure, over all days: a row for each subject and rule. `*` is nobody.
void report_top(std::span<const DayAccounts> days, std::string_view rule, std::size_t n, SpendingReport& out);

}  // namespace weir
