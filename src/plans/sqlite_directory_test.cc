// Tests a directory over real SQLite files: how soon a change is seen among very many subjects, and which plans apply
// while the file is locked, gone, damaged or full of invalid data.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "plans/plan_directory.h"
#include "plans/plans_fixture.h"

namespace weir::plans {
namespace {

struct SqliteDirectory : testing::Test {
  base::TestFolder folder;
  std::string file = folder.at("plans.db");

  std::unique_ptr<PlanDirectory> make(const std::string& query = "") {
    auto source = make_plan_source({.url = "sqlite:" + file, .query = query});
    EXPECT_TRUE(source);
    auto plans = std::make_unique<PlanDirectory>(*std::move(source), PlanDirectoryOptions{.check = strict_check});
    EXPECT_TRUE(plans->wait_until_read(Micros{20'000'000})) << plans->status().error;
    return plans;
  }
  void fill(int rows) const {
    OtherProgram(file).run(
        "CREATE TABLE weir_plans (subject TEXT PRIMARY KEY, plan TEXT, updated TEXT);"
        "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < " +
        std::to_string(rows - 1) + ") INSERT INTO weir_plans (subject, plan) SELECT 'user:' || i, 'free' FROM n");
  }
};

TEST_F(SqliteDirectory, SeesOneUpgradeAmongAHundredThousandSubjects) {
  fill(kManySubjects);
  const auto plans = make();
  OtherProgram other(file);
  double longest = 0;
  for (int i = 0; i < 5; ++i) {
    other.run("UPDATE weir_plans SET plan = 'pro' WHERE subject = '" + user(kManySubjects - 1 - i) + "'");
    longest = std::max(longest, until([&] { return plans->find(user(kManySubjects - 1 - i)).plan == "pro"; }));
  }
  std::printf("an upgrade among %d was seen within %.0f ms\n", kManySubjects, longest * 1e3);
}

TEST_F(SqliteDirectory, AHundredThousandChangesAtOnceDoNotBlockLookups) {
  fill(kManySubjects);
  const auto plans = make();
  std::atomic<bool> is_done{false};
  Questions questions;
  std::thread asking([&] {
    for (int i = 0; !is_done.load(); i = (i + 7'919) % kManySubjects) questions.ask(*plans, user(i));
  });
  OtherProgram(file).run("UPDATE weir_plans SET plan = 'pro'");
  const auto start = read_stopwatch();
  until([&] { return plans->status().changes >= std::uint64_t{kManySubjects}; });
  const double took = seconds_since(start);
  is_done = true;
  asking.join();
  for (int i = 0; i < kManySubjects; ++i) ASSERT_EQ(plans->find(user(i)).plan, "pro") << i;
  std::printf("%d changes were seen within %.0f ms; meanwhile ", kManySubjects, took * 1e3);
  questions.expect_none_held_up(took);
}

// As when plans are in the database of a busy application.
TEST_F(SqliteDirectory, SeesAnUpgradeInAFileThatIsWrittenConstantly) {
  OtherProgram other(file);
  other.run("PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF; CREATE TABLE hits (n INTEGER);");
  other.run("CREATE TABLE users (id INTEGER PRIMARY KEY, plan TEXT); INSERT INTO users VALUES (1, 'free')");
  const auto plans = make("SELECT plan FROM users WHERE id = $1 AND $2 = 'user'");
  for (int i = 0; i < 5'000; ++i) plans->find(user(i));
  until([&] { return plans->status().pending == 0; });
  const std::uint64_t before = plans->status().lookups;
  std::atomic<bool> is_done{false};
  std::thread writing([&] {
    while (!is_done.load()) other.run("INSERT INTO hits VALUES (1)");
  });
  const auto start = read_stopwatch();
  until([&] { return plans->status().lookups > before + 20'000; });
  const double often = seconds_since(start);
  OtherProgram(file).run("UPDATE users SET plan = 'pro' WHERE id = 1");
  const double took = until([&] { return plans->find("user:1").plan == "pro"; });
  is_done = true;
  writing.join();
  std::printf("read four times in %.0f ms; an upgrade was seen within %.0f ms\n", often * 1e3, took * 1e3);
}

TEST_F(SqliteDirectory, KeepsThePlansWhileTheFileIsLocked) {
  fill(10);
  const auto plans = make();
  OtherProgram other(file);
  other.run("BEGIN EXCLUSIVE");
  other.run("UPDATE weir_plans SET plan = 'pro'");
  until([&] { return !plans->status().is_up; });
  EXPECT_EQ(plans->find("user:1").plan, "free");
  EXPECT_NE(plans->status().error.find("locked"), std::string::npos) << plans->status().error;
  EXPECT_GT(plans->status().age, Micros{500'000});
  other.run("COMMIT");
  const double took = until([&] { return plans->find("user:1").plan == "pro"; });
  std::printf("fresh %.0f ms after the lock\n", took * 1e3);
}

TEST_F(SqliteDirectory, KeepsThePlansWhileTheFileIsMissing) {
  fill(10);
  const auto plans = make();
  std::filesystem::rename(file, folder.at("elsewhere"));
  until([&] { return !plans->status().is_up; });
  EXPECT_EQ(plans->find("user:1").plan, "free");
  OtherProgram(folder.at("elsewhere")).run("UPDATE weir_plans SET plan = 'pro'");
  std::filesystem::rename(folder.at("elsewhere"), file);
  const double took = until([&] { return plans->find("user:1").plan == "pro"; });
  std::printf("fresh %.0f ms after the file was back\n", took * 1e3);
}

TEST_F(SqliteDirectory, KeepsThePlansWhileTheFileIsDamaged) {
  fill(10);
  const auto plans = make();
  std::filesystem::copy(file, folder.at("good"));
  {
    std::ofstream(folder.at("bad")) << std::string(20'000, 'x');
    std::filesystem::rename(folder.at("bad"), file);
  }
  until([&] { return !plans->status().is_up; });
  EXPECT_EQ(plans->find("user:1").plan, "free");
  EXPECT_NE(plans->status().error.find("not a SQLite database"), std::string::npos) << plans->status().error;
  std::filesystem::rename(folder.at("good"), file);
  until([&] { return plans->status().is_up; });
}

TEST_F(SqliteDirectory, AnEmptyTableMeansTheDefaultPlanAndAMissingTableDoesNot) {
  fill(10);
  const auto plans = make();
  OtherProgram other(file);
  other.run("DROP TABLE weir_plans");
  until([&] { return !plans->status().is_up; });
  EXPECT_EQ(plans->find("user:1").plan, "free");
  other.run("CREATE TABLE weir_plans (subject TEXT PRIMARY KEY, plan TEXT, updated TEXT)");
  until([&] { return plans->find("user:1").plan.empty(); });
  EXPECT_FALSE(plans->find("user:1").is_pending);
}

TEST_F(SqliteDirectory, InvalidRowsOfAQueryAreRefusedAlone) {
  OtherProgram other(file);
  other.run("CREATE TABLE users (id INTEGER, plan TEXT, limits)");
  other.run("INSERT INTO users VALUES (1, 'pro', NULL), (2, 'pro', NULL), (3, 'pro', NULL), (4, 'pro', NULL)");
  const auto plans = make("SELECT plan, limits FROM users WHERE id = $1 AND $2 = 'user'");
  for (int i = 1; i <= 4; ++i) until_plan(*plans, user(i), "pro");
  other.run(
      "UPDATE users SET plan = NULL WHERE id = 1; UPDATE users SET limits = -5 WHERE id = 2;"
      "INSERT INTO users VALUES (3, 'free', NULL); UPDATE users SET limits = '5000/minute' WHERE id = 4");
  until([&] { return plans->find("user:4").limits != nullptr; });
  until([&] { return plans->status().refused == 3; });
  for (int i = 1; i <= 4; ++i) EXPECT_EQ(plans->find(user(i)).plan, "pro");
  EXPECT_EQ(plans->find("user:2").limits, nullptr);
}

}  // namespace
}  // namespace weir::plans
