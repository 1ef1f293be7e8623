// What the server tells whoever runs it, on stderr: one line an event, for people or as JSON.
//
//   weir::log(weir::LogLevel::warn, "the rules stay as they were", {{"file", path}, {"error", why}});
//
// While a LogWriter lives, lines go through a bounded queue to a thread of its own: nothing waits for a reader of the
// log. What finds no room, or cannot be written, is dropped and counted, and the next line that goes through is
// preceded by one that says how many. Without a LogWriter the caller writes. Any thread, but no signal handler. Tested
// by log_test.cc and tests/server/logs.sh.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string_view>

namespace weir {

enum class LogLevel : std::uint8_t { debug, info, warn, error };
std::string_view to_string(LogLevel level);
std::optional<LogLevel> log_level_of(std::string_view name);

// What is below it is not told; info at first.
LogLevel log_level() noexcept;
void set_log_level(LogLevel level) noexcept;
// Whether it is worth the while to put a line together.
inline bool is_logged(LogLevel level) noexcept { return level >= log_level(); }

struct LogField {
  std::string_view name;
  std::string_view value;
};

// `message` is a plain sentence without its full stop; what varies stands in fields.
void log(LogLevel level, std::string_view message, std::span<const LogField> fields) noexcept;
inline void log(LogLevel level, std::string_view message, std::initializer_list<LogField> fields = {}) noexcept {
  log(level, message, std::span(fields.begin(), fields.size()));
}

enum class LogFormat : std::uint8_t {
  text,     // weir: the rules stay as they were file=weir.yaml
  json,     // {"ts":"2026-11-16T07:00:00.123Z","level":"warn","msg":"the rules stay as they were","file":"weir.yaml"}
  journal,  // as text, with the level in front as systemd's journal reads it; chosen instead of text where it listens
};

// Since the process began.
struct LogCounts {
  std::uint64_t written = 0;  // lines
  std::uint64_t dropped = 0;
};
LogCounts log_counts() noexcept;

// For whoever ends the process without ending a LogWriter: what is queued is written, for a second at most.
void end_log() noexcept;

// One at a time in a process. At its end what is queued is written, for a second at most; what is left then is lost.
class LogWriter {
 public:
  explicit LogWriter(LogFormat format);
  ~LogWriter();
  LogWriter(const LogWriter&) = delete;
  LogWriter& operator=(const LogWriter&) = delete;
};

}  // namespace weir
