// Writes the server's log to stderr: one line per event, as text for people or as JSON.
//
//   weir::log::log(weir::log::LogLevel::warn, "config reload failed", {{"file", path}, {"error", why}});
//
// While a LogWriter exists, lines go through a bounded queue to a thread of its own, so no caller waits for the reader
// of the log. A line that does not fit or cannot be written is dropped and counted. The next line that is written is
// preceded by one with the number dropped. Without a LogWriter the caller writes. Any thread, but no signal handler.
// Tested by log_test.cc and tests/server/logs.sh.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string_view>

namespace weir::log {

enum class LogLevel : std::uint8_t { debug, info, warn, error };
std::string_view to_string(LogLevel level);
std::optional<LogLevel> log_level_of(std::string_view name);

// The minimum level that is logged; info by default.
LogLevel log_level() noexcept;
void set_log_level(LogLevel level) noexcept;
// Whether lines of this level are logged, so that callers can skip building one.
inline bool is_logged(LogLevel level) noexcept { return level >= log_level(); }

struct LogField {
  std::string_view name;
  std::string_view value;
};

// `message` is a plain sentence without its full stop; variable parts go into fields.
void log(LogLevel level, std::string_view message, std::span<const LogField> fields) noexcept;
inline void log(LogLevel level, std::string_view message, std::initializer_list<LogField> fields = {}) noexcept {
  log(level, message, std::span(fields.begin(), fields.size()));
}

enum class LogFormat : std::uint8_t {
  text,     // weir: config reload failed file=weir.yaml
  json,     // {"ts":"2026-11-16T07:00:00.123Z","level":"warn","msg":"config reload failed","file":"weir.yaml"}
  journal,  // as text, with systemd's level prefix; replaces text where stderr is the journal
};

// Since the process began.
struct LogCounts {
  std::uint64_t written = 0;  // lines
  std::uint64_t dropped = 0;
};
LogCounts log_counts() noexcept;

// For ending the process without destroying a LogWriter: writes the queued lines, for at most one second.
void end_log() noexcept;

// At most one at a time in a process. Its destructor writes the queued lines, for at most one second; the rest is
// lost.
class LogWriter {
 public:
  explicit LogWriter(LogFormat format);
  ~LogWriter();
  LogWriter(const LogWriter&) = delete;
  LogWriter& operator=(const LogWriter&) = delete;
};

}  // namespace weir::log
