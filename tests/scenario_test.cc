// Plays every file of tests/scenarios on every engine, and compares the full answers of the engines with each other.
//
// A new engine is one line in kEngines. The rest tests the reader and the player: an error in a scenario file is
// reported with its line, and a wrong answer is noticed.
#include "scenario.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <utility>

#include "engine.h"
#include "fleet/redis_script.h"
#include "lua_redis.h"
#include "read_file.h"
#include "weir/limiter.h"

namespace weir::scenario {
namespace {

// --------------------------------------------------------------------------------------------- engines

// An engine for one key and algorithm, made to play a scenario: another algorithm is another state.
class Player final : public Engine {
 public:
  using Make = std::unique_ptr<test::Engine> (*)(const Limit& limit);
  explicit Player(Make make) : make_(make) {}

  Result<Decision> check(std::int64_t now_us, std::int64_t cost) override { return engine().check(now_us, cost); }
  Result<Decision> acquire(std::int64_t now_us, std::string_view id, std::int64_t cost) override {
    return engine().acquire(now_us, id, cost);
  }
  Result<bool> release(std::int64_t now_us, std::string_view id) override { return engine().release(now_us, id); }
  Result<void> change(const Quota& quota) override {
    const auto limit = compile(quota);
    if (!limit) return fail(limit.error());
    algorithm_ = quota.algorithm;
    auto& state = states_[algorithm_];
    if (!state) state = make_(*limit);
    state->change(*limit);
    return {};
  }

 private:
  test::Engine& engine() { return *states_.at(algorithm_); }
  Make make_;
  Algorithm algorithm_{};
  std::map<Algorithm, std::unique_ptr<test::Engine>> states_;
};

template <Player::Make make>
Result<std::unique_ptr<Engine>> player_of(const Quota& quota) {
  auto player = std::make_unique<Player>(make);
  if (auto ready = player->change(quota); !ready) return fail(ready.error());
  return player;
}

std::unique_ptr<test::Engine> lua_of(const Limit& limit) {
  return test::lua_engine(std::make_shared<test::LuaRedis>(fleet::redis_script()), limit);
}

// The library as its user sees it.
class LimiterEngine final : public Engine {
 public:
  static Result<std::unique_ptr<Engine>> make(const Quota& quota) {
    auto engine = std::make_unique<LimiterEngine>();
    if (auto ready = engine->change(quota); !ready) return fail(ready.error());
    return engine;
  }
  Result<Decision> check(std::int64_t now_us, std::int64_t cost) override {
    clock_->set(Micros{now_us});
    return limiter_.check("k", limit_, cost);
  }
  Result<Decision> acquire(std::int64_t now_us, std::string_view id, std::int64_t cost) override {
    clock_->set(Micros{now_us});
    return cost == 0 ? limiter_.peek("k", limit_) : limiter_.acquire("k", id, limit_, cost);
  }
  Result<bool> release(std::int64_t now_us, std::string_view id) override {
    clock_->set(Micros{now_us});
    return limiter_.release("k", id);
  }
  Result<void> change(const Quota& quota) override {
    auto limit = compile(quota);
    if (!limit) return fail(limit.error());
    limit_ = *std::move(limit);
    return {};
  }

 private:
  std::shared_ptr<ManualClock> clock_ = std::make_shared<ManualClock>();
  Limiter limiter_{LimiterOptions{.clock = clock_}};
  Limit limit_;
};

struct NamedEngine {
  const char* name;
  Result<std::unique_ptr<Engine>> (*make)(const Quota& quota);
};

// The first is the referee that the others are compared with.
constexpr NamedEngine kEngines[] = {
    {"oracle", player_of<test::oracle_engine>},
    {"C++", player_of<test::cell_engine>},
    {"Lua", player_of<lua_of>},
    {"library", LimiterEngine::make},
};

// ----------------------------------------------------------------------------------------------- files

std::vector<std::filesystem::path> scenario_files() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(WEIR_SOURCE_DIR "/tests/scenarios")) {
    if (entry.path().extension() == ".txt") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::vector<Scenario> scenarios_in(const std::filesystem::path& path) {
  auto scenarios = parse_scenarios(test::read_file(path), path.filename().string());
  EXPECT_TRUE(scenarios) << scenarios.error().message;
  return std::move(scenarios).value();
}

// Plays one case on one engine; its answers, or nothing when it could not be made.
std::vector<Answer> play_on(const NamedEngine& named, const Scenario& scenario) {
  std::vector<Answer> answers;
  auto engine = named.make(scenario.quota);
  if (!engine) {
    ADD_FAILURE() << scenario.file << ":" << scenario.line << ": " << named.name << ": " << engine.error().message;
    return answers;
  }
  for (const Failure& failure : play(scenario, **engine, &answers)) {
    ADD_FAILURE() << failure.message << "\n    by: " << named.name;
  }
  return answers;
}

class ScenarioFile : public testing::TestWithParam<std::filesystem::path> {};

TEST_P(ScenarioFile, GivesItsStatedAnswersOnEveryEngine) {
  for (const Scenario& scenario : scenarios_in(GetParam())) {
    const std::vector<Answer> expected = play_on(kEngines[0], scenario);
    for (const NamedEngine& named : kEngines) {
      if (&named == &kEngines[0]) continue;
      const auto difference = compare(scenario, expected, play_on(named, scenario));
      EXPECT_FALSE(difference) << difference->message << "\n    the one is " << kEngines[0].name << ", the other "
                               << named.name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, ScenarioFile, testing::ValuesIn(scenario_files()),
                         [](const auto& file) { return file.param.stem().string(); });

TEST(ScenarioFiles, CoverEveryAlgorithm) {
  std::vector<Algorithm> covered;
  for (const auto& path : scenario_files()) {
    for (const Scenario& scenario : scenarios_in(path)) covered.push_back(scenario.quota.algorithm);
  }
  for (const Algorithm algorithm : kAlgorithms) {
    EXPECT_NE(std::find(covered.begin(), covered.end(), algorithm), covered.end()) << weir::to_string(algorithm);
  }
}

// ---------------------------------------------------------------------------------------------- reader

Scenario only_case(std::string_view text) {
  auto scenarios = parse_scenarios(text, "example.txt");
  if (!scenarios) {
    ADD_FAILURE() << scenarios.error().message;
    return {};
  }
  EXPECT_EQ(scenarios->size(), 1u);
  return scenarios->front();
}

std::string error_of(std::string_view text) {
  const auto scenarios = parse_scenarios(text, "example.txt");
  return scenarios ? "no error" : scenarios.error().message;
}

// The error of a single question in a case that is otherwise right.
std::string error_of_line(std::string_view line) { return error_of("fixed_window 5/minute\n" + std::string(line)); }

TEST(ScenarioReader, ReadsACaseWithItsTitle) {
  const Scenario scenario = only_case("# About the file.\n\n# The\n# title\nsliding_log 5/minute\n0:05 1 -> allow\n");
  EXPECT_EQ(scenario.title, "The title");
  EXPECT_EQ(scenario.file, "example.txt");
  EXPECT_EQ(scenario.line, 5);
  EXPECT_EQ(scenario.quota_text, "5/minute");
  EXPECT_EQ(scenario.quota.algorithm, Algorithm::sliding_log);
  EXPECT_EQ(scenario.quota.permits, 5);
}

TEST(ScenarioReader, ReadsEveryPartOfAnAnswer) {
  const Line line = only_case(
                        "token_bucket 5/minute\n0:05 7 -> deny, 3 left, retry never, reset 0.200001s, "
                        "delay 1d 2h 3min 4s 5ms 6us, limit 5  # why\n")
                        .lines.at(0);
  EXPECT_EQ(line.action, Action::check);
  EXPECT_EQ(line.number, 2);
  EXPECT_EQ(line.now_us, 5'000'000);
  EXPECT_EQ(line.cost, 7);
  EXPECT_FALSE(line.expected.allowed);
  EXPECT_EQ(line.expected.remaining, 3);
  EXPECT_EQ(line.expected.retry_after, kNever);
  EXPECT_EQ(line.expected.reset_after, Micros{200'001});
  EXPECT_EQ(line.expected.delay, Micros{93'784'005'006});
  EXPECT_EQ(line.expected.limit, 5);
}

TEST(ScenarioReader, ReadsEveryKindOfTime) {
  const std::pair<const char*, std::int64_t> times[] = {
      {"0:05", 5'000'000},
      {":55", 55'000'000},
      {"1:09.999999", 69'999'999},
      {"12:01:30", 43'290'000'000},
      {"69.999999s", 69'999'999},
      {"1.5s", 1'500'000},
      {"1740345672s", 1'740'345'672'000'000},
      {"1970-01-02 00:00:01Z", 86'401'000'000},
      {"2024-02-29 23:59:59.5Z", 1'709'251'199'500'000},
  };
  for (const auto& [text, us] : times) {
    const Scenario scenario = only_case("fixed_window 5/minute\n" + std::string(text) + " 1 -> allow\n");
    EXPECT_EQ(scenario.lines.at(0).now_us, us) << text;
  }
}

TEST(ScenarioReader, ReadsRepetitionsChangesAndPermits) {
  const Scenario scenario = only_case(
      "token_bucket 5/minute\n0s 100 x -2 -> allow\nchange 7/minute\nchange concurrency 2 concurrent\n"
      "1s acquire a -> allow\n1s acquire b cost 3 -> deny\n2s release a -> held\n2s release a -> not held\n");
  ASSERT_EQ(scenario.lines.size(), 7u);
  EXPECT_EQ(scenario.lines[0].requests, 100);
  EXPECT_EQ(scenario.lines[0].cost, -2);
  EXPECT_EQ(scenario.lines[1].action, Action::change);
  EXPECT_EQ(scenario.lines[1].quota.algorithm, Algorithm::token_bucket);
  EXPECT_EQ(scenario.lines[1].quota.permits, 7);
  EXPECT_EQ(scenario.lines[2].quota.algorithm, Algorithm::concurrency);
  EXPECT_EQ(scenario.lines[3].id, "a");
  EXPECT_EQ(scenario.lines[3].cost, 1);
  EXPECT_EQ(scenario.lines[4].cost, 3);
  EXPECT_TRUE(scenario.lines[5].held);
  EXPECT_FALSE(scenario.lines[6].held);
}

TEST(ScenarioReader, NamesFileLineAndWhatIsWrong) {
  const std::pair<const char*, const char*> slips[] = {
      {"0:05 1", "no answer; write it like: 0:05 1 -> allow, 4 left"},
      {"0:75 1 -> allow", "\"0:75\" is no time"},
      {"0:5 1 -> allow", "\"0:5\" is no time"},
      {"5 1 -> allow", "\"5\" is no time"},
      {"12:1:30 1 -> allow", "\"12:1:30\" is no time"},
      {"1.0000001s 1 -> allow", "\"1.0000001s\" is no time"},
      {"99999999999s 1 -> allow", "later than the year 2112"},
      {"2023-02-29 00:00:00Z 1 -> allow", "\"2023-02-29\" is no time"},
      {"2024-02-29 00:00:00 1 -> allow", "does not follow a date"},
      {"2024-02-29 24:00:00Z 1 -> allow", "does not follow a date"},
      {"0:05 one -> allow", "\"one\" is no cost"},
      {"0:05 -> allow", "\"\" is no cost"},
      {"0:05 1 2 -> allow", "\"1 2\" is no cost"},
      {"0:05 9223372036854775808 -> allow", "is no cost"},
      {"0:05 0 x 1 -> allow", "must be of 1 to 1000000 requests"},
      {"0:05 1 -> perhaps", "begins with allow or deny, not with \"perhaps\""},
      {"0:05 1 -> allow, 4 right", "\"4 right\" is no part of an answer"},
      {"0:05 1 -> allow, x left", "\"x\" is no count of permits"},
      {"0:05 1 -> allow, 4 left, 4 left", "stated"},
      {"0:05 1 -> allow, reset 5", "\"5\" is no wait"},
      {"0:05 1 -> allow, reset", "\"\" is no wait"},
      {"0:05 1 -> allow, reset 5s, reset 5s", "stated twice"},
      {"0:05 acquire a -> allow", "acquire and release are for concurrency"},
      {"0:05 acquire a 3 -> allow", "acquire a cost 2"},
      {"0:05 release -> held", "release takes one id"},
      {"0:05 release a -> allow", "held or not held, not \"allow\""},
  };
  for (const auto& [line, what] : slips) {
    const std::string message = error_of_line(line);
    EXPECT_EQ(message.rfind("example.txt:2: ", 0), 0u) << line << ": " << message;
    EXPECT_NE(message.find(what), std::string::npos) << line << ": " << message;
  }
}

TEST(ScenarioReader, RefusesWhatIsNoCase) {
  EXPECT_EQ(error_of("# nothing but words\n"), "example.txt: holds no case");
  EXPECT_NE(error_of("0:05 1 -> allow\n").find("example.txt:1: no quota yet"), std::string::npos);
  EXPECT_NE(error_of("fixed_window 5/minute\n").find("the case of line 1 asks nothing"), std::string::npos);
  EXPECT_EQ(error_of("\nfixd_window 5/minute\n").rfind("example.txt:2: ", 0), 0u);
  EXPECT_EQ(error_of("fixed_window 5/minute burst 3\n0:05 1 -> allow\n").rfind("example.txt:1: ", 0), 0u);
  EXPECT_EQ(error_of("fixed_window 5/minute\nchange 5/minit\n").rfind("example.txt:2: ", 0), 0u);
}

TEST(ScenarioReader, RefusesTimeThatRunsBackwards) {
  EXPECT_NE(error_of("fixed_window 5/minute\n0:05 1 -> allow\n0:04 1 -> allow\n").find("example.txt:3: earlier"),
            std::string::npos);
  EXPECT_EQ(error_of("fixed_window 5/minute\n0:05 1 -> allow\n\nfixed_window 5/minute\n0:04 1 -> allow\n"), "no error");
}

// ---------------------------------------------------------------------------------------------- player

// Says the same whatever it is asked, until it breaks.
class Parrot final : public Engine {
 public:
  Decision answer{true, 5, 4, Micros{0}, Micros{55'000'000}, Micros{0}};
  int answers_left = 1000;

  Result<Decision> check(std::int64_t, std::int64_t) override {
    if (answers_left-- == 0) return fail(ErrorCode::unavailable, "hoarse");
    return answer;
  }
  Result<Decision> acquire(std::int64_t, std::string_view, std::int64_t) override { return answer; }
  Result<bool> release(std::int64_t, std::string_view) override { return true; }
  Result<void> change(const Quota&) override { return {}; }
};

std::size_t failures(std::string_view lines, Parrot parrot = {}) {
  return play(only_case("fixed_window 5/minute\n" + std::string(lines)), parrot).size();
}

TEST(ScenarioPlayer, ComparesWhatIsStatedAndNothingElse) {
  EXPECT_EQ(failures("0:05 1 -> allow"), 0u);
  EXPECT_EQ(failures("0:05 1 -> allow, 4 left, retry 0s, reset 55s, delay 0s, limit 5"), 0u);
  for (const char* wrong : {"deny", "allow, 3 left", "allow, retry 1s", "allow, reset 54s", "allow, delay 1s",
                            "allow, limit 4", "allow, reset never"}) {
    EXPECT_EQ(failures("0:05 1 -> " + std::string(wrong)), 1u) << wrong;
  }
}

TEST(ScenarioPlayer, SaysWhereAndWhatWasAnswered) {
  Parrot parrot;
  const auto found = play(only_case("fixed_window 5/minute\n0:05 1 -> allow, 3 left"), parrot);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].line, 2);
  EXPECT_EQ(found[0].message,
            "example.txt:2: 0:05 1 -> allow, 3 left\n"
            "    answered: allow, 4 left, retry 0s, reset 55s, delay 0s, limit 5");
}

TEST(ScenarioPlayer, ChecksTheVerdictOfEveryRepetition) {
  EXPECT_EQ(failures("0:05 10 x 1 -> allow, 4 left"), 0u);
  EXPECT_EQ(failures("0:05 10 x 1 -> deny"), 1u);
  EXPECT_EQ(failures("0:05 10 x 1 -> allow, 3 left"), 1u);
}

TEST(ScenarioPlayer, EndsTheCaseWhenTheEngineFails) {
  Parrot parrot;
  parrot.answers_left = 1;
  std::vector<Answer> answers;
  const auto found =
      play(only_case("fixed_window 5/minute\n0:05 1 -> allow\n0:06 1 -> allow\n0:07 1 -> deny"), parrot, &answers);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].line, 3);
  EXPECT_NE(found[0].message.find("hoarse"), std::string::npos);
  EXPECT_EQ(answers.size(), 1u);
}

TEST(ScenarioPlayer, ComparesReleases) {
  Parrot parrot;
  const auto found =
      play(only_case("concurrency 5 concurrent\n0:05 release a -> held\n0:05 release a -> not held"), parrot);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].line, 3);
}

TEST(ScenarioPlayer, FindsTheFirstDifferenceBetweenEngines) {
  const Scenario scenario = only_case("fixed_window 5/minute\n0:05 1 -> allow\n0:06 1 -> allow");
  std::vector<Answer> one;
  Parrot parrot;
  play(scenario, parrot, &one);
  EXPECT_FALSE(compare(scenario, one, one));
  std::vector<Answer> other = one;
  other[1].decision.delay = Micros{1};
  const auto difference = compare(scenario, one, other);
  ASSERT_TRUE(difference);
  EXPECT_EQ(difference->line, 3);
  other.resize(1);
  ASSERT_TRUE(compare(scenario, one, other));
  EXPECT_EQ(compare(scenario, one, other)->line, 3);
}

}  // namespace
}  // namespace weir::scenario
