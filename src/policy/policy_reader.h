// Converts the text of a config to a Policy, and back. The whole text is checked, and all errors are reported at
// once.
//
// Pure except for `compile`, which may read a time zone file. Any thread may call it. Tested by policy_reader_test.cc
// and tests/policy_text_test.cc; fuzzed by fuzz/yaml_config.cc.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "policy/reader.h"
#include "weir/policy.h"

namespace weir::policy {

// The returned policy is usable only if no problems were added.
Policy read_policy(std::string_view text, std::vector<TextProblem>& problems, const Reader::Compile& compile);

// validate()
//
// Checks a policy that was made by hand as read_policy() checks one that was read, and returns it in its canonical
// form, in which rules have no positions. The positions of problems are those in to_yaml(policy), and only a policy
// with problems is printed for them. The bounds on the length of a text do not apply: they are for untrusted texts, and
// a valid policy may print longer than it was written.
Policy validate(const Policy& policy, std::vector<TextProblem>& problems, const Reader::Compile& compile);

// Returns one line for each problem, `name:line:column: message`, in the order of the text.
std::string problem_lines(std::string_view name, std::vector<TextProblem> problems);

}  // namespace weir::policy
