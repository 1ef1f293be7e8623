// Explains how every rule relates to a request. It uses no index and charges nothing.
//
// Any thread. Tested by tests/gate_test.cc and tests/server/policy.sh.
#pragma once

#include <memory>
#include <string>

#include "policy/rulebook.h"
#include "weir/gate.h"
#include "weir/limiter.h"

namespace weir::gate {

Result<Explanation> explain(const std::shared_ptr<const policy::Rulebook>& book, Limiter& limiter,
                            const Request& request);

// The most that a limit can admit: its burst, the effect of a boundary, and the rate that it can represent.
std::string worst_case(const Quota& quota, const Limit& limit);

// The same while Redis is unavailable, for all servers together. 0 nodes: their number is unknown.
std::string on_unavailable(const Limit& limit, Fallback fallback, std::uint32_t nodes);

}  // namespace weir::gate
