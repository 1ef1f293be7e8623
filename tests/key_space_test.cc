// Keys of rules, of Envoy's descriptors and of callers: whatever bytes a caller sends, it can use only its own keys.
// The test calls every function of the limiter that takes a key, with the keys that a caller could forge.
// tests/server/key_spaces.sh tests listeners and Redis.

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "algorithm/limit.h"
#include "base/key_space.h"
#include "fleet/redis_key.h"
#include "gate_fixture.h"
#include "policy/policy_reader.h"
#include "policy/rulebook.h"

namespace weir::test {
namespace {

constexpr const char* kRules = "  - {name: login, per: user, limit: 9/year, algorithm: fixed_window}\n";
const weir::Request kBob{.user = "bob"};

// The key of the rule above for bob, as the rules write it.
std::string key_of_bob() {
  const auto compile = [](const Quota& quota) { return algorithm::compile_limit(quota, nullptr); };
  std::vector<policy::TextProblem> problems;
  const auto book =
      policy::Rulebook::make(policy::read_policy("rules:\n" + std::string(kRules), problems, compile), compile);
  policy::Facts facts(kBob, (*book)->reading());
  policy::Bill bill;
  (*book)->bill(facts, 0, bill);
  EXPECT_EQ(bill.charges[0].space, KeySpace::rules);
  return std::string(bill.charges[0].key);
}

// Keys that a caller could try: the key of a rule, the same without its first byte, and both behind one or two bytes.
std::set<std::string> forgeries() {
  const std::string key = key_of_bob();
  std::set<std::string> out = {key, key.substr(1)};
  for (int first = 0; first < 256; ++first) {
    const std::string before(1, static_cast<char>(first));
    for (const std::string& end : {key, key.substr(1)}) {
      out.insert(before + end);
      for (const char second : {base::kRuleKeys, base::kEnvoyKeys, base::kCallerKeys})
        out.insert(before + second + end);
    }
  }
  return out;
}

class KeySpaces : public GateTest {
 protected:
  std::int64_t left() { return gate.peek(kBob)->binding_limit()->decision.remaining; }

  const Limit limit = compile("9/year", Algorithm::fixed_window).value();
};

TEST_F(KeySpaces, ACallerNeverSpendsRefundsOrResetsWhatARuleCounts) {
  use_rules(kRules);
  ASSERT_EQ(passed(4, kBob), 4);
  int id = 0;
  for (const std::string& key : forgeries()) {
    const Charge one{.key = key, .limit = &limit, .cost = 2};
    EXPECT_TRUE(limiter.check(key, limit)->allowed);
    EXPECT_TRUE(limiter.check_all({&one, 1})->allowed);
    EXPECT_TRUE(limiter.check_once(std::to_string(++id), {&one, 1})->allowed);
    EXPECT_TRUE(limiter.check_many({&one, 1})[0]->allowed);
    EXPECT_TRUE(limiter.wait(key, limit, Micros{0})->allowed);
    EXPECT_TRUE(limiter.overdraw({&one, 1})->allowed);
    EXPECT_EQ(limiter.peek(key, limit)->remaining, 0);
    EXPECT_EQ(limiter.preview(key, limit)->remaining, 0);
    EXPECT_EQ(limiter.refund(key, limit, 4)->remaining, 4);
    const auto reserved = limiter.reserve({&one, 1});
    ASSERT_TRUE(reserved);
    EXPECT_TRUE(limiter.cancel(reserved->id, {&one, 1}));
    ASSERT_EQ(left(), 5) << "key " << ::testing::PrintToString(key);
    EXPECT_TRUE(*limiter.reset(key));
    EXPECT_FALSE(*limiter.reset(key));
    ASSERT_EQ(left(), 5) << "key " << ::testing::PrintToString(key);
  }
  EXPECT_TRUE(*gate.reset("login", kBob)) << "a rule's key is reset by its rule";
  EXPECT_EQ(left(), 9);
}

TEST_F(KeySpaces, ACallerNeverReachesTheKeyOfADescriptor) {
  const std::string key = base::kEnvoyKeys + std::string("envoy/year/4:edge4:user3:bob");
  const Charge envoys{.key = key, .limit = &limit, .cost = 4, .space = KeySpace::envoy};
  ASSERT_TRUE(limiter.check_all({&envoys, 1})->allowed);
  for (const std::string& tried : {key, key.substr(1), base::kCallerKeys + key, base::kRuleKeys + key}) {
    EXPECT_EQ(limiter.check(tried, limit)->remaining, 8);
    EXPECT_TRUE(*limiter.reset(tried));
  }
  EXPECT_EQ(limiter.preview(envoys)->remaining, 5);
}

TEST_F(KeySpaces, KeysOfCallersAreAsManyAsTheirTexts) {
  std::vector<std::string> keys;
  for (int first = 0; first < 8; ++first) {
    keys.emplace_back(1, static_cast<char>(first));
    for (int second = 0; second < 8; ++second) {
      keys.push_back({static_cast<char>(first), static_cast<char>(second)});
      for (int third = 0; third < 8; ++third) {
        keys.push_back({static_cast<char>(first), static_cast<char>(second), static_cast<char>(third)});
      }
    }
  }
  std::set<std::string> stored;
  for (const std::string& key : keys) {
    const base::StoredKey held(key);
    const std::string_view name = held;
    EXPECT_TRUE(name.front() != base::kRuleKeys && name.front() != base::kEnvoyKeys);
  }
  for (const std::string& key : keys) EXPECT_TRUE(stored.insert(std::string(base::StoredKey(key))).second);
  for (const std::string& key : keys) EXPECT_EQ(limiter.check(key, limit)->remaining, 8) << "each counts for itself";
  for (const std::string& key : keys) EXPECT_TRUE(*limiter.reset(key));
}

TEST_F(KeySpaces, PermitsInFlightAreApart) {
  const Limit permits = compile("2 concurrent").value();
  const std::string key = key_of_bob(), other = base::kCallerKeys + key;
  EXPECT_TRUE(limiter.acquire(key, "1", permits, 2)->allowed);
  EXPECT_TRUE(limiter.acquire(other, "1", permits, 2)->allowed);
  EXPECT_EQ(limiter.peek(key, permits)->remaining, 0);
  EXPECT_TRUE(*limiter.release(key, "1"));
  EXPECT_FALSE(*limiter.release(key, "1"));
  EXPECT_EQ(limiter.peek(other, permits)->remaining, 0);
}

TEST_F(KeySpaces, WhoWaitsIsServedWhenItsOwnKeyIsRefunded) {
  const Limit one = compile("1/year", Algorithm::token_bucket).value();
  const std::string key = key_of_bob();
  ASSERT_TRUE(limiter.check(key, one)->allowed);
  std::atomic<int> told{0};
  ASSERT_NE(limiter.wait_async(key, one, limiter.now() + Micros{100'000'000'000'000},
                               [&](Result<Decision> decision) { told = decision && decision->allowed ? 1 : 2; }),
            WaitId{0});
  ASSERT_TRUE(limiter.refund(key, one, 1)->allowed);
  for (int i = 0; i < 6'000 && told == 0; ++i) std::this_thread::sleep_for(std::chrono::milliseconds{10});
  EXPECT_EQ(told, 1);
}

TEST_F(KeySpaces, ChargesOfBothKindsAreOneEvent) {
  use_rules(kRules);
  const std::string key = key_of_bob();
  const Charge beside{.key = key, .limit = &limit, .cost = 5};
  std::array<weir::Answer, 1> answers;
  std::array<Decision, 1> decisions;
  const auto both = gate.check_together(gate.rules(), {&kBob, 1}, answers, {&beside, 1}, decisions);
  ASSERT_TRUE(both && *both);
  EXPECT_EQ(decisions[0].remaining, 4) << "the caller's own";
  EXPECT_EQ(left(), 8) << "the rule's";
}

TEST_F(KeySpaces, ARulesSubjectIsFoundInRulesKeysOnly) {
  const std::string key = key_of_bob();
  EXPECT_EQ(fleet::subject_of(key), "bob");
  EXPECT_EQ(fleet::subject_of(key.substr(1)), key.substr(1));
  EXPECT_EQ(fleet::subject_of(base::StoredKey(key)), base::kCallerKeys + key);
}

}  // namespace
}  // namespace weir::test
