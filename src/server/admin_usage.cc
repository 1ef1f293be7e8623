// Numbers of the gate and of the limiter. See admin_usage.h.
#include "server/admin_usage.h"

namespace weir {
namespace {

template <class G>
std::map<std::string, RuleNumbers> numbers_of(const G& gate) {
  std::map<std::string, RuleNumbers> out;
  if constexpr (requires { gate.usage(); }) {
    for (const auto& one : gate.usage()) out[one.rule] = {one.allowed, one.denied, one.shadow_denied, one.last_hit};
  }
  return out;
}

template <class L>
TableNumbers table_of(const L& limiter) {
  if constexpr (requires { limiter.stats(); }) {
    const auto stats = limiter.stats();
    return {stats.keys, stats.capacity};
  }
  return {limiter.size(), 0};
}

}  // namespace

std::map<std::string, RuleNumbers> rule_numbers(const Gate& gate) { return numbers_of(gate); }
TableNumbers table_numbers(const Limiter& limiter) { return table_of(limiter); }

}  // namespace weir
