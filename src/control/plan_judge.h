// Validates a row of the plan database against the current policy.
//
// A row is untrusted input: a blank field in one has taken down a worldwide service before. The error names the
// subject and the fix, and other rows are not affected. Pure; any thread. Tested by plan_judge_test.cc; fuzzed by
// fuzz/plan_row.cc.
#pragma once

#include <string>
#include <string_view>

#include "plans/plan_directory.h"
#include "weir/policy.h"
#include "weir/result.h"

namespace weir {

Result<JudgedRow> judge_row(const Policy& policy, const PlanRow& row);

// canonical_subject()
//
// The subject in the form that directories use: `user:42`, `api_key:sha256:…`, `ip:192.0.2.1`, `ip:2001:db8::/64`.
Result<std::string> canonical_subject(std::string_view text);

}  // namespace weir
