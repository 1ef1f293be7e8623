// This Weir opens a state file of an older Weir, and its keys keep what they used.
//
// tests/state/version1.txt is such a file, made by the last program of layout 1. each_key() lists its keys.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>

#include "algorithm/limit.h"
#include "limiter/find_calendar.h"
#include "limiter/state.h"
#include "store/memory_store.h"
#include "table/contents.h"
#include "table/file.h"
#include "table/take_over.h"

namespace weir::test {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kNow = 1'700'000'000'000'000, kSecond = 1'000'000, kHour = 3'600 * kSecond;

class TakeOver : public ::testing::Test {
 protected:
  TakeOver() {
    const fs::path place = fs::exists("/dev/shm") ? fs::path("/dev/shm") : fs::temp_directory_path();
    std::string folder = (place / "weir_take_over_test_XXXXXX").string();
    folder_ = mkdtemp(folder.data());
    path_ = (folder_ / "state").string();
    restore();
  }
  ~TakeOver() override { fs::remove_all(folder_); }

  void restore() const {
    std::ifstream text(std::string(WEIR_SOURCE_DIR) + "/tests/state/version1.txt");
    std::string line;
    while (text.peek() == '#') std::getline(text, line);
    std::uint64_t bytes = 0, at = 0, words[2];
    text >> std::hex >> bytes;
    ASSERT_GT(bytes, 0u);
    std::ofstream(path_, std::ios::binary).flush();
    fs::resize_file(path_, bytes);
    std::fstream file(path_, std::ios::binary | std::ios::in | std::ios::out);
    while (text >> at >> words[0] >> words[1]) {
      file.seekp(static_cast<std::streamoff>(at));
      file.write(reinterpret_cast<const char*>(words), sizeof words);
    }
  }

  Result<std::unique_ptr<store::MemoryStore>> open() const {
    return store::MemoryStore::open({.file = path_, .find_calendar = limiter::find_calendar},
                                    std::make_shared<ManualClock>(Micros{kNow}));
  }

  std::uint32_t layout() const {
    table::Header header;
    std::ifstream(path_, std::ios::binary).read(reinterpret_cast<char*>(&header), sizeof header);
    return header.version;
  }

  std::size_t files() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder_), fs::directory_iterator{}));
  }

  // The keys of the file, and how much each has used.
  static void each_key(const std::function<void(const std::string&, const Limit&, std::int64_t)>& visit) {
    const Limit fixed = *algorithm::make_window(Algorithm::fixed_window, 100, kHour);
    visit("fixed", fixed, 30);
    visit("phased", *phased(fixed, 600 * kSecond), 40);
    visit("calendar", *compile("10/calendar_day Europe/Berlin"), 4);
    const Limit sliding = *algorithm::make_window(Algorithm::sliding_window, 100, kHour);
    visit("sliding", sliding, 55);  // 35 an hour before, of which all still count
    visit("large", *algorithm::make_window(Algorithm::sliding_window, kPermitsMax, kHour), 123'456'789);
    visit("log", *algorithm::make_window(Algorithm::sliding_log, 20, 600 * kSecond), 7);
    visit("wide", *algorithm::make_window(Algorithm::sliding_log, 20, 1'000 * kHour), 11);
    visit("bucket", *algorithm::make_bucket(Algorithm::token_bucket, 50, kHour, 80), 33);
    visit("reserved", sliding, 25);
    visit("once", fixed, 7);
    const Limit few = *algorithm::make_window(Algorithm::sliding_window, 5, kHour);
    for (int i = 0; i < 100; ++i) visit("many" + std::to_string(i), few, 1 + i % 5);
  }

  void expect_all_kept(store::MemoryStore& store) const {
    each_key([&](const std::string& key, const Limit& limit, std::int64_t used) {
      const auto peek = store.preview({.key = key, .limit = &limit, .cost = 0}, kNow);
      ASSERT_TRUE(peek) << key << ": " << peek.error().message;
      EXPECT_EQ(peek->limit - peek->remaining, used) << key;
    });
    const Limit held = *algorithm::make_window(Algorithm::concurrency, 9, kHour);
    const auto acquired = store.acquire({.key = "held", .limit = &held, .cost = 0}, "", kNow);
    ASSERT_TRUE(acquired);
    EXPECT_EQ(acquired->remaining, 7);
  }

  fs::path folder_;
  std::string path_;
};

TEST_F(TakeOver, KeysOfVersion1KeepWhatTheyUsed) {
  ASSERT_EQ(layout(), 1u);
  for (int round = 0; round < 2; ++round) {
    const auto store = open();
    ASSERT_TRUE(store) << store.error().message;
    EXPECT_EQ(layout(), table::kVersion);
    expect_all_kept(**store);
    EXPECT_EQ((*store)->size(), 110u + 1u);
  }
  EXPECT_EQ(files(), 1u);
}

TEST_F(TakeOver, WhatIsSpentStaysSpentAndIsChargedOn) {
  const auto store = open();
  ASSERT_TRUE(store) << store.error().message;
  each_key([&](const std::string& key, const Limit& limit, std::int64_t used) {
    const std::int64_t left = limit.capacity - used;
    EXPECT_FALSE((*store)->check({.key = key, .limit = &limit, .cost = left + 1}, kNow)->allowed) << key;
    if (left == 0) return;
    EXPECT_TRUE((*store)->check({.key = key, .limit = &limit, .cost = left}, kNow)->allowed) << key;
    EXPECT_FALSE((*store)->check({.key = key, .limit = &limit, .cost = 1}, kNow)->allowed) << key;
  });
}

TEST_F(TakeOver, AnIdempotencyIdIsStillKnown) {
  const auto store = open();
  ASSERT_TRUE(store) << store.error().message;
  const Limit fixed = *algorithm::make_window(Algorithm::fixed_window, 100, kHour);
  const Charge once{.key = "once", .limit = &fixed, .cost = 7};
  const auto again = (*store)->charge({&once, 1}, kNow, {.name = "id1", .lasts = Micros{kHour}});
  ASSERT_TRUE(again);
  EXPECT_TRUE(again->repeated);
}

// The file does not have the time of the charge. So a commit may charge more, but refunds nothing.
TEST_F(TakeOver, AReservationIsSettledAndReturnsNothing) {
  const Limit sliding = *algorithm::make_window(Algorithm::sliding_window, 100, kHour);
  for (const std::int64_t actual : {0, 5, 25, 30}) {
    restore();
    const auto store = open();
    ASSERT_TRUE(store) << store.error().message;
    const Charge charge{.key = "reserved", .limit = &sliding, .cost = actual};
    const auto settled = (*store)->commit({&charge, 1}, "r1", kNow);
    ASSERT_TRUE(settled) << settled.error().message;
    EXPECT_EQ(settled->reserved[0], 25);
    EXPECT_EQ(settled->decisions[0].remaining, actual > 25 ? 70 : 75);
    EXPECT_EQ((*store)->commit({&charge, 1}, "r1", kNow).error().code, ErrorCode::not_found);
  }
}

TEST_F(TakeOver, AKillLeavesAFileThatIsTakenOverOrCanBe) {
  int old = 0;
  for (int i = 0; i < 40; ++i) {
    restore();
    const pid_t child = fork();
    if (child == 0) {
      const auto store = open();
      _exit(store ? 0 : 1);
    }
    usleep(static_cast<useconds_t>(100 * i));
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    old += layout() == 1 ? 1 : 0;
    const auto store = open();
    ASSERT_TRUE(store) << store.error().message;
    expect_all_kept(**store);
  }
  EXPECT_GT(old, 0) << "no kill came before the end";
}

TEST_F(TakeOver, ProcessesThatOpenTheFileTogetherShareTheNewOne) {
  for (int i = 0; i < 10; ++i) {
    restore();
    pid_t children[4];
    for (pid_t& child : children) {
      child = fork();
      if (child == 0) {
        const auto store = open();
        const Limit fixed = *algorithm::make_window(Algorithm::fixed_window, 100, kHour);
        const bool charged = store && (*store)->check({.key = "fixed", .limit = &fixed, .cost = 10}, kNow)->allowed;
        _exit(charged ? 0 : 1);
      }
    }
    for (const pid_t child : children) {
      int status = 0;
      waitpid(child, &status, 0);
      EXPECT_EQ(status, 0);
    }
    const auto store = open();
    ASSERT_TRUE(store) << store.error().message;
    const Limit fixed = *algorithm::make_window(Algorithm::fixed_window, 100, kHour);
    EXPECT_EQ((*store)->check({.key = "fixed", .limit = &fixed, .cost = 0}, kNow)->remaining, 30);
  }
}

TEST_F(TakeOver, AFileThatAnOlderProgramUsesIsLeftAlone) {
  const int fd = ::open(path_.c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_EQ(table::lock_users(fd).value(), table::Use::sole);
  table::share_users(fd);
  const auto store = open();
  ASSERT_FALSE(store);
  EXPECT_NE(store.error().message.find("in use by an older Weir"), std::string::npos) << store.error().message;
  EXPECT_EQ(layout(), 1u);
  ::close(fd);
  EXPECT_TRUE(open());
}

TEST_F(TakeOver, TheStateCommandsReadVersion1) {
  const auto inspected = limiter::inspect_state(path_);
  ASSERT_TRUE(inspected) << inspected.error().message;
  EXPECT_NE(inspected->find("layout      1"), std::string::npos) << *inspected;
  std::FILE* const out = std::tmpfile();
  EXPECT_TRUE(limiter::export_state(path_, out));
  std::fclose(out);
  EXPECT_EQ(layout(), 1u) << "to look changes nothing";
  const auto resized = limiter::resize_state(path_, {.keys = 1'000});
  ASSERT_TRUE(resized) << resized.error().message;
  EXPECT_EQ(layout(), table::kVersion);
  EXPECT_TRUE(open());
}

}  // namespace
}  // namespace weir::test
