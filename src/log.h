// What the server tells whoever runs it, on stderr: one line an event, for people or as JSON.
//
//   weir::log(weir::LogLevel::warn, "the rules stay as they were", {{"file", path}, {"error", why}});
//
// A line that cannot be written at once is dropped and counted: nothing waits for a reader of the log. Any thread.
// Tested by tests/server/logs.sh.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string_view>

namespace weir {

enum class LogLevel : std::uint8_t { debug, info, warn, error };

struct LogField {
  std::string_view name;
  std::string_view value;
};

// `message` is a plain sentence without its full stop; what varies stands in fields.
void log(LogLevel level, std::string_view message, std::initializer_list<LogField> fields = {});

}  // namespace weir
