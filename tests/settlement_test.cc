// A settlement takes effect as of the time of the reservation: in the oracle, in the table and in the script.
//
// First the reported errors. Then random histories, each compared with the same history without the refunds
// (settlement.h). fleet_scenario_test.cc plays them on a real Redis.

#include "settlement.h"

#include <gtest/gtest.h>

#include <map>

#include "fleet/redis_script.h"
#include "lua_redis.h"
#include "oracle.h"
#include "sanitized.h"
#include "seed.h"
#include "store_fixture.h"

namespace weir::test {
namespace {

constexpr Micros kLasts{86'400'000'000};
constexpr std::int64_t kMinute = 60'000'000, kMidnight = kNow / (1'440 * kMinute) * (1'440 * kMinute);

class OracleReserver final : public Reserver {
 public:
  Decision charge(const Limit& limit, std::int64_t cost, std::int64_t now) override {
    rule(limit);
    return oracle_->step(now, cost);
  }
  Decision overdraw(const Limit& limit, std::int64_t cost, std::int64_t now) override {
    rule(limit);
    const std::int64_t left = oracle_->step(now, 0).remaining;
    return told(oracle_->step(now, std::min(cost, left)));
  }
  Decision reserve(const Limit& limit, std::string_view id, std::int64_t cost, std::int64_t now) override {
    const Decision decision = charge(limit, cost, now);
    if (decision.allowed) open_[std::string(id)] = {limit, cost, now};
    return decision;
  }
  Decision commit(const Limit& limit, std::string_view id, std::int64_t actual, std::int64_t now) override {
    const Open one = open_.at(std::string(id));
    open_.erase(std::string(id));
    if (actual >= one.cost) return overdraw(limit, actual - one.cost, now);
    rule(limit);
    return oracle_->refund(now, one.cost - actual, one.at, one.limit);
  }

 private:
  struct Open {
    Limit limit;
    std::int64_t cost = 0, at = 0;
  };
  static Decision told(Decision decision) {
    decision.allowed = true;
    return decision;
  }
  void rule(const Limit& limit) {
    if (!oracle_) oracle_.emplace(limit);
    oracle_->change(limit);
  }

  std::optional<oracle::Oracle> oracle_;
  std::map<std::string, Open> open_;
};

class TableReserver final : public Reserver {
 public:
  Decision charge(const Limit& limit, std::int64_t cost, std::int64_t now) override {
    return first(store_->charge(one(limit, cost, now), now));
  }
  Decision overdraw(const Limit& limit, std::int64_t cost, std::int64_t now) override {
    return first(store_->overdraw(one(limit, cost, now), now));
  }
  Decision reserve(const Limit& limit, std::string_view id, std::int64_t cost, std::int64_t now) override {
    return first(store_->reserve(one(limit, cost, now), id, kLasts, now));
  }
  Decision commit(const Limit& limit, std::string_view id, std::int64_t actual, std::int64_t now) override {
    return first(store_->commit(one(limit, actual, now), id, now));
  }
  store::MemoryStore& store() { return *store_; }

 private:
  std::span<const Charge> one(const Limit& limit, std::int64_t cost, std::int64_t now) {
    clock_->set(Micros{now});
    charge_ = {.key = "k", .limit = &limit, .cost = cost};
    return {&charge_, 1};
  }
  static Decision first(const Result<Verdict>& verdict) {
    EXPECT_TRUE(verdict) << verdict.error().message;
    return verdict ? verdict->decisions[0] : Decision{.limit = -1};
  }

  const std::shared_ptr<ManualClock> clock_ = std::make_shared<ManualClock>();
  std::unique_ptr<store::MemoryStore> store_ = store::MemoryStore::open({.keys = 1'000}, clock_).value();
  Charge charge_{};
};

class LuaReserver final : public Reserver {
 public:
  explicit LuaReserver(std::shared_ptr<LuaRedis> redis) : redis_(std::move(redis)) {}
  Decision charge(const Limit& limit, std::int64_t cost, std::int64_t now) override {
    return ask(What::charge, limit, {}, cost, now);
  }
  Decision overdraw(const Limit& limit, std::int64_t cost, std::int64_t now) override {
    return ask(What::overdraw, limit, {}, cost, now);
  }
  Decision reserve(const Limit& limit, std::string_view id, std::int64_t cost, std::int64_t now) override {
    return ask(What::reserve, limit, id, cost, now);
  }
  Decision commit(const Limit& limit, std::string_view id, std::int64_t actual, std::int64_t now) override {
    return ask(What::commit, limit, id, actual, now);
  }

 private:
  using What = fleet::ScriptRequest::What;
  Decision ask(What what, const Limit& limit, std::string_view id, std::int64_t cost, std::int64_t now) {
    const Charge charge{.key = "k", .limit = &limit, .cost = cost};
    Decision decision;
    std::int64_t reserved = 0;
    fleet::ScriptRequest request{.what = what,
                                 .charges = {&charge, 1},
                                 .id = id,
                                 .lasts = kLasts,
                                 .decisions = {&decision, 1},
                                 .reserved = {&reserved, 1}};
    fleet::ScriptCall call("");
    EXPECT_TRUE(call.add(request));
    const auto read = redis_->call(database_, now, call);
    EXPECT_TRUE(read) << read.error().message;
    EXPECT_NE(request.ruling, fleet::Ruling::missing);
    return decision;
  }

  const std::shared_ptr<LuaRedis> redis_;
  LuaDatabase database_;
};

// A kind of Reserver.
struct Kept {
  const char* name;
  MakeReserver make;
};
std::vector<Kept> all_kept() {
  const auto redis = std::make_shared<LuaRedis>(fleet::redis_script());
  return {{"oracle", [] { return std::make_unique<OracleReserver>(); }},
          {"table", [] { return std::make_unique<TableReserver>(); }},
          {"script", [redis] { return std::make_unique<LuaReserver>(redis); }}};
}

class Settlement : public ::testing::TestWithParam<Algorithm> {};

std::int64_t admitted_at_once(Reserver& key, const Limit& limit, std::int64_t now) {
  std::int64_t admitted = 0;
  for (int i = 0; i < (kIsSanitized ? 500 : 2'000); ++i) admitted += key.charge(limit, 1, now).allowed ? 1 : 0;
  return admitted;
}

// Nine reservations of the whole limit, one every other minute, all cancelled in one microsecond. They once admitted
// 1,000.
TEST_P(Settlement, OfManyInOneMomentAdmitsTheLimitOnce) {
  const Limit limit = limit_of("100/minute", GetParam());
  for (const Kept& kept : all_kept()) {
    const auto key = kept.make();
    for (std::int64_t i = 0; i < 9; ++i) {
      ASSERT_TRUE(key->reserve(limit, std::to_string(i), 100, kMidnight + 2 * i * kMinute).allowed) << kept.name;
    }
    const std::int64_t now = kMidnight + 18 * kMinute;
    std::int64_t admitted = admitted_at_once(*key, limit, now);
    for (int i = 0; i < 9; ++i) {
      key->commit(limit, std::to_string(i), 0, now);
      admitted += admitted_at_once(*key, limit, now);
    }
    EXPECT_EQ(admitted, 100) << kept.name;
  }
}

// A gateway of a language model reserves 4,000 tokens at :59 and commits 500 at 1:20. Others have spent 3,000 since.
TEST_P(Settlement, OfALateCommitForgivesNothingThatOthersSpent) {
  const Limit limit = limit_of("8000/minute", GetParam());
  for (const Kept& kept : all_kept()) {
    const auto key = kept.make(), without = kept.make();
    ASSERT_TRUE(key->reserve(limit, "job", 4'000, kMidnight + 59'000'000).allowed);
    ASSERT_TRUE(without->charge(limit, 500, kMidnight + 59'000'000).allowed);
    const std::int64_t now = kMidnight + 80'000'000;
    for (Reserver* one : {key.get(), without.get()}) one->charge(limit, 3'000, now);
    key->commit(limit, "job", 500, now);
    EXPECT_LE(key->charge(limit, 0, now).remaining, without->charge(limit, 0, now).remaining) << kept.name;
    if (GetParam() != Algorithm::fixed_window) continue;
    EXPECT_EQ(key->charge(limit, 0, now).remaining, 5'000) << kept.name;
  }
}

// The rule's period has changed since: the state of the old period gets the refund, and the new one stays as it is.
TEST_P(Settlement, GoesToTheStateThatWasCharged) {
  if (algorithm::is_bucket(GetParam())) GTEST_SKIP() << "a bucket is one state under all its limits";
  const Limit minute = limit_of("100/minute", GetParam()), hour = limit_of("100/hour", GetParam());
  for (const Kept& kept : all_kept()) {
    const auto key = kept.make();
    ASSERT_TRUE(key->reserve(minute, "job", 60, kMidnight).allowed);
    ASSERT_TRUE(key->charge(minute, 10, kMidnight).allowed);
    const std::int64_t now = kMidnight + 10'000'000;
    ASSERT_TRUE(key->charge(hour, 30, now).allowed);
    ASSERT_TRUE(key->reserve(hour, "more", 5, now).allowed);
    EXPECT_EQ(key->commit(hour, "job", 20, now).remaining, 65) << kept.name;
    EXPECT_EQ(key->charge(hour, 0, now).remaining, 65) << kept.name;
    EXPECT_EQ(key->charge(minute, 0, now).remaining, 70) << kept.name;
    EXPECT_EQ(key->commit(minute, "more", 9, now).remaining, 66) << kept.name << ": what is missing is charged now";
    EXPECT_EQ(key->charge(hour, 0, now).remaining, 65) << kept.name;
  }
}

void play_on_all(Algorithm algorithm, std::uint64_t histories) {
  const std::uint64_t seed = base_seed();
  for (const Kept& kept : all_kept()) {
    for (std::uint64_t i = 0; i < histories; ++i) {
      const auto wrong = play_settlements(algorithm, seed + i, kept.make);
      ASSERT_FALSE(wrong) << kept.name << ", " << *wrong;
    }
  }
}

TEST_P(Settlement, NeverLeavesLessUsedThanTheHistoryWithoutIt) { play_on_all(GetParam(), kIsSanitized ? 10 : 60); }

class SettlementLong : public Settlement {};

TEST_P(SettlementLong, NeverLeavesLessUsedInThousandsOfHistories) { play_on_all(GetParam(), 3'000); }

INSTANTIATE_TEST_SUITE_P(Of, Settlement, ::testing::ValuesIn(kChecked), algorithm_name);
INSTANTIATE_TEST_SUITE_P(Of, SettlementLong, ::testing::ValuesIn(kChecked), algorithm_name);

}  // namespace
}  // namespace weir::test
