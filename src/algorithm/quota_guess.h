// The lenient reader: guesses what quota an invalid text was meant to be (100 per minite, 10k/s, 100rpm).
//
// The guess is in the grammar's form but not checked: parse_quota() shows it only if the strict reader accepts it.
// Pure; any thread. Tested by quota_test.cc and fuzz/quota.cc.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "weir/quota.h"

namespace weir {

// Returns an empty string if there is no good guess.
std::string guess_quota(std::string_view text, std::optional<Algorithm> algorithm);

}  // namespace weir
