// Changing the rules while requests come: a bad change changes nothing, what was charged stays charged, and no answer
// mixes two policies.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "gate_fixture.h"

namespace weir {
namespace {

using namespace std::chrono_literals;
using Reload = test::GateTest;

TEST_F(Reload, KeepsWhatWasSpentUnderTheNameOfARule) {
  for (const char* algorithm : {"fixed_window", "sliding_log", "sliding_window", "token_bucket"}) {
    const std::string name = algorithm;
    const auto rule = [&](const std::string& limit, const std::string& more) {
      return "- {name: " + name + ", per: user, algorithm: " + name + ", limit: " + limit + more + "}\n";
    };
    use_rules(rule("10/hour", ""));
    EXPECT_EQ(passed(8, {.user = "42"}), 8);
    use_rules("- {name: new, per: ip, limit: 1/s}\n" + rule("20/hour", ", match: {user: '*'}, owner: me"));
    EXPECT_EQ(passed(20, {.user = "42"}), 12) << name;
    use_rules(rule("5/hour", ""));
    EXPECT_EQ(passed(5, {.user = "42"}), 0) << name;
  }
}

TEST_F(Reload, KeepsTheCountOfALimitThatIsAloneWhenItsPeriodChanges) {
  use_rules("- {name: a, per: user, limit: 10/minute, algorithm: token_bucket}");
  EXPECT_EQ(passed(6, {.user = "42"}), 6);
  use_rules("- {name: a, per: user, limit: 10/hour, algorithm: token_bucket}");
  EXPECT_EQ(passed(10, {.user = "42"}), 4);
}

TEST_F(Reload, KeepsEachWindowOfSeveralByItsPeriod) {
  use_rules("- {name: a, per: user, limits: [100/minute, 10/hour]}");
  EXPECT_EQ(passed(7, {.user = "42"}), 7);
  use_rules("- {name: a, per: user, limits: [50/second, 100/minute, 10/hour]}");
  EXPECT_EQ(passed(9, {.user = "42"}), 3);
}

TEST_F(Reload, CountsFromZeroWhereThePerOrTheNameChanges) {
  use_rules("- {name: a, per: user, limit: 1/hour}");
  EXPECT_EQ(passed(2, {.user = "x", .tenant = "x"}), 1);
  use_rules("- {name: a, per: tenant, limit: 1/hour}");
  EXPECT_EQ(passed(2, {.user = "x", .tenant = "x"}), 1) << "tenant x is not user x";
  use_rules("- {name: b, per: tenant, limit: 1/hour}");
  EXPECT_EQ(passed(2, {.user = "x", .tenant = "x"}), 1);
}

TEST_F(Reload, SaysWhatChanges) {
  use_rules(
      "- {name: a, per: user, limit: 10/hour}\n- {name: b, per: user, limit: 1/s}\n- {name: c, per: ip, limit: 1/s}\n");
  const auto policy = parse_policy(
      "rules:\n- {name: a, per: user, limit: 20/hour, algorithm: token_bucket}\n- {name: b, per: ip, limit: 1/s}\n"
      "- {name: d, per: ip, limit: 1/s}\n",
      "new.yaml");
  const auto changes = gate.apply(*policy);
  ASSERT_TRUE(changes);
  const std::vector<std::string> expected = {"changed: a: 10/hour -> 20/hour",
                                             "counts restart: a: 20/hour, because its algorithm has changed",
                                             "changed: b",
                                             "counts restart: b, because its `per` has changed",
                                             "removed: c",
                                             "added: d: 1/s"};
  EXPECT_EQ(changes->lines, expected);
}

TEST_F(Reload, SaysWhatChangesBesideTheRules) {
  use("skip: [/health]\nrules: [{name: a, per: identity, limit: 1/s}]");
  const auto next = parse_policy("skip: [/**]\nidentity: [ip]\nrules: [{name: a, per: identity, limit: 1/s}]", "new");
  EXPECT_FALSE(gate.apply(*next)) << "no rule would apply any more";
  const auto changes = gate.apply(*next, Force::yes);
  ASSERT_TRUE(changes);
  const std::vector<std::string> expected = {"changed: identity: the default -> ip",
                                             "counts restart: everything counted per identity",
                                             "changed: skip: /health -> /**"};
  EXPECT_EQ(changes->lines, expected);
}

struct Guard {
  const char* from;
  const char* to;
  bool is_refused;
};

TEST_F(Reload, GuardsAgainstChangesThatCanOnlyBeMistakes) {
  const Guard guards[] = {
      {"- {name: a, per: user, limit: 1000/hour}", "- {name: a, per: user, limit: 100/hour}", false},
      {"- {name: a, per: user, limit: 1000/hour}", "- {name: a, per: user, limit: 99/hour}", true},
      {"- {name: a, per: user, limit: 1000/minute}", "- {name: a, per: user, limit: 1000/hour}", true},
      {"- {name: a, per: user, limit: 10/s burst 1000}", "- {name: a, per: user, limit: 10/s burst 10}", true},
      {"- {name: a, per: user, limit: 1/hour}", "- {name: a, per: user, limit: 0/hour}", true},
      {"- {name: a, limit: unlimited}", "- {name: a, per: user, limit: 1000000/s}", true},
      {"- {name: a, per: user, limit: 1/hour}", "- {name: a, per: user, limit: 1000000/hour}", false},
      {"- {name: a, per: user, limit: 1000/hour, mode: shadow}", "- {name: a, per: user, limit: 1/hour}", false},
      {"- {name: a, per: user, limit: 9/s}\n- {name: b, per: user, limit: 9/s}", "- {name: a, per: user, limit: 9/s}",
       false},
      {"- {name: a, per: user, limit: 9/s}\n- {name: b, per: user, limit: 9/s}\n- {name: c, per: user, limit: 9/s}",
       "- {name: a, per: user, limit: 9/s}", true},
      {"- {name: a, per: user, limit: 9/s}", "- {name: a, per: user, limit: 9/s, mode: shadow}", true},
      {"- {name: a, per: user, limit: 9/s}", "- {name: a, per: user, limit: 9/s, mode: 0%}", true},
      {"- {name: a, per: user, limit: 9/s}", "- {name: a, limit: unlimited}", true},
      {"- {name: a, per: user, limit: 9/s}", "- {name: a, per: user, limit: 9/s}\n- {name: b, limit: unlimited}", true},
      {"- {name: a, per: user, limit: 9/s}", "- {name: a, per: user, limit: 9/s, cost: 99}", true},
      {"- {name: a, per: user, limit: 1000/minute}", "- {name: a, per: user, limits: [1/59s, 2/hour]}", true},
      {"- {name: a, per: user, limits: [10/s, 1000/hour]}", "- {name: a, per: user, limits: [10/s, 1/day]}", true},
  };
  for (const Guard& guard : guards) {
    use_rules(guard.from);
    const Policy before = gate.policy();
    const auto next = parse_policy(std::string("rules:\n") + guard.to, "next.yaml");
    ASSERT_TRUE(next) << next.error().message;
    const auto applied = gate.apply(*next);
    EXPECT_EQ(applied.has_value(), !guard.is_refused) << guard.from << " to " << guard.to;
    EXPECT_EQ(gate.policy(), applied ? *next : before);
    if (!applied) {
      EXPECT_NE(applied.error().message.find("Force::yes"), std::string::npos);
    }
    EXPECT_TRUE(gate.apply(*next, Force::yes));
    EXPECT_EQ(gate.policy(), *next);
  }
}

TEST_F(Reload, GoesByTheMaxChangeOfThePolicyInEffect) {
  use("max_change: 2\nrules: [{name: a, per: user, limit: 100/hour}]");
  EXPECT_FALSE(gate.apply(*parse_policy("max_change: off\nrules: [{name: a, per: user, limit: 40/hour}]", "next")));
  use("max_change: off\nrules: [{name: a, per: user, limit: 100/hour}]");
  EXPECT_TRUE(gate.apply(*parse_policy("rules: [{name: b, per: user, limit: 1/hour}]", "next")));
}

// Two policies with different rules: every answer is by one of them, and every request gets an answer.
TEST_F(Reload, AnswersEveryRequestByOnePolicyWhileItIsSwapped) {
  const auto even = parse_policy(
      "rules: [{name: even-a, per: user, limit: 1000000/s}, {name: even-b, per: global, limit: 1000000000/s}]", "even");
  const auto odd = parse_policy("rules: [{name: odd, per: user, limit: 1000000/s}]", "odd");
  ASSERT_TRUE(even && odd);
  ASSERT_TRUE(gate.apply(*even, Force::yes));
  std::atomic<int> wrong{0}, asked{0};
  std::vector<std::jthread> threads;
  for (int thread = 0; thread < 3; ++thread) {
    threads.emplace_back([&, thread](const std::stop_token& stop) {
      const std::string user = std::to_string(thread);
      while (!stop.stop_requested()) {
        const auto answer = gate.check({.user = user});
        const bool is_even = answer && answer->limits.size() == 2 && answer->limits[0].rule == "even-a" &&
                             answer->limits[1].name == "even-b: 1000000000/s";
        const bool is_odd = answer && answer->limits.size() == 1 && answer->limits[0].rule == "odd";
        if (!answer || !answer->allowed || !(is_even || is_odd)) ++wrong;
        ++asked;
      }
    });
  }
  for (int i = 0; i < 300 || asked < 1'000; ++i) ASSERT_TRUE(gate.apply(i % 2 == 0 ? *odd : *even, Force::yes));
  threads.clear();
  EXPECT_EQ(wrong, 0);
}

TEST_F(Reload, KeepsAnAnswerReadableAfterItsRulesAreGone) {
  use_rules("- {name: a-rule-with-quite-a-long-name, per: user, limit: 1/hour}");
  const Answer answer = ask({.user = "42"});
  for (int i = 0; i < 3; ++i) use_rules("- {name: other, per: user, limit: 1/hour}");
  EXPECT_EQ(answer.limits[0].name, "a-rule-with-quite-a-long-name: 1/hour");
}

}  // namespace
}  // namespace weir
