// What the commands share: how they refuse, their exit codes, and the check of a number.
//
// Any thread. Tested by tests/server/cli.sh.
#pragma once

#include <charconv>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

#include "nearest.h"

namespace weir {

inline constexpr int kCouldNot = 1;
inline constexpr int kNotUnderstood = 2;
inline constexpr std::uint64_t kMemoryMax = std::uint64_t{1} << 44;

inline int complain(std::string_view message, int exit_code) {
  std::fprintf(stderr, "weir: %.*s\n", static_cast<int>(message.size()), message.data());
  return exit_code;
}

// CLI11's own check calls `1M` out of range.
inline auto whole_number_to(std::uint64_t most, std::uint64_t least = 1) {
  return [most, least](const std::string& text) -> std::string {
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error == std::errc{} && end == text.data() + text.size() && value >= least && value <= most) return {};
    return in_quotes(text) + " is not a whole number from " + std::to_string(least) + " to " + std::to_string(most);
  };
}

}  // namespace weir
