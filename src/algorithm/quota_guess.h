// The forgiving reader: what a text that is no quota was probably meant to be (100 per minite, 10k/s, 100rpm).
//
// A guess, written in the grammar but not checked against it: parse_quota() shows it only if the strict reader takes
// it. Pure; any thread. Tested by quota_test.cc and fuzz/quota.cc.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "weir/quota.h"

namespace weir {

// Empty if it cannot be guessed.
std::string guess_quota(std::string_view text, std::optional<Algorithm> algorithm);

}  // namespace weir
