// Checks a policy by printing and parsing it, so that one built by hand passes the same checks as a text.
//
// The bounds on the length of a text do not apply: they are for untrusted texts, and a valid policy may print longer
// than it was written. Any thread; may throw for lack of memory. Tested by tests/policy_text_test.cc.
#pragma once

#include "weir/policy.h"
#include "weir/result.h"

namespace weir {

Result<Policy> read_again(const Policy& policy);

}  // namespace weir
