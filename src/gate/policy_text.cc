// Parses the text of a policy and compiles its quotas. src/policy leaves that to this file, because it may read time
// zones. See weir/policy.h and policy_text.h. Any thread. Tested by tests/policy_text_test.cc.
#include "gate/policy_text.h"

#include <exception>

#include "policy/policy_reader.h"
#include "weir/limit.h"

namespace weir {
namespace {

Result<Policy> read(std::string_view text, std::string_view name, TextFrom from) {
  std::vector<TextProblem> problems;
  Policy policy = read_policy(
      text, problems, [](const Quota& quota) { return compile(quota); }, from);
  if (problems.empty()) return policy;
  return fail(ErrorCode::invalid_argument, problem_lines(name, std::move(problems)));
}

}  // namespace

Result<Policy> parse_policy(std::string_view text, std::string_view name) noexcept {
  try {
    return read(text, name, TextFrom::outside);
  } catch (const std::exception&) {
    return fail(ErrorCode::exhausted, "out of memory");
  }
}

Result<Policy> read_again(const Policy& policy) {
  auto again = read(to_yaml(policy), "the policy", TextFrom::ourselves);
  if (!again) return again;
  for (std::size_t i = 0; i < again->rules.size(); ++i) again->rules[i].by_hand = policy.rules[i].by_hand;
  return again;
}

}  // namespace weir
