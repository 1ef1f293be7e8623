// What the commands share: printing errors, exit codes, and a number check.
//
// Any thread. Tested by tests/server/cli.sh.
#pragma once

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

#include "base/nearest.h"
#include "cli/table_text.h"

namespace weir {

inline constexpr int kCouldNot = 1;
inline constexpr int kNotUnderstood = 2;
inline constexpr std::uint64_t kMemoryMax = std::uint64_t{1} << 44;

// Prints an error of one or more lines. The message may quote a server or a file, so characters that a terminal would
// act upon are replaced.
inline int complain(std::string_view message, int exit_code) {
  std::string text = "weir: ";
  for (std::size_t end = 0; (end = message.find('\n')) != message.npos; message.remove_prefix(end + 1)) {
    text += printable(message.substr(0, end)) + '\n';
  }
  text += printable(message) + '\n';
  std::fputs(text.c_str(), stderr);
  return exit_code;
}

// Replaces CLI11's own check, which reports `1M` as out of range.
inline auto whole_number_to(std::uint64_t most, std::uint64_t least = 1) {
  return [most, least](const std::string& text) -> std::string {
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error == std::errc{} && end == text.data() + text.size() && value >= least && value <= most) return {};
    return in_quotes(text) + " is not a whole number from " + std::to_string(least) + " to " + std::to_string(most);
  };
}

}  // namespace weir
