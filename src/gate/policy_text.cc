// Parses the text of a policy and compiles its quotas. src/policy leaves that to this file, because it may read time
// zones. See weir/policy.h and gate_impl.h. Any thread. Tested by tests/policy_text_test.cc.
#include "gate/gate_impl.h"
#include "policy/policy_reader.h"
#include "weir/limit.h"

namespace weir::gate {
namespace {

// `make` returns a policy, and adds its problems.
template <class Make>
Result<Policy> policy_or_problems(std::string_view name, Make make) {
  std::vector<policy::TextProblem> problems;
  Policy policy = make(problems, [](const Quota& quota) { return compile(quota); });
  if (problems.empty()) return policy;
  return fail(ErrorCode::invalid_argument, policy::problem_lines(name, std::move(problems)));
}

}  // namespace

Result<Policy> validated(const Policy& policy) {
  return policy_or_problems("the policy", [&](auto& problems, auto compile) {
    Policy out = policy::validate(policy, problems, compile);
    for (std::size_t i = 0; problems.empty() && i < out.rules.size(); ++i) {
      out.rules[i].by_hand = policy.rules[i].by_hand;
      out.rules[i].at = policy.rules[i].at;
    }
    return out;
  });
}

}  // namespace weir::gate

namespace weir {

Result<Policy> parse_policy(std::string_view text, std::string_view name) noexcept {
  return base::guarded([&] {
    return gate::policy_or_problems(
        name, [&](auto& problems, auto compile) { return policy::read_policy(text, problems, compile); });
  });
}

}  // namespace weir
