// The text of a policy, with the quotas in it compiled: what src/policy leaves to those who may read time zones. See
// weir/policy.h. Tested by tests/policy_text_test.cc.
#include <exception>

#include "policy/policy_reader.h"
#include "weir/limit.h"

namespace weir {

Result<Policy> parse_policy(std::string_view text, std::string_view name) noexcept {
  try {
    std::vector<TextProblem> problems;
    Policy policy = read_policy(text, problems, [](const Quota& quota) { return compile(quota); });
    if (problems.empty()) return policy;
    return fail(ErrorCode::invalid_argument, problem_lines(name, std::move(problems)));
  } catch (const std::exception&) {
    return fail(ErrorCode::exhausted, "out of memory");
  }
}

}  // namespace weir
