// What every rule has to do with a request, found without an index and without charging anything.
//
// Any thread. Tested by tests/gate_test.cc and tests/server/policy.sh.
#pragma once

#include <memory>
#include <string>

#include "policy/rulebook.h"
#include "weir/gate.h"
#include "weir/limiter.h"

namespace weir {

Result<Explanation> explain(const std::shared_ptr<const Rulebook>& book, Limiter& limiter, const Request& request);

// The most that a limit can admit: its burst, what a boundary lets through, and the rate that it can represent.
std::string worst_case(const Quota& quota, const Limit& limit);

}  // namespace weir
