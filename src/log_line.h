// A line of the log as bytes, whatever was put into it: no control character, nothing unseen that begins a line or
// turns the direction of writing, no broken UTF-8, never too long.
//
// A line is at most as long as a pipe takes in one piece, so that lines of several writers do not mix. Values are cut
// to that end, and what still has no room is left out. Pure; any thread. Tested by log_line_test.cc.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "log.h"
#include "weir/clock.h"

namespace weir {

inline constexpr std::size_t kLogLineMax = 4'096;
inline constexpr std::size_t kLogValueMax = 1'024;  // bytes of a message or a value, as they were given

struct LogLine {
  LogLevel level = LogLevel::info;
  Micros time{0};
  std::string_view message;
  std::span<const LogField> fields{};
};

// With the newline at its end.
std::string write_log_line(const LogLine& line, LogFormat format);

}  // namespace weir
