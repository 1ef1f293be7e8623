// What a full page means for the keys that it evicts, and for all others: eviction frees no used permits, rules do not
// affect each other, many honest clients are served, tickets stay.
//
// Every key has an oracle that knows only what was admitted. The oracle must admit whatever the table admits: so no
// used permit was freed, under any flood. A key of a rule that is not flooded must be decided exactly as by its oracle.

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/family.h"
#include "engine.h"
#include "sanitized.h"
#include "store_fixture.h"
#include "trace.h"

namespace weir::test {
namespace {

constexpr std::int64_t kSecond = 1'000'000;

// A limit of a rule.
struct Rule {
  std::string name;
  Limit limit;
  std::uint64_t family = 0;

  Charge charge(std::string_view key, std::int64_t cost) const {
    return {.key = key, .limit = &limit, .cost = cost, .family = family};
  }
};

Rule rule_of(const std::string& name, std::string_view quota, Algorithm algorithm) {
  return {name, limit_of(quota, algorithm), base::family_of(name, "")};
}

class Crowd {
 public:
  explicit Crowd(std::size_t keys, std::size_t log_bytes = 64 << 20) {
    store_ = store::MemoryStore::open({.keys = keys, .log_bytes = log_bytes}, clock_).value();
  }

  struct Told {
    Decision store, oracle;
  };

  // Fails if the table admits what the oracle does not.
  Told check(const std::string& key, const Rule& rule, std::int64_t cost = 1) {
    const std::string name = rule.name + "/" + key;
    const auto decision = store_->check(rule.charge(name, cost), now());
    EXPECT_TRUE(decision) << decision.error().message;
    if (!decision) return {};
    auto& oracle = oracles_[name];
    if (!oracle) oracle = oracle_engine(rule.limit);
    oracle->change(rule.limit);
    const auto before = oracle->clone();
    const Decision expected = oracle->check(now(), cost);
    if (!decision->allowed && expected.allowed) oracle = before->clone();
    EXPECT_TRUE(expected.allowed || !decision->allowed) << name << " at " << now() << ": " << to_string(*decision);
    return {*decision, expected};
  }
  // A reservation, and its settlement: as above, and what the table refunds the oracle refunds, too.
  void reserve(const std::string& key, const Rule& rule, std::int64_t cost, std::int64_t lasts_us) {
    const std::string name = rule.name + "/" + key, id = "id" + std::to_string(++issued_);
    const Charge charge = rule.charge(name, cost);
    const auto verdict = store_->reserve({&charge, 1}, id, Micros{lasts_us}, now());
    ASSERT_TRUE(verdict) << verdict.error().message;
    auto& oracle = oracles_[name];
    if (!oracle) oracle = oracle_engine(rule.limit);
    oracle->change(rule.limit);
    if (!verdict->allowed) return;
    EXPECT_TRUE(oracle->check(now(), cost).allowed) << name << " at " << now();
    open_.push_back({id, name, rule, cost, now(), now() + lasts_us});
  }
  // The cost is `percent` of the amount that was reserved; 0 cancels the reservation.
  void settle(std::size_t which, std::int64_t percent) {
    if (open_.empty()) return;
    const Open open = open_[which % open_.size()];
    open_.erase(open_.begin() + static_cast<std::ptrdiff_t>(which % open_.size()));
    const Charge actual = open.rule.charge(open.name, open.cost * percent / 100);
    const auto settled = store_->commit({&actual, 1}, open.id, now());
    ASSERT_TRUE(settled || now() >= open.expires_us) << open.name;  // the table rounds its end up
    if (!settled) return;
    EXPECT_EQ(settled->reserved[0], open.cost);
    Engine& oracle = *oracles_[open.name];
    oracle.change(open.rule.limit);
    if (actual.cost < open.cost) oracle.refund(now(), open.cost - actual.cost, open.at_us);
  }

  // A new client, which the test does not check again, so it needs no oracle.
  bool flood(const Rule& rule, std::int64_t cost = 1) {
    const std::string name = rule.name + "/flood" + std::to_string(++flood_);
    const auto decision = store_->check(rule.charge(name, cost), now());
    EXPECT_TRUE(decision) << decision.error().message;
    return decision && decision->allowed;
  }

  std::int64_t now() const { return clock_->now().count(); }
  void advance(std::int64_t us) { clock_->advance(Micros{us}); }
  store::MemoryStore& store() { return *store_; }

 private:
  const std::shared_ptr<ManualClock> clock_ = std::make_shared<ManualClock>(Micros{kNow});
  std::unique_ptr<store::MemoryStore> store_;
  std::map<std::string, std::unique_ptr<Engine>> oracles_;
  std::uint64_t flood_ = 0, issued_ = 0;
  struct Open {
    std::string id, name;
    Rule rule;
    std::int64_t cost, at_us, expires_us;
  };
  std::vector<Open> open_;
};

struct Flood {
  Algorithm algorithm;
  const char* tenants;  // their quota
  std::int64_t cost;    // of a tenant's request
  std::size_t percent;  // of the table's keys that are new each second
  const char* logins = "5/15min";
};

// Tenants with a quota of their own, some of them first seen in the middle of a flood of new login names; and clients
// under the rule that is flooded, who have used a part of it before.
void withstand(const Flood& flood, std::size_t keys, std::size_t rounds) {
  SCOPED_TRACE(std::string(weir::to_string(flood.algorithm)) + " " + flood.tenants + " cost " +
               std::to_string(flood.cost) + ", " + std::to_string(flood.percent) + " % a second");
  Crowd crowd(keys);
  const Rule login = rule_of("login", flood.logins, flood.algorithm);
  const Rule tenant = rule_of("tenant", flood.tenants, flood.algorithm);
  const std::int64_t quota = tenant.limit.capacity;
  for (const std::int64_t part : {1, 10, 50, 90}) {
    crowd.check("used" + std::to_string(part), tenant, std::max<std::int64_t>(1, quota * part / 100));
  }
  for (int i = 0; i < 20; ++i) {
    crowd.check("once" + std::to_string(i), login);
    crowd.check("thrice" + std::to_string(i), login, 3);
  }
  const std::size_t in_a_second = std::max<std::size_t>(1, keys * flood.percent / 100);
  std::size_t flooded = 0, second = 0;
  for (; flooded < keys * rounds; ++second) {
    for (std::size_t i = 0; i < in_a_second; ++i) {
      crowd.advance(kSecond / static_cast<std::int64_t>(in_a_second));
      crowd.flood(login);
      if (++flooded % (keys / 10) != 0) continue;
      for (const char* name : {"used1", "used10", "used50", "used90"}) {
        const auto told = crowd.check(name, tenant, flood.cost);
        ASSERT_EQ(told.store, told.oracle) << name << " after " << flooded;
      }
      for (std::size_t fresh = 0; fresh <= flooded * 10 / (keys * rounds); ++fresh) {
        const auto told = crowd.check("fresh" + std::to_string(fresh), tenant, flood.cost);
        ASSERT_EQ(told.store, told.oracle) << "fresh" << fresh << " after " << flooded;
      }
      for (int one = 0; one < 20; ++one) {
        crowd.check("once" + std::to_string(one), login);
        crowd.check("thrice" + std::to_string(one), login);
      }
      crowd.store().sweep(crowd.now());
    }
  }
  EXPECT_GT(crowd.store().counters().evicted, 0u);
}

TEST(Eviction, AFloodForgivesNobodyAndHurtsNoOtherRule) {
  const std::size_t keys = kIsSanitized ? 500 : 2'000;
  for (const Algorithm algorithm : kChecked) {
    for (const std::size_t percent : {1u, 10u, 100u}) {
      withstand({algorithm, "100000/day", 1, percent}, keys, 3);
      withstand({algorithm, "1000000/day", 1'000, percent}, keys, 3);
    }
    withstand({algorithm, "60/min", 1, 10}, keys, 3);
    withstand({algorithm, "5000/day", 1, 100, "10/10min"}, keys, 5);
  }
}

TEST(EvictionLong, AFloodForgivesNobodyAndHurtsNoOtherRule) {
  for (const Algorithm algorithm : kChecked) {
    for (const std::size_t percent : {1u, 10u, 100u}) {
      for (const char* quota : {"100000/day", "1000/hour", "60/min", "1000000/month"}) {
        withstand({algorithm, quota, 1, percent}, 20'000, 4);
        withstand({algorithm, quota, 1, percent, "5/day"}, 20'000, 4);
      }
      withstand({algorithm, "1000000/day", 1'000, percent}, 20'000, 4);
    }
  }
}

// A reported case: 20 tenants at 50 a second, and new names at 1 % of the keys a second.
TEST(Eviction, TenantsGetTheirQuotaAndNoMoreUnderALoginFlood) {
  for (const Algorithm algorithm : {Algorithm::fixed_window, Algorithm::sliding_window, Algorithm::token_bucket}) {
    constexpr std::size_t kKeys = 10'000;
    Crowd crowd(kKeys);
    const Rule login = rule_of("login", "5/15min", algorithm);
    const std::int64_t quota = kIsSanitized ? 5'000 : 20'000;
    const Rule tenant = rule_of("tenant", std::to_string(quota) + "/30d", algorithm);
    std::map<int, std::int64_t> admitted;
    const std::int64_t seconds = quota / 50 * 2;
    for (std::int64_t second = 0; second < seconds; ++second) {
      for (int i = 0; i < 50; ++i) {
        crowd.advance(kSecond / 50);
        for (int one = 0; one < 20; ++one) {
          const std::string key = "tenant/" + std::to_string(one);
          admitted[one] += crowd.store().check(tenant.charge(key, 1), crowd.now())->allowed ? 1 : 0;
        }
        for (std::size_t name = 0; name < kKeys / 100 / 50; ++name) crowd.flood(login);
      }
      if (second % 10 == 0) crowd.store().sweep(crowd.now());
    }
    // A bucket refills while it is used.
    const std::int64_t refilled = algorithm::is_bucket(algorithm) ? seconds * quota / (30 * 86'400) + 1 : 0;
    for (const auto& [one, permits] : admitted) {
      EXPECT_GE(permits, quota) << weir::to_string(algorithm) << " tenant " << one;
      EXPECT_LE(permits, quota + refilled) << weir::to_string(algorithm) << " tenant " << one;
    }
  }
}

// Twice as many clients as keys, each using a third of its limit.
TEST(Eviction, AnHonestOverloadIsServed) {
  for (const Algorithm algorithm : {Algorithm::fixed_window, Algorithm::sliding_window, Algorithm::token_bucket}) {
    for (const bool in_rounds : {true, false}) {
      const std::uint64_t seed = base_seed();
      std::mt19937_64 dice(seed);
      constexpr std::size_t kKeys = kIsSanitized ? 500 : 2'000;
      Crowd crowd(kKeys);
      const Rule rule = rule_of("api", "30/day", algorithm);
      const std::size_t clients = 2 * crowd.store().capacity(), requests = clients * 10;
      std::vector<std::size_t> order;
      for (std::size_t i = 0; i < requests; ++i) order.push_back(i % clients);
      if (!in_rounds) std::shuffle(order.begin(), order.end(), dice);
      std::size_t denied = 0;
      for (const std::size_t client : order) {
        crowd.advance(kSecond / 1'000);
        const auto told = crowd.check(std::to_string(client), rule);
        denied += told.store.allowed ? 0u : 1u;
      }
      EXPECT_LE(denied, requests / 100) << weir::to_string(algorithm) << ", seed " << seed << ", in rounds "
                                        << in_rounds;
      EXPECT_LE(crowd.store().counters().early, denied);
      EXPECT_GT(crowd.store().counters().evicted, 0u);
    }
  }
}

// A key that stays in the table is never denied for what others have used.
TEST(Eviction, AKeyThatIsInTheTableIsDecidedAsIfItWereAlone) {
  for (const Algorithm algorithm : kChecked) {
    const Rule rule = rule_of("login", "6/hour", algorithm);
    Crowd crowd(1);
    EXPECT_TRUE(crowd.check("stays", rule, 2).store.allowed);
    for (std::size_t i = 0; i < crowd.store().capacity(); ++i) crowd.flood(rule);
    for (int i = 0; i < 6; ++i) {  // the fifth is one too many
      const auto told = crowd.check("stays", rule);
      EXPECT_EQ(told.store, told.oracle) << weir::to_string(algorithm);
      for (int flood = 0; flood < 40; ++flood) crowd.flood(rule);
    }
    EXPECT_GT(crowd.store().counters().evicted, 0u);
  }
}

// One attempt, wait until it is evicted, try again.
TEST(Eviction, AnAttackerGainsNothingByBeingEvicted) {
  for (const Algorithm algorithm : kChecked) {
    Crowd crowd(500);
    const Rule rule = rule_of("login", "5/15min", algorithm);
    int admitted = 0;
    for (int attempt = 0; attempt < (kIsSanitized ? 10 : 20); ++attempt) {
      admitted += crowd.check("attacker", rule).store.allowed ? 1 : 0;
      for (int i = 0; i < 2'000; ++i) {
        crowd.advance(1'000);
        crowd.flood(rule);
      }
    }
    EXPECT_LE(admitted, 5) << weir::to_string(algorithm);
  }
}

// The arena is full long before the slots are: a flood of logs takes its own blocks, and leaves others to all others.
TEST(Eviction, AFloodOfLogsLeavesBlocksToOtherRules) {
  constexpr std::size_t kKeys = 2'000, kLines = 1'024;
  Crowd crowd(kKeys, kLines * 64);
  const Rule login = rule_of("login", "5/15min", Algorithm::sliding_log);
  const Rule tenant = rule_of("tenant", "12/hour", Algorithm::sliding_log);
  const Rule job = rule_of("job", "100/hour", Algorithm::token_bucket);
  const Limit flights = compile("3 concurrent", Algorithm::concurrency).value();
  crowd.check("thrice", login, 3);
  std::size_t admitted = 0;
  for (std::size_t i = 0; i < 3 * kLines; ++i) {
    crowd.advance(1'000);
    admitted += crowd.flood(login) ? 1u : 0u;
    if (i % kLines != kLines - 1) continue;
    const std::string round = std::to_string(i);
    for (int one = 0; one < 5; ++one) {
      const std::string name = round + "/" + std::to_string(one);
      for (int request = 0; request < 14; ++request) {
        const auto told = crowd.check(name, tenant);
        ASSERT_EQ(told.store, told.oracle) << name << " request " << request << " after " << i;
      }
      const Charge reserved = job.charge(name, 2);
      EXPECT_TRUE(crowd.store().reserve({&reserved, 1}, name, Micros{600 * kSecond}, crowd.now())->allowed) << name;
      EXPECT_TRUE(crowd.store().acquire({name, &flights, 1}, "id", crowd.now())->allowed) << name;
    }
  }
  EXPECT_EQ(admitted, 3 * kLines) << "new clients of the rule that is flooded are not locked out either";
  EXPECT_GT(crowd.store().counters().compacted, 0u);
  for (int i = 0; i < 5; ++i) crowd.check("thrice", login);
}

// A plan is changed while the table is full: what was used under one version counts under the other.
TEST(Eviction, WhatAKeyUsedUnderOneVersionCountsUnderAnother) {
  for (const Algorithm algorithm : kChecked) {
    Crowd crowd(200);
    Rule rule = rule_of("api", "10/hour", algorithm);
    const Limit raised = limit_of("20/hour", algorithm), first = rule.limit;
    for (int i = 0; i < 10; ++i) EXPECT_TRUE(crowd.check("k", rule).store.allowed);
    rule.limit = raised;
    for (int i = 0; i < 3'000; ++i) crowd.flood(rule, 11);  // all other keys have used more than k
    rule.limit = raised;
    int more = 0;
    for (int i = 0; i < 20; ++i) more += crowd.check("k", rule).store.allowed ? 1 : 0;
    EXPECT_LE(more, 10) << weir::to_string(algorithm);
    rule.limit = first;
    EXPECT_FALSE(crowd.check("k", rule).store.allowed) << weir::to_string(algorithm);
  }
}

// Tickets, while twice as many keys come as the table has capacity for.
TEST(Eviction, ReservationsAndIdsStayUntilTheyExpire) {
  constexpr std::size_t kKeys = 2'000;
  Crowd crowd(kKeys);
  const Rule rule = rule_of("api", "5/day", Algorithm::token_bucket);
  std::vector<std::string> names;
  for (std::size_t i = 0; i < kKeys / 10; ++i) names.push_back("held" + std::to_string(i));
  for (const std::string& name : names) {
    const Charge charge = rule.charge(name, 2);
    ASSERT_TRUE(crowd.store().reserve({&charge, 1}, name, Micros{3'600 * kSecond}, crowd.now())->allowed);
    const std::string other = "once" + name;
    const Charge once = rule.charge(other, 2);
    ASSERT_TRUE(crowd.store().charge({&once, 1}, crowd.now(), {other, Micros{3'600 * kSecond}})->allowed);
  }
  for (std::size_t i = 0; i < 2 * kKeys; ++i) {
    crowd.advance(1'000);
    crowd.flood(rule, 3);
  }
  for (const std::string& name : names) {
    const std::string other = "once" + name;
    const Charge once = rule.charge(other, 2);
    EXPECT_TRUE(crowd.store().charge({&once, 1}, crowd.now(), {other, Micros{3'600 * kSecond}})->repeated) << other;
    const Charge actual = rule.charge(name, 0);
    const auto settled = crowd.store().commit({&actual, 1}, name, crowd.now());
    ASSERT_TRUE(settled) << name << ": " << settled.error().message;
    EXPECT_EQ(settled->reserved[0], 2);
  }
}

// More tickets than a quarter of the slots are denied, with a wait, and nothing is charged. Keys still have slots.
TEST(Eviction, TicketsHaveAQuarterOfTheTable) {
  constexpr std::size_t kKeys = 1'000;
  Crowd crowd(kKeys);
  const Rule rule = rule_of("api", "5/day", Algorithm::fixed_window);
  const Rule other = rule_of("other", "1000/day", Algorithm::token_bucket);
  std::size_t accepted = 0;
  for (std::size_t i = 0; i < 2 * kKeys; ++i) {
    const std::string name = "id" + std::to_string(i);
    const Charge charge = other.charge("one", 0);
    const auto verdict = crowd.store().charge({&charge, 1}, crowd.now(), {name, Micros{60 * kSecond}});
    ASSERT_TRUE(verdict) << verdict.error().message;
    accepted += verdict->allowed ? 1u : 0u;
    if (verdict->allowed) continue;
    EXPECT_EQ(verdict->decisions[0].decided_by, DecidedBy::no_room);
    EXPECT_GT(verdict->decisions[0].retry_after, Micros{0});
    EXPECT_LE(verdict->decisions[0].retry_after, Micros{60 * kSecond});
    EXPECT_EQ(verdict->decisions[0].remaining, 1'000);
  }
  EXPECT_LE(accepted, crowd.store().capacity() / 4);
  EXPECT_GT(accepted, crowd.store().capacity() / 5);
  EXPECT_EQ(crowd.store().counters().no_room, 2 * kKeys - accepted);
  EXPECT_EQ(crowd.store().counters().evicted, 0u);
  for (int i = 0; i < 700; ++i) EXPECT_TRUE(crowd.check("k" + std::to_string(i), rule).store.allowed);
  // They expire.
  crowd.advance(61 * kSecond);
  const Charge charge = other.charge("one", 1);
  for (std::size_t i = 0; i < 100; ++i) {
    const std::string name = "later" + std::to_string(i);
    EXPECT_TRUE(crowd.store().charge({&charge, 1}, crowd.now(), {name, Micros{60 * kSecond}})->allowed);
  }
}

// Whatever comes, in whatever order: several rules, several versions of each, reservations that are settled early, late
// or never, negative costs, sweeps, long pauses.
void mix(std::uint64_t seed, int steps) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 dice(seed);
  Crowd crowd(static_cast<std::size_t>(pick(dice, 1, 600)), 1 << 20);
  std::vector<std::vector<Rule>> rules;  // versions of one
  const char* const quotas[][3] = {{"5/min", "10/min", "7/min"},
                                   {"40/hour", "80/hour", "20/hour"},
                                   {"1000/day", "3000/day", "500/day"},
                                   {"3/s", "9/s", "6/s"}};
  for (const auto& versions : quotas) {
    const Algorithm algorithm = kChecked[static_cast<std::size_t>(pick(dice, 0, std::size(kChecked) - 1))];
    auto& all = rules.emplace_back();
    for (const char* quota : versions) all.push_back(rule_of("rule" + std::to_string(rules.size()), quota, algorithm));
  }
  for (int step = 0; step < steps && !::testing::Test::HasFailure(); ++step) {
    const auto& versions = rules[static_cast<std::size_t>(pick(dice, 0, 3))];
    const Rule& rule = versions[pick(dice, 0, 9) == 0 ? static_cast<std::size_t>(pick(dice, 0, 2)) : 0];
    const std::int64_t what = pick(dice, 0, 99);
    if (what < 30) {
      crowd.flood(rule, pick(dice, 1, 3));
    } else if (what < 36) {
      crowd.reserve("k" + std::to_string(pick(dice, 0, 300)), rule, pick(dice, 1, 3), pick(dice, 1, 200) * kSecond);
    } else if (what < 42) {
      crowd.settle(static_cast<std::size_t>(pick(dice, 0, 1'000)), pick(dice, 0, 100));
    } else if (what < 44) {
      crowd.check("k" + std::to_string(pick(dice, 0, 300)), rule, -pick(dice, 1, 3));
    } else if (what < 95) {
      crowd.check("k" + std::to_string(pick(dice, 0, 300)), rule, pick(dice, 0, 20) == 0 ? 0 : pick(dice, 1, 3));
    } else if (what < 98) {
      crowd.advance(pick(dice, 0, 300'000));
    } else if (what == 98) {
      crowd.store().sweep(crowd.now());
    } else if (pick(dice, 0, 20) == 0) {
      crowd.advance(pick(dice, 0, 120) * kSecond);
    }
  }
}

TEST(Eviction, NothingIsForgivenWhateverComes) {
  const std::uint64_t seed = base_seed();
  for (std::uint64_t i = 0; i < (kIsSanitized ? 10u : 60u) && !HasFailure(); ++i) mix(seed + i, 10'000);
}

TEST(EvictionLong, NothingIsForgivenWhateverComes) {
  const std::uint64_t seed = base_seed();
  for (std::uint64_t i = 0; i < 2'000 && !HasFailure(); ++i) mix(seed + i, 20'000);
}

}  // namespace
}  // namespace weir::test
