// The log's queue, its thread, and stderr. See log.h.
//
// The log is never destroyed, because its thread may hang in a write when the process ends, and other destructors may
// still log.
#include "log/log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdlib>
#include <deque>
#include <string>
#include <thread>
#include <utility>

#include "base/mutex.h"
#include "log/log_line.h"

namespace weir::log {
namespace {

constexpr std::array<std::string_view, 4> kLevels = {"debug", "info", "warn", "error"};
constexpr std::size_t kQueueMax = 1'024;  // lines
constexpr std::chrono::seconds kFlushMax{1};
constexpr std::chrono::milliseconds kNap{10};  // for a full stderr that another process made non-blocking

std::atomic<LogLevel> least{LogLevel::info};

// Whether stderr is the journal, as systemd says in JOURNAL_STREAM. The journal reads levels and has its own clock.
bool is_journal() {
  const char* const stream = std::getenv("JOURNAL_STREAM");
  struct stat about {};
  if (stream == nullptr || ::fstat(STDERR_FILENO, &about) != 0) return false;
  return stream == std::to_string(about.st_dev) + ":" + std::to_string(about.st_ino);
}

// Opens /dev/null as stderr if stderr is closed, so that the next file to be opened does not become stderr.
void open_stderr_if_closed() {
  if (::fcntl(STDERR_FILENO, F_GETFD) >= 0) return;
  const int nowhere = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  if (nowhere < 0 || nowhere == STDERR_FILENO) return;
  ::dup2(nowhere, STDERR_FILENO);
  ::close(nowhere);
}

class Log {
 public:
  static Log& instance() {
    static Log& log = *new Log;
    return log;
  }

  void add(const LogLine& line) {
    std::string text = write_log_line(line, format_);
    {
      const base::MutexLock lock(mutex_);
      if (is_stuck_ || queue_.size() >= kQueueMax) return drop();
      queue_.push_back(std::move(text));
      if (has_writer_) return changed_.notify_one();
    }
    write_queue();
  }

  void start(LogFormat format) {
    open_stderr_if_closed();
    const base::MutexLock lock(mutex_);
    format_ = format == LogFormat::text && is_journal() ? LogFormat::journal : format;
    if (is_stuck_ || has_writer_) return;
    has_writer_ = true;
    is_ending_ = false;
    std::thread([this] { run(); }).detach();
  }

  void stop() {
    base::MutexLock lock(mutex_);
    if (!has_writer_) return;
    is_ending_ = true;
    changed_.notify_one();
    if (ended_.wait_for(lock, kFlushMax, [&]() REQUIRES(mutex_) { return !has_writer_; })) return;
    is_stuck_ = true;
    dropped += queue_.size();
    queue_.clear();
  }

  void drop() {
    ++dropped;
    ++unreported_;
  }

  std::atomic<std::uint64_t> written{0}, dropped{0};

 private:
  void run() {
    for (;;) {
      write_queue();
      base::MutexLock lock(mutex_);
      while (!is_ending_ && queue_.empty()) changed_.wait(lock);
      if (!queue_.empty()) continue;
      has_writer_ = false;
      return ended_.notify_all();
    }
  }

  // Writes all queued lines. The lock is released while a line is written.
  void write_queue() {
    bool goes_through = true;
    base::MutexLock lock(mutex_);
    while (!queue_.empty() || (goes_through && unreported_ > 0)) {
      std::string line;
      if (!queue_.empty()) {
        line = std::move(queue_.front());
        queue_.pop_front();
      }
      const std::uint64_t lost = unreported_.load();
      lock.unlock();
      if (lost > 0) goes_through = report_lost(lost);
      if (!line.empty()) {
        goes_through = write_all(line);
        ++(goes_through ? written : dropped);
        if (!goes_through) ++unreported_;
      }
      lock.lock();
    }
  }

  bool report_lost(std::uint64_t lost) {
    const std::string number = std::to_string(lost);
    const LogField fields[] = {{"dropped", number}};
    const std::string line =
        write_log_line({LogLevel::warn, Micros{read_clocks().wall_us}, "log lines were lost", fields}, format_);
    if (!write_all(line)) return false;
    unreported_ -= lost;
    ++written;
    return true;
  }

  // Returns false if it could not write everything; the next line then starts on a new line.
  bool write_all(std::string_view text) {
    const base::MutexLock lock(writing_);
    std::string whole;
    if (is_torn_) text = whole.append("\n").append(text);
    std::size_t done = 0;
    while (done < text.size()) {
      const ssize_t size = ::write(STDERR_FILENO, text.data() + done, text.size() - done);
      if (size > 0) {
        done += static_cast<std::size_t>(size);
      } else if (size < 0 && errno == EAGAIN) {
        std::this_thread::sleep_for(kNap);
      } else if (size == 0 || errno != EINTR) {
        is_torn_ = is_torn_ || done > 0;
        return false;
      }
    }
    is_torn_ = false;
    return true;
  }

  std::atomic<LogFormat> format_{LogFormat::text};
  std::atomic<std::uint64_t> unreported_{0};  // dropped lines that are not reported yet
  base::Mutex writing_;                       // guards stderr, too
  bool is_torn_ GUARDED_BY(writing_) = false;
  base::Mutex mutex_;
  std::condition_variable changed_, ended_;
  std::deque<std::string> queue_ GUARDED_BY(mutex_);
  bool has_writer_ GUARDED_BY(mutex_) = false;
  bool is_ending_ GUARDED_BY(mutex_) = false;
  bool is_stuck_ GUARDED_BY(mutex_) = false;  // the writer hung in a write when it was stopped
};

}  // namespace

std::string_view to_string(LogLevel level) { return kLevels[static_cast<std::size_t>(level)]; }

std::optional<LogLevel> log_level_of(std::string_view name) {
  for (std::size_t i = 0; i < kLevels.size(); ++i) {
    if (kLevels[i] == name) return static_cast<LogLevel>(i);
  }
  return std::nullopt;
}

LogLevel log_level() noexcept { return least.load(std::memory_order_relaxed); }
void set_log_level(LogLevel level) noexcept { least.store(level, std::memory_order_relaxed); }

void log(LogLevel level, std::string_view message, std::span<const LogField> fields) noexcept {
  if (!is_logged(level)) return;
  Log& to = Log::instance();
  try {
    to.add({level, Micros{read_clocks().wall_us}, message, fields});
  } catch (...) {
    to.drop();  // out of memory
  }
}

LogCounts log_counts() noexcept {
  const Log& of = Log::instance();
  return {of.written.load(std::memory_order_relaxed), of.dropped.load(std::memory_order_relaxed)};
}

void end_log() noexcept { Log::instance().stop(); }

LogWriter::LogWriter(LogFormat format) { Log::instance().start(format); }
LogWriter::~LogWriter() { end_log(); }

}  // namespace weir::log
