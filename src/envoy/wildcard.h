// Patterns for values in Envoy's files: each `*` matches any text, including none.
//
// The pattern is split in the constructor, so matching allocates nothing. Each part is placed at the first position
// where it fits, which leaves the most text for the parts after it. Pure; any thread may call it. Tested by
// wildcard_test.cc.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace weir {

class Wildcard {
 public:
  explicit Wildcard(std::string_view pattern) {
    for (std::size_t star = 0; (star = pattern.find('*')) != pattern.npos; pattern.remove_prefix(star + 1)) {
      parts_.emplace_back(pattern.substr(0, star));
    }
    parts_.emplace_back(pattern);
  }

  bool matches(std::string_view text) const {
    if (parts_.size() == 1) return text == parts_[0];
    if (!text.starts_with(parts_.front())) return false;
    text.remove_prefix(parts_.front().size());
    if (!text.ends_with(parts_.back())) return false;
    text.remove_suffix(parts_.back().size());
    for (std::size_t i = 1; i + 1 < parts_.size(); ++i) {
      const std::size_t at = text.find(parts_[i]);
      if (at == text.npos) return false;
      text.remove_prefix(at + parts_[i].size());
    }
    return true;
  }

 private:
  std::vector<std::string> parts_;  // between the stars
};

}  // namespace weir
