// The counts of a gate for its rules, and its busiest clients: exact where that is promised, else within bounds.
#include "weir/rule_counts.h"

#include <gtest/gtest.h>

#include <array>
#include <thread>

#include "gate_fixture.h"
#include "policy/key_name.h"
#include "usage/watch.h"

namespace weir::test {
namespace {

constexpr Micros kSecond{1'000'000};

class Usage : public GateTest {
 protected:
  RuleCounts of(std::string_view rule) const {
    for (const RuleCounts& one : gate.rule_counts()) {
      if (one.rule == rule) return one;
    }
    ADD_FAILURE() << "there is no rule " << rule;
    return {};
  }
  // `3 2`: allowed and denied.
  std::string decided(std::string_view rule) const {
    const RuleCounts counts = of(rule);
    return std::to_string(counts.allowed) + ' ' + std::to_string(counts.denied);
  }
  std::vector<TopKey> top(TopBy by, std::string_view rule = {}, std::size_t n = 20) const {
    return gate.top_keys(by, rule, n);
  }
  // `user:42 7 4 0`: hits, denied, and their error.
  static std::string text(const TopKey& key) {
    return key.key + ' ' + std::to_string(key.hits) + ' ' + std::to_string(key.denied) + ' ' +
           std::to_string(key.error);
  }
  // Checks of limits that requests name, all in one turn.
  void check_inline(std::string_view key, int times) {
    const Limit limit = *compile(*parse_quota("10/h"));
    const std::vector<Charge> charges(static_cast<std::size_t>(times), Charge{key, &limit, 1});
    std::vector<Result<Decision>> answers;
    const Micros now = limiter.check_many(charges, answers);
    gate.count_inline(charges, answers, now);
  }
};

TEST_F(Usage, EveryRequestCountsOnceForTheRuleThatDecides) {
  use(R"(
skip: [/health]
rules:
  - {name: wide, per: ip, limit: 100/h}
  - {name: tight, match: {path: /login}, per: ip, limit: 3/h}
  - {name: friends, match: {ip: 198.51.100.0/24}, limit: unlimited}
  - {name: orgs, match: {path: /org}, per: "header:x-org", required: true, limit: 5/h}
)");
  EXPECT_EQ(passed(5, {.ip = "192.0.2.1", .path = "/login"}), 3);
  EXPECT_EQ(passed(4, {.ip = "192.0.2.1", .path = "/other"}), 4);
  EXPECT_EQ(passed(2, {.ip = "198.51.100.7", .path = "/login"}), 2);
  EXPECT_EQ(passed(1, {.ip = "192.0.2.1", .path = "/health"}), 1);
  EXPECT_EQ(passed(6, {.path = "/nobody"}), 6);
  EXPECT_EQ(passed(1, {.ip = "192.0.2.1", .path = "/org"}), 0);

  EXPECT_EQ(decided("tight"), "3 2");
  EXPECT_EQ(decided("wide"), "4 0");
  EXPECT_EQ(of("friends").allowed, 2U);
  EXPECT_EQ(of("orgs").missing, 1U);
  EXPECT_EQ(of("orgs").denied, 0U);
  EXPECT_EQ(gate.other_counts().skipped, 1U);
  EXPECT_EQ(gate.other_counts().no_rule, 6U);
  EXPECT_EQ(of("tight").last_hit.count(), kStart);

  std::uint64_t sum = gate.other_counts().skipped + gate.other_counts().no_rule;
  for (const RuleCounts& one : gate.rule_counts()) sum += one.allowed + one.denied + one.missing;
  EXPECT_EQ(sum, 19U);  // all requests, each once
}

TEST_F(Usage, ARuleIsHitThoughAnotherIsTighter) {
  use_rules(
      "  - {name: wide, per: ip, limit: 100/h}\n  - {name: tight, per: ip, limit: 3/h}\n"
      "  - {name: far, match: {path: /far}, per: ip, limit: 9/h}\n");
  EXPECT_EQ(passed(5, {.ip = "192.0.2.1", .path = "/x"}), 3);
  EXPECT_EQ(of("wide").allowed + of("wide").denied, 0U);
  EXPECT_EQ(of("wide").last_hit.count(), kStart);
  EXPECT_EQ(of("far").last_hit.count(), 0);
}

TEST_F(Usage, ARequestThatAListenerDeniesLaterIsCountedAsDenied) {
  use_rules(R"(
  - {name: tight, per: ip, limit: 3/h}
  - {name: queue, per: user, limit: 1/s burst 50, algorithm: leaky_bucket}
)");
  const weir::Request request{.user = "42", .ip = "192.0.2.1"};
  const auto answer = gate.check(request);
  ASSERT_TRUE(answer && answer->allowed);
  ASSERT_EQ(answer->rule, "tight");
  EXPECT_EQ(of("tight").allowed, 1U);
  gate.count_reversed(request, *answer, 1);
  EXPECT_EQ(decided("tight"), "0 0");
  EXPECT_EQ(of("queue").denied, 1U);
  const auto denied = top(TopBy::denied);
  ASSERT_EQ(denied.size(), 1U);
  EXPECT_EQ(text(denied[0]), "user:42 1 1 0");
}

TEST_F(Usage, LooksCountNothing) {
  use_rules("  - {name: r, per: ip, limit: 3/h}\n");
  const weir::Request request{.ip = "192.0.2.1"};
  ASSERT_TRUE(gate.peek(request));
  ASSERT_TRUE(gate.explain(request));
  ASSERT_TRUE(gate.check({.ip = "192.0.2.1", .cost = 0}));
  ASSERT_TRUE(gate.check({.ip = "192.0.2.1", .cost = -1}));
  ASSERT_TRUE(gate.reset("r", request));
  EXPECT_EQ(of("r").allowed, 0U);
  EXPECT_EQ(of("r").last_hit.count(), 0);
  EXPECT_TRUE(top(TopBy::hits).empty());
}

TEST_F(Usage, EveryWayOfAskingCounts) {
  use_rules("  - {name: r, per: ip, limit: 4/h}\n  - {name: u, per: user, limit: 100/h}\n");
  const weir::Request request{.ip = "192.0.2.1"};
  ASSERT_TRUE(gate.check(request));
  ASSERT_TRUE(gate.check_once("id", request));
  ASSERT_TRUE(gate.check_once("id", request));  // is allowed again, and asked again
  const auto reserved = gate.reserve(request);
  ASSERT_TRUE(reserved);
  ASSERT_TRUE(gate.commit(reserved->id, request));  // settles what was counted
  const std::array<weir::Request, 2> views = {weir::Request{.ip = "192.0.2.1"}, weir::Request{.user = "42"}};
  std::array<weir::Answer, 2> answers;
  ASSERT_TRUE(*gate.check_together(gate.rules(), views, answers));
  EXPECT_EQ(of("r").allowed, 5U);
  EXPECT_EQ(of("u").allowed, 1U);
  ASSERT_FALSE(*gate.check_together(gate.rules(), views, answers));
  EXPECT_EQ(of("r").denied, 1U);
  EXPECT_FALSE(gate.check_once("", request));
  EXPECT_EQ(gate.other_counts().failed, 1U);
}

TEST_F(Usage, RulesInShadowAreCountedApart) {
  use_rules("  - {name: s, per: ip, limit: 2/h, mode: shadow}\n  - {name: r, per: ip, limit: 4/h}\n");
  EXPECT_EQ(passed(5, {.ip = "192.0.2.1"}), 4);
  EXPECT_EQ(of("s").shadow_allowed, 2U);
  EXPECT_EQ(of("s").shadow_denied, 2U);  // the fifth was denied, which a rule in shadow does not see
  EXPECT_EQ(of("s").allowed + of("s").denied, 0U);
  EXPECT_EQ(of("s").last_hit.count(), kStart);
  EXPECT_EQ(decided("r"), "4 1");
  ASSERT_EQ(top(TopBy::denied, "s").size(), 1U);
  EXPECT_EQ(top(TopBy::denied, "s")[0].denied, 2U);  // what it would have denied
}

TEST_F(Usage, OfARuleGoesOnWhenItComesBack) {
  use_rules("  - {name: a, per: ip, limit: 3/h}\n");
  EXPECT_EQ(passed(2, {.ip = "192.0.2.1"}), 2);
  use_rules("  - {name: b, per: ip, limit: 3/h}\n");
  EXPECT_EQ(passed(1, {.ip = "192.0.2.1"}), 1);
  EXPECT_EQ(gate.rule_counts().size(), 1U);
  EXPECT_EQ(of("b").allowed, 1U);
  use_rules("  - {name: b, per: ip, limit: 3/h}\n  - {name: a, per: ip, limit: 9/h}\n");
  EXPECT_EQ(of("a").allowed, 2U);
  EXPECT_EQ(of("b").allowed, 1U);
}

TEST_F(Usage, IsExactWithManyThreads) {
  use_rules("  - {name: r, per: ip, limit: 1000/h}\n  - {name: s, per: ip, limit: 10/h, mode: shadow}\n");
  std::vector<std::thread> threads;
  for (int t = 0; t < 20; ++t) {
    threads.emplace_back([this] {
      for (int i = 0; i < 500; ++i) static_cast<void>(gate.check({.ip = "192.0.2.1"}));
    });
  }
  for (int i = 0; i < 50; ++i) {  // reads at the same time
    static_cast<void>(gate.rule_counts());
    static_cast<void>(top(TopBy::hits));
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(decided("r"), "1000 9000");
  EXPECT_EQ(of("s").shadow_allowed, 10U);
  EXPECT_EQ(of("s").shadow_denied, 990U);
  const auto found = top(TopBy::denied, "r");
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(text(found[0]), "ip:192.0.2.1 10000 9000 0");
}

TEST_F(Usage, TopKeysAreThoseOfTheLastMinuteOrTwo) {
  use_rules("  - {name: r, per: ip, limit: 3/h}\n");
  passed(7, {.ip = "192.0.2.1"});
  passed(5, {.ip = "192.0.2.2"});
  auto found = top(TopBy::hits);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(text(found[0]), "ip:192.0.2.1 7 4 0");
  EXPECT_EQ(found[1].key, "ip:192.0.2.2");
  EXPECT_EQ(top(TopBy::hits, "r", 1).size(), 1U);
  EXPECT_TRUE(top(TopBy::hits, "other").empty());
  EXPECT_EQ(gate.top_keys_cover(), Micros{0});

  go_on(61 * kSecond);
  passed(1, {.ip = "192.0.2.2"});
  EXPECT_EQ(gate.top_keys_cover(), 61 * kSecond);
  found = top(TopBy::hits);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[1].hits, 6U);
  go_on(60 * kSecond);
  found = top(TopBy::hits);
  ASSERT_EQ(found.size(), 1U);  // a minute later, earlier requests are not counted
  EXPECT_EQ(found[0].hits, 1U);
  EXPECT_LE(gate.top_keys_cover(), 120 * kSecond);
  go_on(600 * kSecond);
  EXPECT_TRUE(top(TopBy::hits).empty());
}

TEST_F(Usage, InlineLimitsAreWatchedUnderTheirOwnName) {
  check_inline("job:7", 25);
  check_inline("job\n8", 3);
  EXPECT_EQ(gate.other_counts().inline_limits.allowed, 13U);
  EXPECT_EQ(gate.other_counts().inline_limits.denied, 15U);
  EXPECT_EQ(gate.other_counts().inline_limits.last_hit.count(), kStart);
  const auto found = top(TopBy::hits, "inline");
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].key, "job:7");
  EXPECT_EQ(found[0].hits, 25U);
  EXPECT_EQ(found[0].denied, 15U);
  EXPECT_EQ(found[1].key, "job\\x0a8");
}

// Far more keys than places, and a few busy ones: memory stays bounded, and the busy keys are found.
TEST_F(Usage, AFloodOfKeysHidesNobody) {
  use_rules("  - {name: ban, per: user, limit: 0/h}\n");
  std::string user;
  for (int i = 0; i < 200'000; ++i) {
    user = i % 20 == 0 ? "heavy" + std::to_string(i % 60) : std::to_string(i);
    static_cast<void>(gate.check({.user = user}));
    check_inline(user, 1);
    if (i % 5'000 == 0) go_on(kSecond);
  }
  for (const std::string_view rule : {"ban", "inline"}) {
    const auto found = top(TopBy::hits, rule, 3);
    ASSERT_EQ(found.size(), 3U);
    for (const TopKey& one : found) {
      EXPECT_NE(one.key.find("heavy"), one.key.npos) << one.key;
      EXPECT_LE(one.hits - one.error, 3'334U);  // what it has
      EXPECT_GE(one.hits, 3'333U);
    }
  }
  EXPECT_EQ(of("ban").denied, 200'000U);
  EXPECT_EQ(top(TopBy::denied, "ban", 3)[0].key.substr(0, 10), "user:heavy");
  EXPECT_LE(gate.top_keys_bytes(), 400'000U);  // two rules, one thread
}

TEST_F(Usage, ManyRulesShareWhatIsLeft) {
  std::string rules;
  for (int i = 0; i < 100; ++i) {
    const std::string name = std::to_string(i);
    rules += "  - {name: r" + name + ", match: {tenant: t" + name + "}, per: user, limit: 1/h}\n";
  }
  use_rules(rules);
  for (int i = 0; i < 100; ++i) {
    const std::string tenant = "t" + std::to_string(i);
    for (int k = 0; k < 3; ++k) ask({.user = "u", .tenant = tenant});
  }
  const auto found = top(TopBy::denied, {}, 1'000);
  ASSERT_EQ(found.size(), 100U);
  for (const TopKey& one : found) {
    EXPECT_EQ(text(one), one.key + " 3 2 0");
  }
  EXPECT_LE(gate.top_keys_bytes(), 3'000'000U);
}

TEST_F(Usage, KeysOfARuleWithAnotherPerHaveNoName) {
  use_rules("  - {name: r, per: ip, limit: 3/h}\n");
  passed(1, {.ip = "192.0.2.1"});
  use_rules("  - {name: r, per: user, limit: 3/h}\n");
  ASSERT_EQ(top(TopBy::hits).size(), 1U);
  EXPECT_EQ(top(TopBy::hits)[0].key.front(), '#');
}

TEST_F(Usage, NamesCanBeHashed) {
  weir::Gate hashing(limiter, {.key_names = KeyNames::hashed});
  ASSERT_TRUE(hashing.apply(*parse_policy("rules:\n  - {name: r, per: [user, ip], limit: 3/h}\n", "test")));
  ASSERT_TRUE(hashing.check({.user = "alice", .ip = "192.0.2.1"}));
  ASSERT_TRUE(hashing.check({.user = "alice", .ip = "192.0.2.2"}));
  const Limit limit = *compile(*parse_quota("10/h"));
  const std::string key = "alice" + std::string(500, 'x');
  const std::array<Charge, 1> charges = {Charge{key, &limit, 1}};
  std::vector<Result<Decision>> answers;
  hashing.count_inline(charges, answers = limiter.check_many(charges), limiter.now());
  const auto found = hashing.top_keys(TopBy::hits, {}, 10);
  ASSERT_EQ(found.size(), 3U);
  for (const TopKey& one : found) {
    EXPECT_EQ(one.key.find("alice"), one.key.npos) << one.key;
    EXPECT_EQ(one.key.find("192"), one.key.npos) << one.key;
  }
  const std::string first = hashing.top_keys(TopBy::hits, "r", 1)[0].key;
  EXPECT_EQ(first.substr(0, 6), "user:#");
  EXPECT_EQ(first.size(), std::string_view("user:#0123456789abcdef,ip:#0123456789abcdef").size());
}

TEST(Sampler, LooksAtEverythingWhileItIsLittle) {
  usage::Sampler sampler;
  for (int second = 1; second < 5; ++second) {
    sampler.begin(second * kSecond);
    for (std::uint32_t i = 0; i < usage::Sampler::kAll; ++i) ASSERT_EQ(sampler.weigh(), 1U);
  }
}

TEST(Sampler, LetsAFewStandForMany) {
  for (const std::uint64_t events : std::array<std::uint64_t, 3>{50'000, 300'000, 3'000'000}) {
    usage::Sampler sampler;
    std::uint64_t weights = 0, looks = 0;
    for (int second = 1; second <= 10; ++second) {
      sampler.begin(second * kSecond);
      for (std::uint64_t i = 0; i < events; ++i) {
        const std::uint32_t weight = sampler.weigh();
        weights += weight;
        looks += weight > 0 ? 1 : 0;
      }
    }
    const auto all = 10.0 * static_cast<double>(events);
    EXPECT_NEAR(static_cast<double>(weights), all, 0.02 * all);
    EXPECT_LT(looks, 10 * (usage::Sampler::kAll + usage::Sampler::kMany / 12 + events / 50));
  }
}

// Sixteen clients by turns are all counted with their share.
TEST(Sampler, IsNotDeceivedByARhythm) {
  usage::Sampler sampler;
  sampler.begin(kSecond);
  std::array<std::uint64_t, 16> shares{};
  for (std::uint64_t i = 0; i < 10'000'000; ++i) shares[i % 16] += sampler.weigh();
  for (const std::uint64_t share : shares) EXPECT_NEAR(static_cast<double>(share), 625'000.0, 62'500.0);
}

}  // namespace
}  // namespace weir::test
