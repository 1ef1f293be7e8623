// Compiled calendar limits, remembered: compiling one reads the zone's file, and a request should not wait for a disk.
//
// Errors are remembered too, since finding the nearest zone name reads all of them. Bounded: when it is full, it starts
// anew. Belongs to one loop and its thread. Tested by http_session_test.cc.
#pragma once

#include <cstddef>
#include <string>
#include <unordered_map>

#include "weir/limit.h"

namespace weir {

class CalendarLimits {
 public:
  static constexpr std::size_t kMost = 1'024;

  Result<Limit> compile(const Quota& quota) {
    if (!quota.calendar) return weir::compile(quota);
    std::string text = to_string(quota);
    if (const auto known = limits_.find(text); known != limits_.end()) return known->second;
    if (limits_.size() >= kMost) limits_.clear();
    return limits_.emplace(std::move(text), weir::compile(quota)).first->second;
  }

  std::size_t size() const { return limits_.size(); }

 private:
  std::unordered_map<std::string, Result<Limit>> limits_;
};

}  // namespace weir
