// The entry point of a fuzz target: libFuzzer calls it, and it calls fuzz(), which each target defines.
//
// Each target is a program of one file, which includes this header. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "weir/result.h"

// Tries one input. A WEIR_ASSERT that fails, a crash or a sanitizer's finding is a bug in the code under test.
void fuzz(std::string_view input);

// Removes the first byte of the input, which must not be empty, and returns it.
inline std::uint8_t take_byte(std::string_view& input) {
  const auto byte = static_cast<std::uint8_t>(input.front());
  input.remove_prefix(1);
  return byte;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz({reinterpret_cast<const char*>(data), size});
  return 0;
}
