// Tests a directory over a scripted database: what a check gets while the database is slow, unavailable, or returns
// invalid data. sqlite_directory_test.cc and postgres_source_test.cc use real databases.
#include "plans/plan_directory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <condition_variable>
#include <filesystem>
#include <map>
#include <mutex>
#include <new>
#include <thread>

#include "plans/plans_fixture.h"

namespace weir::plans {
namespace {

using Kind = PlanChange::Kind;

// A database that a test controls.
class ScriptedSource final : public PlanSource {
 public:
  struct Script {
    std::mutex mutex;  // guards all members
    std::condition_variable changed;
    std::map<std::string, PlanRow> rows;
    std::map<std::string, int> found;  // how often each subject was read
    Changes changes;
    bool is_dead = false, is_stuck = false, has_pages = true;
    bool is_unreadable = false, throws = false;  // it accepts connections nevertheless
    std::size_t in_time_max = SIZE_MAX;          // a question about more subjects times out
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
    void set(bool Script::*flag, bool value) {
      const std::lock_guard lock(mutex);
      this->*flag = value;
      changed.notify_all();
    }
    void kill(bool dead) { set(&Script::is_dead, dead); }
    void stick(bool stuck) { set(&Script::is_stuck, stuck); }
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
    if (Result<void> is = readable(); !is) return fail(is.error());
    if (subjects.size() > script_->in_time_max) return fail(ErrorCode::unavailable, "too late");
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
    if (Result<void> is = readable(); !is) return fail(is.error());
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
    if (script_->is_dead) return fail(ErrorCode::unavailable, "the database is down");
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
    if (script_->throws) throw std::bad_alloc();
    if (script_->is_dead) return fail(ErrorCode::unavailable, "the database is down");
    return {};
  }

  Result<void> readable() const {
    if (script_->is_unreadable) return fail(ErrorCode::unavailable, "a table is gone");
    return {};
  }

  const std::shared_ptr<Script> script_;
};

struct PlanDirectoryTest : testing::Test {
  std::shared_ptr<ScriptedSource::Script> script = std::make_shared<ScriptedSource::Script>();
  std::mutex told_mutex;
  std::vector<PlanEvent> told;

  PlanDirectoryOptions options() {
    return {.check = strict_check, .report = [this](const PlanEvent& event) {
              const std::lock_guard lock(told_mutex);
              told.push_back(event);
            }};
  }
  std::unique_ptr<PlanDirectory> make(PlanDirectoryOptions with) {
    return std::make_unique<PlanDirectory>(std::make_unique<ScriptedSource>(script), std::move(with));
  }
  std::unique_ptr<PlanDirectory> make() { return make(options()); }
  std::unique_ptr<PlanDirectory> make_and_read(PlanDirectoryOptions with) {
    auto plans = make(std::move(with));
    EXPECT_TRUE(plans->wait_until_read(Micros{20'000'000}));
    return plans;
  }
  std::unique_ptr<PlanDirectory> make_and_read() { return make_and_read(options()); }
  std::size_t told_of(PlanEvent::Kind kind) {
    const std::lock_guard lock(told_mutex);
    return static_cast<std::size_t>(std::ranges::count(told, kind, &PlanEvent::kind));
  }
  // The directory reports an event after its effect can be seen.
  void until_told(PlanEvent::Kind kind, std::size_t times) {
    until([&] { return told_of(kind) >= times; });
    EXPECT_EQ(told_of(kind), times);
  }
};

TEST_F(PlanDirectoryTest, ReadsTheTablesBeforeTheFirstCheck) {
  for (int i = 0; i < 5'000; ++i) script->set(user(i), "pro");
  const auto plans = make_and_read();
  EXPECT_EQ(plans->find("user:4999").plan, "pro");
  EXPECT_FALSE(plans->find("user:4999").is_pending);
  EXPECT_EQ(script->asked("user:4999"), 0);
  EXPECT_EQ(plans->status().subjects, 5'000u);
  EXPECT_TRUE(plans->status().is_up);
}

TEST_F(PlanDirectoryTest, LooksASubjectUpOnceForManyChecks) {
  const auto plans = make_and_read();
  script->set("user:1", "pro");  // and no change is reported
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
  const auto plans = make_and_read(with);
  script->set("user:1", "pro");
  EXPECT_TRUE(plans->find("user:1").is_pending);
  EXPECT_TRUE(plans->wait("user:1"));
  EXPECT_EQ(plans->find("user:1").plan, "pro");
  EXPECT_TRUE(plans->wait("user:1"));
}

TEST_F(PlanDirectoryTest, AfterATimeoutNoCheckWaitsUntilTheDatabaseAnswersAgain) {
  PlanDirectoryOptions with = options();
  with.wait = Micros{50'000};
  const auto plans = make_and_read(with);
  script->stick(true);
  plans->find("user:1");
  EXPECT_FALSE(plans->wait("user:1"));
  EXPECT_EQ(plans->status().wait_timeouts, 1u);
  for (int i = 0; i < 1'000; ++i) {
    plans->find(user(i));
    EXPECT_FALSE(plans->wait(user(i)));
  }
  EXPECT_EQ(plans->status().wait_timeouts, 1u);
  EXPECT_EQ(plans->status().waits, 1u);
  script->stick(false);
  until([&] { return plans->status().pending == 0; });
  int next = 2'000;
  until([&] {  // on a busy machine, the database may take longer than a check waits
    const std::string one = user(next++);
    plans->find(one);
    return plans->wait(one);
  });
}

TEST_F(PlanDirectoryTest, CachesUnknownSubjectsWithTheDefaultPlan) {
  const auto plans = make();
  until_plan(*plans, "user:nobody", "");
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(plans->find("user:nobody").is_pending);
  EXPECT_EQ(script->asked("user:nobody"), 1);
}

TEST_F(PlanDirectoryTest, AppliesReportedChanges) {
  script->set("user:1", "free");
  script->set("user:2", "free");
  const auto plans = make_and_read();
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

TEST_F(PlanDirectoryTest, WithAQueryReadsAllKnownSubjectsAgain) {
  script->has_pages = false;
  const auto plans = make_and_read();
  for (int i = 0; i < 3'000; ++i) plans->find(user(i));
  until([&] { return plans->status().pending == 0; });
  for (int i = 0; i < 3'000; ++i) script->set(user(i), "pro");
  script->tell({.all = true});
  for (int i = 0; i < 3'000; ++i) until_plan(*plans, user(i), "pro");
  EXPECT_LE(script->batch_max, 256u);
}

TEST_F(PlanDirectoryTest, ReadsEverySubjectAgainOnceInARefreshInterval) {
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

TEST_F(PlanDirectoryTest, KeepsTheLastKnownPlansDuringAnOutage) {
  ManualClock clock(Micros{1'000'000'000});
  script->set("user:1", "pro");
  PlanDirectoryOptions with = options();
  with.clock = &clock;
  with.wait = Micros{1'000'000};
  const auto plans = make_and_read(with);
  EXPECT_EQ(plans->status().age, Micros{0});
  script->kill(true);
  until([&] { return !plans->status().is_up; });
  clock.advance(Micros{1});
  EXPECT_EQ(plans->find("user:1").plan, "pro");
  EXPECT_TRUE(plans->find("user:2").is_pending);
  EXPECT_FALSE(plans->wait("user:2"));
  EXPECT_EQ(plans->status().waits, 0u);  // waiting costs a check nothing now
  EXPECT_EQ(plans->status().error, "the database is down");
  EXPECT_EQ(plans->look("user:1").error().message, "the database is down");
  EXPECT_FALSE(plans->write({Kind::set_plan, "user:1", "free"}));
  clock.advance(Micros{10'000'000});
  EXPECT_GE(plans->status().age, Micros{10'000'000});
  until([&] {
    clock.advance(Micros{500'000});
    return plans->status().failures >= 5;
  });
  until_told(PlanEvent::Kind::unavailable, 1);
  EXPECT_EQ(told_of(PlanEvent::Kind::available), 0u);

  script->set("user:1", "enterprise");
  script->set("user:2", "pro");
  script->kill(false);
  until([&] {
    clock.advance(Micros{500'000});
    return plans->find("user:1").plan == "enterprise" && plans->find("user:2").plan == "pro";
  });
  until([&] { return plans->status().is_up; });  // what it knows was read before
  EXPECT_EQ(plans->status().error, "");
  until_told(PlanEvent::Kind::available, 1);
}

TEST_F(PlanDirectoryTest, AppliesTheDefaultIfTheDatabaseIsUnavailableFromTheStart) {
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

TEST_F(PlanDirectoryTest, AnInvalidRowIsRefusedAloneAndItsSubjectKeepsItsPlan) {
  for (int i = 0; i < 10; ++i) script->set(user(i), "pro");
  const auto plans = make_and_read();
  {
    const std::lock_guard lock(script->mutex);
    script->rows["user:0"].plan = std::nullopt;
    script->rows["user:1"].plan = "";
    script->rows["user:2"].plan = "gold";
    script->rows["user:3"] = {.subject = "user:3", .has_override = true, .limits = "-5/minute"};
    script->rows["user:4"] = {.subject = "user:4", .has_override = true, .limits = "0/minute"};
    script->rows["user:5"] = {.subject = "user:5", .has_override = true, .limits = "9223372036854775808/minute"};
    script->rows["user:6"] = {.subject = "user:6", .has_override = true};
    script->rows["user:7"].error = "the query returns more than one row for this subject";
    script->rows["user:8"].plan = "free";
    script->rows["user:9"].has_override = true;
    script->rows["user:9"].limits = "7/minute";
    script->rows["user:10"] = {.subject = "user:10", .has_plan = true, .plan = "gold"};
  }
  script->tell({.all = true});
  until_plan(*plans, "user:8", "free");
  until([&] { return plans->find("user:9").limits != nullptr; });
  EXPECT_EQ(*plans->find("user:9").limits, "7/minute");
  until_plan(*plans, "user:10", "");  // it had no previous plan
  for (int i = 0; i < 8; ++i) {
    EXPECT_EQ(plans->find(user(i)).plan, "pro") << i;
    EXPECT_EQ(plans->find(user(i)).limits, nullptr) << i;
  }
  const PlanStatus status = plans->status();
  EXPECT_EQ(status.refused, 9u);
  ASSERT_EQ(status.refused_rows.size(), 9u);
  until_told(PlanEvent::Kind::refused_row, 9);
  const auto second = std::ranges::find(status.refused_rows, "user:2", &PlanEvent::subject);
  ASSERT_NE(second, status.refused_rows.end());
  EXPECT_EQ(second->message, "no plan is called 'gold'");
  EXPECT_TRUE(status.is_up);

  // Unchanged rows are not reported again, and a corrected row is accepted.
  script->set("user:2", "enterprise");
  script->tell({.all = true});
  until_plan(*plans, "user:2", "enterprise");
  EXPECT_EQ(plans->status().refused, 9u);
  EXPECT_EQ(plans->status().refused_rows.size(), 8u);
}

TEST_F(PlanDirectoryTest, ChangedTiersCheckEveryRowAgainEvenDuringAnOutage) {
  script->set("user:1", "gold");
  script->set("user:2", "pro");
  const auto plans = make_and_read();
  EXPECT_EQ(plans->find("user:1").plan, "");
  script->kill(true);
  until([&] { return !plans->status().is_up; });
  plans->check_by([](const PlanRow& row) -> Result<CheckedRow> { return CheckedRow{row.plan.value_or("")}; });
  until_plan(*plans, "user:1", "gold");
  EXPECT_EQ(plans->find("user:2").plan, "pro");
  EXPECT_TRUE(plans->status().refused_rows.empty());
}

TEST_F(PlanDirectoryTest, AWrittenPlanAppliesAtOnce) {
  const auto plans = make_and_read();
  ASSERT_TRUE(plans->write({Kind::set_plan, "user:1", "pro"}));
  EXPECT_EQ(plans->find("user:1").plan, "pro");
  EXPECT_EQ(plans->look("user:1")->plan, "pro");
  EXPECT_EQ(plans->look("user:2").error().code, ErrorCode::not_found);
  ASSERT_TRUE(plans->list("", 10));
  EXPECT_EQ(plans->list("", 10)->size(), 1u);
}

TEST_F(PlanDirectoryTest, LooksUpRowsBeyondTheCapacityOnRequest) {
  for (int i = 0; i < 5'000; ++i) script->set(user(i), "pro");
  PlanDirectoryOptions with = options();
  with.subjects_max = 2'000;
  const auto plans = make_and_read(with);
  for (int i = 0; i < 5'000; i += 7) until_plan(*plans, user(i), "pro");
  EXPECT_LE(plans->status().subjects, 2'010u);
  script->set("user:7", "free");
  until_plan(*plans, "user:7", "pro");
  script->tell({.all = true});
  until_plan(*plans, "user:7", "free");
}

TEST_F(PlanDirectoryTest, LimitsTheLookupQueueAndAnswersAllInTheEnd) {
  script->set("user:1", "pro");
  PlanDirectoryOptions with = options();
  with.subjects_max = 1'000'000;
  const auto plans = make_and_read(with);
  script->stick(true);
  for (int i = 0; i < 30'000; ++i) EXPECT_TRUE(plans->find("ip:" + std::to_string(i)).is_pending);
  EXPECT_EQ(plans->find("user:1").plan, "pro");
  script->stick(false);
  until([&] { return plans->status().pending <= 30'000 - 16'384; });
  for (int i = 0; i < 30'000; ++i) plans->find("ip:" + std::to_string(i));  // asks again for the dropped ones
  until([&] { return plans->status().pending == 0; });
}

TEST_F(PlanDirectoryTest, AConnectionWithoutASuccessfulReadDoesNotCountAsUp) {
  script->set(&ScriptedSource::Script::is_unreadable, true);
  const auto connects = [&] {
    const std::lock_guard lock(script->mutex);
    return script->connects;
  };
  ManualClock clock(Micros{1'000'000'000});
  PlanDirectoryOptions with = options();
  with.clock = &clock;
  const auto plans = make(with);
  const auto start = clock.now();
  bool was_up = false;
  until([&] {
    clock.advance(Micros{4'000});
    was_up = was_up || plans->status().is_up;
    return connects() >= 20;
  });
  EXPECT_FALSE(was_up);
  EXPECT_GT(clock.now() - start, Micros{1'000'000}) << "the pauses must grow";  // 500 ms if all are like the first
  EXPECT_GE(plans->status().age, clock.now() - start);
  until_told(PlanEvent::Kind::unavailable, 1);
  EXPECT_EQ(told_of(PlanEvent::Kind::available), 0u);
  script->set(&ScriptedSource::Script::is_unreadable, false);
  until([&] {
    clock.advance(Micros{4'000});
    return plans->status().is_up;
  });
  until_told(PlanEvent::Kind::available, 1);
  EXPECT_LT(plans->status().age, Micros{1'000'000});
}

TEST_F(PlanDirectoryTest, ReducesTheBatchSizeAfterATimeout) {
  script->has_pages = false;
  const auto plans = make_and_read();
  {
    const std::lock_guard lock(script->mutex);
    script->in_time_max = 10;
    script->is_stuck = true;
  }
  for (int i = 0; i < 300; ++i) {
    script->set(user(i), "pro");
    plans->find(user(i));
  }
  script->stick(false);
  until([&] { return plans->status().pending == 0; });
  {
    const std::lock_guard lock(script->mutex);
    script->in_time_max = SIZE_MAX;
    script->batch_max = 0;
  }
  until([&] {
    script->tell({.all = true});
    const std::lock_guard lock(script->mutex);
    return script->batch_max == 256;
  });
}

TEST_F(PlanDirectoryTest, AnAcceptedPlanSurvivesARestartThoughItsRowIsRefused) {
  const base::TestFolder folder;
  PlanDirectoryOptions with = options();
  with.memory = folder.at("plans");
  script->set("user:1", "pro");
  script->set("user:" + std::string(5'000, 'x'), "pro");
  {
    const auto plans = make_and_read(with);
    EXPECT_EQ(plans->status().refused, 1u) << "the subject is too long";
    script->set("user:1", "gold");
    script->set("user:2", "free");
    script->tell({.all = true});
    until_plan(*plans, "user:2", "free");
    EXPECT_EQ(plans->find("user:1").plan, "pro");
  }
  script->kill(true);
  {
    const auto plans = make(with);
    until_plan(*plans, "user:1", "pro");
    until_plan(*plans, "user:2", "free");
    script->kill(false);
    ASSERT_TRUE(plans->wait_until_read(Micros{20'000'000}));
    EXPECT_EQ(plans->find("user:1").plan, "pro") << "the row is still refused";
  }
  EXPECT_EQ(told_of(PlanEvent::Kind::not_remembered), 0u);
}

TEST_F(PlanDirectoryTest, ARetiredDirectoryDoesNotWriteItsFile) {
  const base::TestFolder folder;
  PlanDirectoryOptions with = options();
  with.memory = folder.at("plans");
  script->set("user:1", "pro");
  for (const bool is_retired : {true, false}) {
    auto plans = make(with);
    if (is_retired) {
      plans->retire();
      std::filesystem::remove(with.memory);  // it may have been written earlier
    }
    ASSERT_TRUE(plans->wait_until_read(Micros{20'000'000}));
    plans.reset();
    EXPECT_EQ(std::filesystem::exists(with.memory), !is_retired);
  }
}

TEST_F(PlanDirectoryTest, SurvivesAFailedAllocation) {
  const auto plans = make_and_read();
  script->set(&ScriptedSource::Script::throws, true);
  plans->find("user:1");
  EXPECT_FALSE(plans->write({Kind::set_plan, "user:1", "pro"}));
  EXPECT_FALSE(plans->look("user:1"));
  script->set("user:1", "pro");
  script->set(&ScriptedSource::Script::throws, false);
  until_plan(*plans, "user:1", "pro");
}

TEST_F(PlanDirectoryTest, EndsWhileTheDatabaseIsUnavailable) {
  script->kill(true);
  const auto plans = make();
}

}  // namespace
}  // namespace weir::plans
