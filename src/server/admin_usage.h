// What was counted, as the admin API tells it: by rule, and how full the table is.
//
// Any thread. Tested by tests/server/admin.sh.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "weir/gate.h"
#include "weir/limiter.h"

namespace weir {

struct RuleNumbers {
  std::uint64_t allowed = 0, denied = 0, shadow_denied = 0;
  Micros last_hit{0};
};
std::map<std::string, RuleNumbers> rule_numbers(const Gate& gate);

struct TableNumbers {
  std::uint64_t keys = 0, capacity = 0;
};
TableNumbers table_numbers(const Limiter& limiter);

}  // namespace weir
