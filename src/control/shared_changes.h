// The interface of the fleet's shared list of changes: numbered lines.
//
// Calls may wait for the network, about a second at most, or longer for a list of many MiB that arrives slowly. Any
// thread. Implemented by serve/fleet_reporter.h; tested by journal_shared_test.cc and tests/server/fleet_admin.sh.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "weir/result.h"

namespace weir::control {

class SharedChanges {
 public:
  virtual ~SharedChanges() = default;

  struct Lines {
    std::uint64_t last = 0;  // the highest number; 0: there is no list
    std::string tail{};      // the end of the line with the requested number; empty: there is none
    std::vector<std::string> lines{};
  };
  static constexpr std::size_t kTail = 32;  // bytes; they contain the line's check, which differs between lines
  static constexpr std::size_t kLineMax = std::size_t{7} << 20;  // bytes; a policy of newlines takes six times its size

  // The lines after this number.
  virtual Result<Lines> since(std::uint64_t number) = 0;
  // False: the last number is not `after`, and nothing was done.
  virtual Result<bool> append(std::uint64_t after, std::uint64_t number, const std::string& line) = 0;
  virtual Result<void> drop(const std::vector<std::uint64_t>& numbers) = 0;
};

}  // namespace weir::control
