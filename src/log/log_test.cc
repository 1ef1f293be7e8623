// The log through stderr: with and without its writer, into a file, a pipe without a reader, and a full disk.
#include "log/log.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace weir::log::log_test {
namespace {

// Redirects stderr to another descriptor while it lives.
class StderrIs {
 public:
  explicit StderrIs(int descriptor) : before_(::dup(STDERR_FILENO)) {
    ::dup2(descriptor, STDERR_FILENO);
    ::close(descriptor);
  }
  ~StderrIs() {
    ::dup2(before_, STDERR_FILENO);
    ::close(before_);
  }
  StderrIs(const StderrIs&) = delete;
  StderrIs& operator=(const StderrIs&) = delete;

 private:
  int before_;
};

class LogTest : public ::testing::Test {
 protected:
  LogTest() : path_(::testing::TempDir() + "log_test." + std::to_string(::getpid())) {}
  ~LogTest() override {
    set_log_level(LogLevel::info);
    ::unlink(path_.c_str());
  }
  int open_file() const { return ::open(path_.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_APPEND, 0600); }
  std::string file() const {
    std::ostringstream text;
    text << std::ifstream(path_).rdbuf();
    return text.str();
  }
  std::string path_;
};

TEST_F(LogTest, WritesAtOnceWithoutAWriter) {
  const StderrIs stderr_is(open_file());
  log(LogLevel::warn, "before", {{"k", "v"}});
  EXPECT_EQ(file(), "weir: before k=v\n");
}

TEST_F(LogTest, WritesAllBeforeTheWriterEndsAndAfterIt) {
  const StderrIs stderr_is(open_file());
  const LogCounts before = log_counts();
  {
    const LogWriter writer(LogFormat::text);
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([] {
        for (int k = 0; k < 100; ++k) log(LogLevel::info, "line");
      });
    }
  }
  log(LogLevel::info, "after");
  std::string expected;
  for (int i = 0; i < 400; ++i) expected += "weir: line\n";
  EXPECT_EQ(file(), expected + "weir: after\n");
  EXPECT_EQ(log_counts().written - before.written, 401u);
  EXPECT_EQ(log_counts().dropped, before.dropped);
}

TEST_F(LogTest, ChangesTheLevelAtRuntime) {
  const StderrIs stderr_is(open_file());
  log(LogLevel::debug, "a");
  set_log_level(LogLevel::debug);
  EXPECT_EQ(log_level(), LogLevel::debug);
  log(LogLevel::debug, "b");
  set_log_level(LogLevel::error);
  log(LogLevel::warn, "c");
  EXPECT_FALSE(is_logged(LogLevel::warn));
  log(LogLevel::error, "d");
  EXPECT_EQ(file(), "weir: b\nweir: d\n");
}

TEST_F(LogTest, ReportsLostLinesOnceTheDiskHasSpaceAgain) {
  const LogCounts before = log_counts();
  {
    const StderrIs stderr_is(::open("/dev/full", O_WRONLY));
    for (int i = 0; i < 3; ++i) log(LogLevel::info, "lost");
  }
  EXPECT_EQ(log_counts().dropped - before.dropped, 3u);
  const StderrIs stderr_is(open_file());
  log(LogLevel::info, "found");
  EXPECT_EQ(file(), "weir: log lines were lost dropped=3\nweir: found\n");
}

TEST_F(LogTest, CallersDoNotWaitForAPipeWithoutAReader) {
  constexpr std::uint64_t kLines = 20'000;
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  const LogCounts before = log_counts();
  std::string text;
  std::jthread reader;
  {
    const StderrIs stderr_is(ends[1]);
    const LogWriter writer(LogFormat::text);
    for (std::uint64_t i = 0; i < kLines; ++i) log(LogLevel::info, "a line that is long enough to fill a pipe soon");
    EXPECT_GT(log_counts().dropped, before.dropped);
    reader = std::jthread([&] {  // now it is read
      std::array<char, 4'096> bytes{};
      for (ssize_t size = 0; (size = ::read(ends[0], bytes.data(), bytes.size())) > 0;) {
        text.append(bytes.data(), static_cast<std::size_t>(size));
      }
    });
  }
  reader.join();
  ::close(ends[0]);
  std::uint64_t lines = 0, reported = 0;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    if (const std::size_t at = line.find("dropped="); at != line.npos) {
      reported += std::stoull(line.substr(at + 8));
    } else {
      ++lines;
    }
  }
  EXPECT_EQ(lines + reported, kLines);
  EXPECT_EQ(log_counts().dropped - before.dropped, reported);
}

}  // namespace
}  // namespace weir::log::log_test
