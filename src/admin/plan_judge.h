// Whether a row of the plans' database makes sense, by the policy that is in force.
//
// A row is untrusted input: a blank field in one has taken down a worldwide service before. Whatever is wrong with it
// is said in words that name the subject and the fix, and nothing else is touched. Pure; any thread. Tested by
// plan_judge_test.cc; fuzzed by fuzz/plan_row.cc.
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
// The subject as directories know it: `user:42`, `api_key:sha256:…`, `ip:192.0.2.1`, `ip:2001:db8::/64`.
Result<std::string> canonical_subject(std::string_view text);

}  // namespace weir
