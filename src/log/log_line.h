// Formats a log line so that no value can break it. The line has no control characters, no invisible characters that
// start a line or change the writing direction, and no invalid UTF-8, and its length is bounded.
//
// A line is no longer than a pipe accepts in one write, so lines of several writers do not mix. Values are cut to
// make the line fit, and left out if they still do not fit. Pure; any thread. Tested by log_line_test.cc.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "log/log.h"
#include "weir/clock.h"

namespace weir::log {

inline constexpr std::size_t kLogLineMax = 4'096;
inline constexpr std::size_t kLogValueMax = 1'024;  // bytes of a message or a value, before escaping

struct LogLine {
  LogLevel level = LogLevel::info;
  Micros time{0};
  std::string_view message;
  std::span<const LogField> fields{};
};

// Includes the newline at the end.
std::string write_log_line(const LogLine& line, LogFormat format);

}  // namespace weir::log
