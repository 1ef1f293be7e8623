// One compiled condition of a rule: do the facts of a request meet it?
//
// Immutable after construction; any thread may call it. Tested by rulebook_test.cc and tests/matcher_test.cc.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/ip_address.h"
#include "policy/facts.h"
#include "policy/path_pattern.h"
#include "weir/policy.h"

namespace weir::policy {

class Criterion {
 public:
  // `condition` must come from the parser: its values are in canonical form.
  Criterion(const Condition& condition, PathCase path_case);

  bool holds(Facts& facts) const;
  const Condition& condition() const { return condition_; }
  // Its values if it compares only whole texts, so that a hash table can replace it. Otherwise null.
  const std::vector<std::string>* whole_values() const { return globs_.empty() && !is_any_ ? &whole_ : nullptr; }

 private:
  bool accepts(std::string_view value) const;
  bool accepts_method(std::string_view method) const;

  Condition condition_;
  bool is_any_ = false;
  std::vector<std::string> whole_;  // sorted
  std::vector<std::string> globs_;
  std::vector<PathPattern> patterns_;
  base::IpSet ranges_;
  std::vector<std::array<std::uint8_t, 32>> hashes_;
};

}  // namespace weir::policy
