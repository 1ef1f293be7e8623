// From the text of a config to a Policy, and back. The whole text is checked: every error is told at once.
//
// Pure but for `compile`, which may read the file of a time zone. Any thread. Tested by policy_reader_test.cc and
// tests/policy_text_test.cc; fuzzed by fuzz/yaml_config.cc.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "policy/reader.h"
#include "weir/policy.h"

namespace weir {

// The policy that was read is worth something only if there are no problems.
Policy read_policy(std::string_view text, std::vector<TextProblem>& problems, const Reader::Compile& compile,
                   TextFrom from = TextFrom::outside);

// `name:line:column: message`, a line each, in the order of the text.
std::string problem_lines(std::string_view name, std::vector<TextProblem> problems);

}  // namespace weir
