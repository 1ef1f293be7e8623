// A policy as a text of it would be read: one that was put together by hand is held to the same checks.
//
// The bounds on the length of a text are left out: they are for what comes from outside, and a policy within them may
// print longer than it was written. Any thread; may throw for lack of memory. Tested by tests/policy_text_test.cc.
#pragma once

#include "weir/policy.h"
#include "weir/result.h"

namespace weir {

Result<Policy> read_again(const Policy& policy);

}  // namespace weir
