// What `weir state` does with a state file, as text: inspect, export, resize.
//
// The first two only look, and do so while the file is in use, too. Tested by state_test.cc and
// tests/server/state.sh.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>

#include "weir/result.h"

namespace weir {

// inspect_state()
//
// A page of text: size, time, how full, which limits.
Result<std::string> inspect_state(const std::string& path);

// export_state()
//
// A line of JSON for each live key. Keys are not stored: `name` is what a slot holds of a key's hash.
Result<void> export_state(const std::string& path, std::FILE* out);

// resize_state()
//
// Makes the file anew with other room; 0 is as it is. The text says what was done.
struct StateSize {
  std::uint64_t keys = 0;
  std::uint64_t memory_bytes = 0;  // of the whole: what the keys leave is for logs and permits in flight
};
Result<std::string> resize_state(const std::string& path, const StateSize& size);

}  // namespace weir
