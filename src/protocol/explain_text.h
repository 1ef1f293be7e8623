// Prints an explanation as text for people, or as one JSON object for programs.
//
// Pure; any thread may call it. Tested by explain_text_test.cc and tests/server/policy.sh.
#pragma once

#include <string>

#include "weir/explanation.h"

namespace weir::protocol {

std::string to_text(const Explanation& explanation);
std::string to_json(const Explanation& explanation);

}  // namespace weir::protocol
