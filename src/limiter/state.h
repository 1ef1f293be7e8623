// The commands of `weir state`: inspect, export and resize a state file.
//
// inspect and export only read, and work while the file is in use. Tested by state_test.cc and tests/server/state.sh.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>

#include "weir/result.h"

namespace weir::limiter {

// inspect_state()
//
// A summary as text: size, time, fill level, limits.
Result<std::string> inspect_state(const std::string& path);

// export_state()
//
// Writes one line of JSON per live key. Keys are not stored: `name` is the part of a key's hash that a slot stores.
Result<void> export_state(const std::string& path, std::FILE* out);

// resize_state()
//
// Rebuilds the file with another capacity; 0 keeps a value. Returns a text that says what it did.
struct StateSize {
  std::uint64_t keys = 0;
  std::uint64_t memory_bytes = 0;  // of the whole file: what the keys leave is for logs and permits in flight
};
Result<std::string> resize_state(const std::string& path, const StateSize& size);

}  // namespace weir::limiter
