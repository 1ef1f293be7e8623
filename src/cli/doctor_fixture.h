// Looks up findings of `weir doctor` by a part of their text, for doctor_test.cc and doctor_store_test.cc.
//
// One thread. It also checks that a finding has advice unless all is well.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>

#include "cli/doctor.h"

namespace weir::cli {

// The finding with this text; null if there is none.
inline const Finding* finding_with(const Findings& all, const std::string& part) {
  const auto one = std::ranges::find_if(all, [&](const Finding& each) { return each.what.find(part) != part.npos; });
  if (one == all.end()) return nullptr;
  EXPECT_EQ(one->advice.empty(), one->level == Finding::Level::fine) << one->what;
  return &*one;
}

// The advice of that finding; empty if there is none.
inline std::string advice_of(const Findings& all, const std::string& part) {
  const Finding* const one = finding_with(all, part);
  return one == nullptr ? "" : one->advice;
}

inline std::optional<Finding::Level> found(const Findings& all, const std::string& part) {
  const Finding* const one = finding_with(all, part);
  return one == nullptr ? std::nullopt : std::optional(one->level);
}

}  // namespace weir::cli
