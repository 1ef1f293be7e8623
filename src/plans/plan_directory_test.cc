// A directory of plans over a database that a script plays, and over real files of SQLite: what a check is told while
// the database is slow, away, or talks nonsense.
#include "plans/plan_directory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

#include "plans/sqlite_source.h"
#include "plans/test_database.h"

namespace weir {
namespace {

using Kind = PlanChange::Kind;

std::string user(int number) { return "user:" + std::to_string(number); }

// Knows three plans, and quotas that begin with a number that makes sense.
Result<JudgedRow> strict(const PlanRow& row) {
  JudgedRow judged;
  if (row.has_plan) {
    if (!row.plan) return fail(ErrorCode::invalid_argument, "its plan is NULL");
    if (*row.plan != "free" && *row.plan != "pro" && *row.plan != "enterprise") {
      return fail(ErrorCode::invalid_argument, "no plan is called '" + *row.plan + "'");
    }
    judged.plan = *row.plan;
  }
  if (row.has_override) {
    if (!row.limits) return fail(ErrorCode::invalid_argument, "its limits are NULL");
    const long long permits = std::strtoll(row.limits->c_str(), nullptr, 10);
    if (permits <= 0 || permits > 1'000'000'000) {
      return fail(ErrorCode::out_of_range, "'" + *row.limits + "' is no quota");
    }
    judged.instead = *row.limits;
  }
  return judged;
}

// A database as a test wants it.
class ScriptedSource final : public PlanSource {
 public:
  struct Script {
    std::mutex mutex;  // guards all of this
    std::condition_variable changed;
    std::map<std::string, PlanRow> rows;
    std::map<std::string, int> found;  // how often each was asked for
    Changes changes;
    bool is_dead = false, is_stuck = false, has_pages = true;
    int batches = 0, connects = 0;
    std::size_t batch_max = 0;
    bool woken = false;

    void set(const std::string& subject, const std::string& plan) {
      const std::lock_guard lock(mutex);
      rows[subject] = {.subject = subject, .has_plan = true, .plan = plan};
    }
    void tell(Changes what) {
      const std::lock_guard lock(mutex);
      changes = std::move(what);
      changed.notify_all();
    }
    void kill(bool dead) {
      const std::lock_guard lock(mutex);
      is_dead = dead;
      changed.notify_all();
    }
    void stick(bool stuck) {
      const std::lock_guard lock(mutex);
      is_stuck = stuck;
      changed.notify_all();
    }
    int asked(const std::string& subject) {
      const std::lock_guard lock(mutex);
      return found[subject];
    }
  };

  explicit ScriptedSource(std::shared_ptr<Script> script) : script_(std::move(script)) {}

  Result<void> connect() override {
    std::unique_lock lock(script_->mutex);
    ++script_->connects;
    return alive(lock);
  }
  Result<std::vector<PlanRow>> find(std::span<const std::string> subjects) override {
    std::unique_lock lock(script_->mutex);
    if (Result<void> is = alive(lock); !is) return fail(is.error());
    ++script_->batches;
    script_->batch_max = std::max(script_->batch_max, subjects.size());
    std::vector<PlanRow> rows;
    for (const std::string& subject : subjects) {
      ++script_->found[subject];
      if (const auto row = script_->rows.find(subject); row != script_->rows.end()) rows.push_back(row->second);
    }
    return rows;
  }
  Result<std::vector<PlanRow>> all(std::string_view after, std::size_t most) override {
    std::unique_lock lock(script_->mutex);
    if (!script_->has_pages) return fail(ErrorCode::not_found, "one by one");
    if (Result<void> is = alive(lock); !is) return fail(is.error());
    std::vector<PlanRow> rows;
    for (auto row = script_->rows.upper_bound(std::string(after)); row != script_->rows.end() && rows.size() < most;
         ++row) {
      rows.push_back(row->second);
    }
    return rows;
  }
  Result<Changes> wait(Micros most) override {
    std::unique_lock lock(script_->mutex);
    if (Result<void> is = alive(lock); !is) return fail(is.error());
    const auto is_news = [&] {
      return script_->woken || script_->is_dead || script_->changes.all || !script_->changes.subjects.empty();
    };
    script_->changed.wait_for(lock, most, is_news);
    script_->woken = false;
    if (script_->is_dead) return fail(ErrorCode::unavailable, "the database is away");
    return std::exchange(script_->changes, {});
  }
  void wake() noexcept override {
    const std::lock_guard lock(script_->mutex);
    script_->woken = true;
    script_->changed.notify_all();
  }
  Result<void> write(const PlanChange& change) override {
    std::unique_lock lock(script_->mutex);
    if (Result<void> is = alive(lock); !is) return is;
    script_->rows[change.subject] = {.subject = change.subject, .has_plan = true, .plan = change.plan};
    return {};
  }

 private:
  Result<void> alive(std::unique_lock<std::mutex>& lock) {
    script_->changed.wait(lock, [&] { return !script_->is_stuck; });
    if (script_->is_dead) return fail(ErrorCode::unavailable, "the database is away");
    return {};
  }

  const std::shared_ptr<Script> script_;
};

struct PlanDirectoryTest : testing::Test {
  std::shared_ptr<ScriptedSource::Script> script = std::make_shared<ScriptedSource::Script>();
  std::mutex told_mutex;
  std::vector<PlanEvent> told;

  PlanDirectoryOptions options() {
    return {.judge = strict, .tell = [this](const PlanEvent& event) {
              const std::lock_guard lock(told_mutex);
              told.push_back(event);
            }};
  }
  std::unique_ptr<PlanDirectory> make(PlanDirectoryOptions with) {
    return std::make_unique<PlanDirectory>(std::make_unique<ScriptedSource>(script), std::move(with));
  }
  std::unique_ptr<PlanDirectory> make() { return make(options()); }
  std::size_t told_of(PlanEvent::Kind kind) {
    const std::lock_guard lock(told_mutex);
    return static_cast<std::size_t>(std::ranges::count(told, kind, &PlanEvent::kind));
  }
};

void until_plan(PlanDirectory& plans, const std::string& subject, const std::string& plan) {
  until([&] {
    const PlanTerms terms = plans.find(subject);
    return !terms.is_pending && terms.plan == plan;
  });
}

TEST_F(PlanDirectoryTest, WhatTheTablesHoldIsKnownBeforeAnybodyAsks) {
  for (int i = 0; i < 5'000; ++i) script->set(user(i), "pro");
  const auto plans = make();
  ASSERT_TRUE(plans->wait_until_read(Micros{20'000'000}));
  EXPECT_EQ(plans->find("user:4999").plan, "pro");
  EXPECT_FALSE(plans->find("user:4999").is_pending);
  EXPECT_EQ(script->asked("user:4999"), 0);
  EXPECT_EQ(plans->status().subjects, 5'000u);
  EXPECT_TRUE(plans->status().is_up);
}

TEST_F(PlanDirectoryTest, ASubjectThatManyAskForIsLookedUpOnce) {
  const auto plans = make();
  ASSERT_TRUE(plans->wait_until_read(Micros{20'000'000}));
  script->set("user:1", "pro");  // and no change is told
  script->stick(true);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 1'000; ++i) {
        EXPECT_TRUE(plans->find("user:1").is_pending);
        EXPECT_EQ(plans->find("user:1").plan, "");
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(plans->status().pending, 1u);
  script->stick(false);
  until_plan(*plans, "user:1", "pro");
  EXPECT_EQ(script->asked("user:1"), 1);
  EXPECT_EQ(plans->status().pending, 0u);
}

TEST_F(PlanDirectoryTest, ACheckWaitsForItsSubjectButNotForLong) {
  PlanDirectoryOptions with = options();
  with.wait = Micros{20'000'000};
  const auto plans = make(with);
  ASSERT_TRUE(plans->wait_until_read(Micros{20'000'000}));
  script->set("user:1", "pro");
  EXPECT_TRUE(plans->find("user:1").is_pending);
  EXPECT_TRUE(plans->wait("user:1"));
  EXPECT_EQ(plans->find("user:1").plan, "pro");
  EXPECT_TRUE(plans->wait("user:1"));
}

TEST_F(PlanDirectoryTest, AfterOneHasWaitedInVainNobodyWaitsUntilThereAreAnswersAgain) {
  PlanDirectoryOptions with = options();
  with.wait = Micros{50'000};
  const auto plans = make(with);
  ASSERT_TRUE(plans->wait_until_read(Micros{20'000'000}));
  script->stick(true);
  plans->find("user:1");
  EXPECT_FALSE(plans->wait("user:1"));
  EXPECT_EQ(plans->status().waits_in_vain, 1u);
  const auto start = read_stopwatch();
  for (int i = 0; i < 1'000; ++i) {
    plans->find(user(i));
    EXPECT_FALSE(plans->wait(user(i)));
  }
  EXPECT_LT(seconds_since(start), 10);  // 50 if they waited
  EXPECT_EQ(plans->status().waits_in_vain, 1u);
  EXPECT_EQ(plans->status().waits, 1u);
  script->stick(false);
  until([&] { return plans->status().pending == 0; });
  plans->find("user:2000");
  EXPECT_TRUE(plans->wait("user:2000"));
}

TEST_F(PlanDirectoryTest, UnknownSubjectsAreRememberedAsOfTheDefaultPlan) {
  const auto plans = make();
  until_plan(*plans, "user:nobody", "");
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(plans->find("user:nobody").is_pending);
  EXPECT_EQ(script->asked("user:nobody"), 1);
}

TEST_F(PlanDirectoryTest, AChangeThatIsToldIsSeen) {
  script->set("user:1", "free");
  script->set("user:2", "free");
  const auto plans = make();
  ASSERT_TRUE(plans->wait_until_read(Micros{20'000'000}));
  script->set("user:1", "pro");
  script->tell({.subjects = {"user:1"}});
  until_plan(*plans, "user:1", "pro");
  script->set("user:2", "enterprise");
  script->tell({.all = true});
  until_plan(*plans, "user:2", "enterprise");
  {
    const std::lock_guard lock(script->mutex);
    script->rows.clear();
  }
  script->tell({.all = true});
  until_plan(*plans, "user:1", "");
  until_plan(*plans, "user:2", "");
  EXPECT_EQ(plans->status().changes, 4u);
}

TEST_F(PlanDirectoryTest, WithAQueryAllWhoAreKnownAreAskedForAgain) {
  script->has_pages = false;
  const auto plans = make();
  ASSERT_TRUE(plans->wait_until_read(Micros{20'000'000}));
  for (int i = 0; i < 3'000; ++i) plans->find(user(i));
  until([&] { return plans->status().pending == 0; });
  for (int i = 0; i < 3'000; ++i) script->set(user(i), "pro");
  script->tell({.all = true});
  for (int i = 0; i < 3'000; ++i) until_plan(*plans, user(i), "pro");
  EXPECT_LE(script->batch_max, 256u);
}

TEST_F(PlanDirectoryTest, EverybodyIsAskedForAgainNowAndThen) {
  script->set("user:1", "free");
  PlanDirectoryOptions with = options();
  with.refresh = Micros{50'000};
  const auto plans = make(with);
  until_plan(*plans, "user:1", "free");
  until_plan(*plans, "user:2", "");
  script->set("user:1", "pro");
  script->set("user:2", "pro");
  until_plan(*plans, "user:1", "pro");
  until_plan(*plans, "user:2", "pro");
}

TEST_F(PlanDirectoryTest, WhileTheDatabaseIsAwayWhatItSaidHolds) {
  ManualClock clock(Micros{1'000'000'000});
  script->set("user:1", "pro");
  PlanDirectoryOptions with = options();
  with.clock = &clock;
  with.wait = Micros{1'000'000};
  const auto plans = make(with);
  ASSERT_TRUE(plans->wait_until_read(Micros{20'000'000}));
  EXPECT_EQ(plans->status().age, Micros{0});
  script->kill(true);
  until([&] { return !plans->status().is_up; });
  clock.advance(Micros{1});
  EXPECT_EQ(plans->find("user:1").plan, "pro");
  EXPECT_TRUE(plans->find("user:2").is_pending);
  EXPECT_FALSE(plans->wait("user:2"));
  EXPECT_EQ(plans->status().waits, 0u);  // it costs a check nothing
  EXPECT_EQ(plans->status().error, "the database is away");
  EXPECT_EQ(plans->look("user:1").error().message, "the database is away");
  EXPECT_FALSE(plans->write({Kind::set_plan, "user:1", "free"}));
  clock.advance(Micros{10'000'000});
  EXPECT_GE(plans->status().age, Micros{10'000'000});
  until([&] {
    clock.advance(Micros{500'000});
    return plans->status().failures >= 5;
  });
  EXPECT_EQ(told_of(PlanEvent::Kind::away), 1u);
  EXPECT_EQ(told_of(PlanEvent::Kind::back), 0u);

  script->set("user:1", "enterprise");
  script->set("user:2", "pro");
  script->kill(false);
  until([&] {
    clock.advance(Micros{500'000});
    return plans->find("user:1").plan == "enterprise" && plans->find("user:2").plan == "pro";
  });
  EXPECT_TRUE(plans->status().is_up);
  EXPECT_EQ(plans->status().error, "");
  EXPECT_EQ(told_of(PlanEvent::Kind::back), 1u);
}

TEST_F(PlanDirectoryTest, ADatabaseThatIsAwayFromTheStartLeavesEverybodyTheDefault) {
  script->kill(true);
  const auto plans = make();
  EXPECT_FALSE(plans->wait_until_read(Micros{50'000}));
  EXPECT_EQ(plans->find("user:1").plan, "");
  EXPECT_TRUE(plans->find("user:1").is_pending);
  script->set("user:1", "pro");
  script->kill(false);
  until_plan(*plans, "user:1", "pro");
  EXPECT_TRUE(plans->wait_until_read(Micros{20'000'000}));
}

TEST_F(PlanDirectoryTest, ABadRowIsRefusedAloneAndItsSubjectKeepsWhatItHad) {
  for (int i = 0; i < 10; ++i) script->set(user(i), "pro");
  const auto plans = make();
  ASSERT_TRUE(plans->wait_until_read(Micros{20'000'000}));
  {
    const std::lock_guard lock(script->mutex);
    script->rows["user:0"].plan = std::nullopt;
    script->rows["user:1"].plan = "";
    script->rows["user:2"].plan = "gold";
    script->rows["user:3"] = {.subject = "user:3", .has_override = true, .limits = "-5/minute"};
    script->rows["user:4"] = {.subject = "user:4", .has_override = true, .limits = "0/minute"};
    script->rows["user:5"] = {.subject = "user:5", .has_override = true, .limits = "9223372036854775808/minute"};
    script->rows["user:6"] = {.subject = "user:6", .has_override = true};
    script->rows["user:7"].error = "the query finds more than one row for it";
    script->rows["user:8"].plan = "free";
    script->rows["user:9"].has_override = true;
    script->rows["user:9"].limits = "7/minute";
    script->rows["user:10"] = {.subject = "user:10", .has_plan = true, .plan = "gold"};
  }
  script->tell({.all = true});
  until_plan(*plans, "user:8", "free");
  until([&] { return plans->find("user:9").instead != nullptr; });
  EXPECT_EQ(*plans->find("user:9").instead, "7/minute");
  until_plan(*plans, "user:10", "");  // it had nothing
  for (int i = 0; i < 8; ++i) {
    EXPECT_EQ(plans->find(user(i)).plan, "pro") << i;
    EXPECT_EQ(plans->find(user(i)).instead, nullptr) << i;
  }
  const PlanStatus status = plans->status();
  EXPECT_EQ(status.refused, 9u);
  ASSERT_EQ(status.refused_rows.size(), 9u);
  EXPECT_EQ(told_of(PlanEvent::Kind::refused_row), 9u);
  const auto second = std::ranges::find(status.refused_rows, "user:2", &PlanEvent::subject);
  ASSERT_NE(second, status.refused_rows.end());
  EXPECT_EQ(second->message, "no plan is called 'gold'");
  EXPECT_TRUE(status.is_up);

  // The same rows once more are no news, and a row that is right again is taken.
  script->set("user:2", "enterprise");
  script->tell({.all = true});
  until_plan(*plans, "user:2", "enterprise");
  EXPECT_EQ(plans->status().refused, 9u);
  EXPECT_EQ(plans->status().refused_rows.size(), 8u);
}

TEST_F(PlanDirectoryTest, OtherTiersJudgeEveryRowAnewAlsoWhileTheDatabaseIsAway) {
  script->set("user:1", "gold");
  script->set("user:2", "pro");
  const auto plans = make();
  ASSERT_TRUE(plans->wait_until_read(Micros{20'000'000}));
  EXPECT_EQ(plans->find("user:1").plan, "");
  script->kill(true);
  until([&] { return !plans->status().is_up; });
  plans->judge_by([](const PlanRow& row) -> Result<JudgedRow> { return JudgedRow{row.plan.value_or("")}; });
  until_plan(*plans, "user:1", "gold");
  EXPECT_EQ(plans->find("user:2").plan, "pro");
  EXPECT_TRUE(plans->status().refused_rows.empty());
}

TEST_F(PlanDirectoryTest, WhatIsWrittenIsKnownAtOnce) {
  const auto plans = make();
  ASSERT_TRUE(plans->wait_until_read(Micros{20'000'000}));
  ASSERT_TRUE(plans->write({Kind::set_plan, "user:1", "pro"}));
  EXPECT_EQ(plans->find("user:1").plan, "pro");
  EXPECT_EQ(plans->look("user:1")->plan, "pro");
  EXPECT_EQ(plans->look("user:2").error().code, ErrorCode::not_found);
  ASSERT_TRUE(plans->list("", 10));
  EXPECT_EQ(plans->list("", 10)->size(), 1u);
}

TEST_F(PlanDirectoryTest, MoreRowsThanAreRememberedAreLookedUpWhenAskedFor) {
  for (int i = 0; i < 5'000; ++i) script->set(user(i), "pro");
  PlanDirectoryOptions with = options();
  with.subjects_max = 2'000;
  const auto plans = make(with);
  ASSERT_TRUE(plans->wait_until_read(Micros{20'000'000}));
  for (int i = 0; i < 5'000; i += 7) until_plan(*plans, user(i), "pro");
  EXPECT_LE(plans->status().subjects, 2'010u);
  script->set("user:7", "free");
  until_plan(*plans, "user:7", "pro");
  script->tell({.all = true});
  until_plan(*plans, "user:7", "free");
}

TEST_F(PlanDirectoryTest, AFloodOfNewSubjectsIsBoundedAndEndsInAnswers) {
  script->set("user:1", "pro");
  PlanDirectoryOptions with = options();
  with.subjects_max = 1'000'000;
  const auto plans = make(with);
  ASSERT_TRUE(plans->wait_until_read(Micros{20'000'000}));
  script->stick(true);
  for (int i = 0; i < 30'000; ++i) EXPECT_TRUE(plans->find("ip:" + std::to_string(i)).is_pending);
  EXPECT_EQ(plans->find("user:1").plan, "pro");
  script->stick(false);
  until([&] { return plans->status().pending <= 30'000 - 16'384; });
  for (int i = 0; i < 30'000; ++i) plans->find("ip:" + std::to_string(i));  // those that were dropped
  until([&] { return plans->status().pending == 0; });
}

TEST_F(PlanDirectoryTest, ItEndsWhileTheDatabaseIsAway) {
  script->kill(true);
  const auto start = read_stopwatch();
  { const auto plans = make(); }
  EXPECT_LT(seconds_since(start), 10);
}

// Real files.

struct SqliteDirectory : testing::Test {
  PlansFolder folder;
  std::string file = folder.at("plans.db");

  std::unique_ptr<PlanDirectory> make(const std::string& query = "") {
    auto source = make_plan_source({.url = "sqlite:" + file, .query = query});
    EXPECT_TRUE(source);
    auto plans = std::make_unique<PlanDirectory>(*std::move(source), PlanDirectoryOptions{.judge = strict});
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

TEST_F(SqliteDirectory, AnUpgradeIsSeenWithinASecondAlsoAmongAHundredThousand) {
  fill(kManySubjects);
  const auto plans = make();
  OtherProgram other(file);
  double longest = 0;
  for (int i = 0; i < 5; ++i) {
    other.run("UPDATE weir_plans SET plan = 'pro' WHERE subject = '" + user(kManySubjects - 1 - i) + "'");
    longest = std::max(longest, until([&] { return plans->find(user(kManySubjects - 1 - i)).plan == "pro"; }));
  }
  std::printf("an upgrade among %d was seen within %.0f ms\n", kManySubjects, longest * 1e3);
  EXPECT_LT(longest, 5);  // one second on a machine that has nothing else to do
}

TEST_F(SqliteDirectory, AHundredThousandChangesAtOnceDoNotHoldUpAnyQuestion) {
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

TEST_F(SqliteDirectory, WhileTheFileIsLockedWhatItSaidHoldsAndThenItIsFreshSoon) {
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
  EXPECT_LT(took, 5);
}

TEST_F(SqliteDirectory, WhileTheFileIsGoneWhatItSaidHoldsAndThenItIsFreshSoon) {
  fill(10);
  const auto plans = make();
  std::filesystem::rename(file, folder.at("elsewhere"));
  until([&] { return !plans->status().is_up; });
  EXPECT_EQ(plans->find("user:1").plan, "free");
  OtherProgram(folder.at("elsewhere")).run("UPDATE weir_plans SET plan = 'pro'");
  std::filesystem::rename(folder.at("elsewhere"), file);
  const double took = until([&] { return plans->find("user:1").plan == "pro"; });
  std::printf("fresh %.0f ms after the file was back\n", took * 1e3);
  EXPECT_LT(took, 5);
}

TEST_F(SqliteDirectory, ADamagedFileLeavesWhatWasKnown) {
  fill(10);
  const auto plans = make();
  std::filesystem::copy(file, folder.at("good"));
  {
    std::ofstream(folder.at("bad")) << std::string(20'000, 'x');
    std::filesystem::rename(folder.at("bad"), file);
  }
  until([&] { return !plans->status().is_up; });
  EXPECT_EQ(plans->find("user:1").plan, "free");
  EXPECT_NE(plans->status().error.find("not a database"), std::string::npos) << plans->status().error;
  std::filesystem::rename(folder.at("good"), file);
  until([&] { return plans->status().is_up; });
}

TEST_F(SqliteDirectory, AnEmptyTableIsTheDefaultPlanAndALostOneIsNot) {
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

TEST_F(SqliteDirectory, WrongRowsOfAQueryAreRefusedAlone) {
  OtherProgram other(file);
  other.run("CREATE TABLE users (id INTEGER, plan TEXT, limits)");
  other.run("INSERT INTO users VALUES (1, 'pro', NULL), (2, 'pro', NULL), (3, 'pro', NULL), (4, 'pro', NULL)");
  const auto plans = make("SELECT plan, limits FROM users WHERE id = $1 AND $2 = 'user'");
  for (int i = 1; i <= 4; ++i) until_plan(*plans, user(i), "pro");
  other.run(
      "UPDATE users SET plan = NULL WHERE id = 1; UPDATE users SET limits = -5 WHERE id = 2;"
      "INSERT INTO users VALUES (3, 'free', NULL); UPDATE users SET limits = '5000/minute' WHERE id = 4");
  until([&] { return plans->find("user:4").instead != nullptr; });
  until([&] { return plans->status().refused == 3; });
  for (int i = 1; i <= 4; ++i) EXPECT_EQ(plans->find(user(i)).plan, "pro");
  EXPECT_EQ(plans->find("user:2").instead, nullptr);
}

}  // namespace
}  // namespace weir
