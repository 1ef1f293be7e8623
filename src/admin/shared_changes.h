// The list of changes that the servers of a fleet have together, as the journal knows it: numbered lines.
//
// Calls may wait for a network, about a second at most, or longer for a list of many MiB that comes slowly. Any thread.
// Implemented by program/fleet_desk.h; tested by journal_shared_test.cc and tests/server/fleet_admin.sh.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "weir/result.h"

namespace weir {

class SharedChanges {
 public:
  virtual ~SharedChanges() = default;

  struct Lines {
    std::uint64_t last = 0;  // number of all; 0: there is no list
    std::string tail{};      // the end of the line with the number that was asked for; empty: there is none
    std::vector<std::string> lines{};
  };
  static constexpr std::size_t kTail = 32;  // bytes of a line, enough to tell it from others by its check
  static constexpr std::size_t kLineMax = std::size_t{7} << 20;  // bytes; a policy of newlines has six times its own

  // Those behind this number.
  virtual Result<Lines> since(std::uint64_t number) = 0;
  // False: the last one is not `after`, and nothing was done.
  virtual Result<bool> append(std::uint64_t after, std::uint64_t number, const std::string& line) = 0;
  virtual Result<void> drop(const std::vector<std::uint64_t>& numbers) = 0;
};

}  // namespace weir
