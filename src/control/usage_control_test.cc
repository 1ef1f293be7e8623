// Tests seats, files and their writer (usage/usage_files.h, usage_control.h): no process overwrites another's files,
// and damage stops nothing.
#include "usage/usage_files.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <thread>

#include "base/folder_fixture.h"
#include "control/usage_control.h"
#include "weir/gate.h"
#include "weir/limiter.h"

namespace weir::control {
namespace {

constexpr Micros kNoon{1'789'992'000'000'000};  // 2026-09-21
constexpr const char* kUsageRules = "rules: [{name: r, per: user, limit: 1000/day}]";

TEST(UsageFiles, EachProcessHasItsOwnFiles) {
  const base::TestFolder folder;
  usage::UsageFiles first, second;
  ASSERT_TRUE(first.open(folder.at("u")));
  ASSERT_TRUE(second.open(folder.at("u")));
  EXPECT_EQ(first.seat(), 0U);
  EXPECT_EQ(second.seat(), 1U);
  {
    usage::UsageFiles third;
    ASSERT_TRUE(third.open(folder.at("u")));
    EXPECT_EQ(third.seat(), 2U);
  }
  usage::UsageFiles again;
  ASSERT_TRUE(again.open(folder.at("u")));
  EXPECT_EQ(again.seat(), 2U) << "the free number is used again";
  ASSERT_TRUE(first.write("2026-09-21", "one"));
  ASSERT_TRUE(second.write("2026-09-21", "two"));
  ASSERT_TRUE(second.write("2026-09-20", "before"));
  ASSERT_TRUE(first.write("2026-09-21", "one more"));
  folder.write("u/2026-09-21.99", "none of ours");
  folder.write("u/notes.txt", "none of ours");
  const auto files = first.list();
  ASSERT_EQ(files->size(), 3U);
  EXPECT_EQ(*usage::UsageFiles::read((*files)[0]), "before");
  EXPECT_EQ(*usage::UsageFiles::read((*files)[1]), "one more");
  first.forget_before("2026-09-21");
  EXPECT_EQ(first.list()->size(), 2U);
  EXPECT_EQ(folder.read("u/notes.txt"), "none of ours");
}

TEST(UsageFiles, ReportsUnusableFoldersAndFiles) {
  const base::TestFolder folder;
  folder.write("file", "");
  usage::UsageFiles files;
  EXPECT_FALSE(files.open(folder.at("file")));
  EXPECT_FALSE(files.open(folder.at("no/such/place")));
  std::filesystem::create_directories(folder.at("u/2026-09-21.0"));
  ASSERT_TRUE(files.open(folder.at("u")));
  EXPECT_FALSE(usage::UsageFiles::read(files.list()->at(0)));
  EXPECT_FALSE(files.write("2026-09-21", "over a folder"));
}

TEST(UsageFiles, RefusesMoreProcessesThanTheMaximum) {
  const base::TestFolder folder;
  std::vector<std::unique_ptr<usage::UsageFiles>> all;
  for (unsigned i = 0; i < usage::UsageFiles::kSeats; ++i) {
    all.push_back(std::make_unique<usage::UsageFiles>());
    ASSERT_TRUE(all.back()->open(folder.at("u")));
  }
  usage::UsageFiles one_more;
  EXPECT_FALSE(one_more.open(folder.at("u")));
}

// A process: a gate, its limiter and usage that is written at its end, or at the given interval.
struct Process {
  explicit Process(const base::TestFolder& folder, std::shared_ptr<ManualClock> of,
                   std::chrono::milliseconds every = std::chrono::hours(1))
      : limiter({.clock = std::move(of), .keys = 1'000, .sweeping = Sweeping::by_hand}) {
    EXPECT_TRUE(gate.apply(*parse_policy(kUsageRules, "t")));
    usage.emplace(limiter, gate, UsageControlOptions{.folder = folder.at("u"), .days = 3, .every = every});
  }
  void charge(std::string_view user, std::int64_t cost) {
    EXPECT_TRUE(gate.check({.user = user, .cost = cost})->allowed);
  }
  std::int64_t used(const std::string& user) {
    std::int64_t sum = 0;
    const auto report = usage->report({.subject = "user:" + user});
    for (const UsageRow& row : report->rows) sum += row.used;
    return sum;
  }

  Limiter limiter;
  Gate gate{limiter, {.usage = {.subjects = 100, .days = 3}}};
  std::optional<UsageControl> usage;
};

struct UsageKeeping : testing::Test {
  const base::TestFolder folder;
  const std::shared_ptr<ManualClock> clock = std::make_shared<ManualClock>(kNoon);
};

TEST_F(UsageKeeping, ContinuesFromTheFilesOfTheLastProcess) {
  for (int life = 1; life <= 3; ++life) {
    Process process(folder, clock);
    process.charge("42", 10);
    EXPECT_EQ(process.used("42"), 10 * life);
    clock->advance(Micros{86'400'000'000} / 2);
  }
  EXPECT_FALSE(folder.read("u/2026-09-21.0").empty());
  EXPECT_FALSE(folder.read("u/2026-09-22.0").empty());
  EXPECT_TRUE(folder.read("u/2026-09-21.1").empty());
}

TEST_F(UsageKeeping, TwoProcessesLoseAndDoubleNothing) {
  std::optional<Process> old(std::in_place, folder, clock);
  old->charge("42", 10);
  std::optional<Process> next(std::in_place, folder, clock);
  next->charge("42", 5);
  old->charge("42", 1);
  EXPECT_EQ(next->used("42"), 5) << "the other process has not written its usage yet";
  old.reset();
  EXPECT_EQ(next->used("42"), 16);
  std::optional<Process> third(std::in_place, folder, clock);  // gets the first seat again
  third->charge("42", 100);
  next.reset();
  EXPECT_EQ(third->used("42"), 116);
  third.reset();
  Process last(folder, clock);
  EXPECT_EQ(last.used("42"), 116);
}

TEST_F(UsageKeeping, WritesWhileItRuns) {
  Process process(folder, clock, std::chrono::milliseconds(5));
  process.charge("42", 10);
  for (int i = 0; i < 12'000 && folder.read("u/2026-09-21.0").find("user:42") == std::string::npos; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_NE(folder.read("u/2026-09-21.0").find("user:42"), std::string::npos);
  EXPECT_EQ(process.usage->status().failures, 0U);
}

TEST_F(UsageKeeping, SetsADamagedFileAsideAndKeepsAllOthers) {
  {
    Process process(folder, clock);
    process.charge("42", 10);
    clock->advance(Micros{86'400'000'000});
    process.charge("42", 7);
  }
  const std::string text = folder.read("u/2026-09-21.0");
  folder.write("u/2026-09-21.0", text.substr(0, text.size() / 2));
  {
    Process process(folder, clock);
    EXPECT_EQ(process.used("42"), 7);
    EXPECT_EQ(process.usage->status().set_aside, 1U);
    EXPECT_EQ(folder.read("u/2026-09-21.0.damaged"), text.substr(0, text.size() / 2));
  }
  folder.write("u/2026-09-22.1", "of a newer version, say");
  Process process(folder, clock);
  EXPECT_EQ(process.used("42"), 7) << "unreadable files of other processes are left out";
  EXPECT_EQ(folder.read("u/2026-09-22.1"), "of a newer version, say");
}

TEST_F(UsageKeeping, DoesNotModifyAFileOfANewerVersion) {
  const std::string newer = "weir-usage 2\nwho knows\n";
  std::filesystem::create_directories(folder.at("u"));
  folder.write("u/2026-09-21.0", newer);
  std::filesystem::create_directories(folder.at("u/2026-09-20.0"));  // an unreadable one
  for (int life = 0; life < 2; ++life) {
    Process process(folder, clock);
    EXPECT_EQ(process.usage->status().set_aside, 0U);
    process.charge("42", 10);
    EXPECT_EQ(process.used("42"), 10);
  }
  EXPECT_EQ(folder.read("u/2026-09-21.0"), newer);
  EXPECT_TRUE(std::filesystem::is_directory(folder.at("u/2026-09-20.0")));
  clock->advance(Micros{86'400'000'000});
  { Process(folder, clock).charge("42", 7); }
  EXPECT_EQ(Process(folder, clock).used("42"), 7) << "the next day has a file again";
}

TEST_F(UsageKeeping, RemovesFilesOfOldDays) {
  {
    Process process(folder, clock);
    process.charge("42", 10);
  }
  folder.write("u/2026-09-21.0.damaged", "half");
  folder.write("u/2026-09-21.3.new", "half");
  clock->advance(Micros{86'400'000'000} * 2);
  { Process process(folder, clock); }
  EXPECT_FALSE(folder.read("u/2026-09-21.0").empty());
  clock->advance(Micros{86'400'000'000});
  { Process process(folder, clock); }
  EXPECT_TRUE(folder.read("u/2026-09-21.0").empty());
  EXPECT_TRUE(folder.read("u/2026-09-21.0.damaged").empty());
  EXPECT_TRUE(folder.read("u/2026-09-21.3.new").empty());
}

TEST_F(UsageKeeping, CountsInMemoryIfTheFolderCannotBeUsed) {
  folder.write("u", "a file");
  Process process(folder, clock);
  process.charge("42", 10);
  EXPECT_EQ(process.used("42"), 10);
  EXPECT_EQ(process.usage->status().written_at, Micros{0});
}

TEST_F(UsageKeeping, RetriesAFailedWrite) {
  Process process(folder, clock, std::chrono::milliseconds(5));
  std::filesystem::create_directories(folder.at("u/2026-09-21.0.new"));  // blocks the write
  process.charge("42", 10);
  const auto until = [&](auto done) {
    for (int i = 0; i < 12'000 && !done(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    return done();
  };
  EXPECT_TRUE(until([&] { return process.usage->status().failures > 0; }));
  std::filesystem::remove(folder.at("u/2026-09-21.0.new"));
  EXPECT_TRUE(until([&] { return !folder.read("u/2026-09-21.0").empty(); }));
}

}  // namespace
}  // namespace weir::control
