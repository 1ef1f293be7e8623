// Compiled calendar limits, remembered: compiling one reads the zone's file, and a request should not wait for a disk.
//
// A wrong name is remembered too, since finding the nearest right one is work; a zone that could not be read is not,
// because the next request may find its file. Bounded: when it is full, it starts anew. Belongs to one loop and its
// thread. Tested by http_session_test.cc.
#pragma once

#include <cstddef>
#include <string>
#include <unordered_map>
#include <utility>

#include "weir/limit.h"

namespace weir {

class CalendarLimits {
 public:
  static constexpr std::size_t kMost = 1'024;

  // `text` is what `quota` was parsed from: an error names the column in it.
  Result<Limit> compile(const Quota& quota, const std::string& text) {
    if (!quota.calendar) return weir::compile(quota);
    if (const auto known = limits_.find(text); known != limits_.end()) return known->second;
    auto limit = weir::compile(text, quota.algorithm);
    if (!limit && limit.error().code == ErrorCode::unavailable) return limit;
    if (limits_.size() >= kMost) limits_.clear();
    return limits_.emplace(text, std::move(limit)).first->second;
  }

  std::size_t size() const { return limits_.size(); }

 private:
  std::unordered_map<std::string, Result<Limit>> limits_;
};

}  // namespace weir
