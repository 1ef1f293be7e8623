// Refunds at the seams of a fleet: settlements and denials while servers decide by their shares. Each test is a
// sentence of docs/fleet.md, with a scripted Redis in virtual time.

#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <string>
#include <vector>

#include "fleet_seam_step.h"

namespace weir::test {
namespace {

// Permits of ten a minute, by each algorithm that counts them.
class FleetSeamRefund : public FleetSeamStep, public ::testing::WithParamInterface<Algorithm> {
 protected:
  int admitted_of_ten(SeamNode& node) {
    int count = 0;
    for (int i = 0; i < 30; ++i) count += node.store->check({.key = "k0", .limit = &ten_})->allowed ? 1 : 0;
    return count;
  }
  bool check_ten(SeamNode& node, std::int64_t cost) {
    return node.store->check({.key = "k0", .limit = &ten_, .cost = cost})->allowed;
  }

  const Limit ten_ = limit_of("10/minute", GetParam());
};

// After an outage, the share admits a reservation. Redis does not answer, so the share is refunded and then charged
// again. The window has ended in between, so the refund frees nothing of the new window.
TEST_P(FleetSeamRefund, WhatAShareGetsBackIsOfTheTimeWhenItWasCharged) {
  SeamNode node(redis_, 0, 1);
  node.cut(0);
  node.line->is_cut = {};
  pass_to_end_of_minute(node);
  bool is_other_allowed = false;
  node.line->meanwhile = [&] {
    pass(Micros{2'000'000}, node);
    is_other_allowed = check_ten(node, 3);
    node.line->fate = Fate::unsent;
  };
  const Charge charge{.key = "k0", .limit = &ten_, .cost = 5};
  const auto reserved = node.store->reserve({&charge, 1}, "r", Micros{600'000'000}, 0);
  ASSERT_TRUE(reserved && reserved->allowed && is_other_allowed);
  node.cut(0);
  EXPECT_EQ(admitted_of_ten(node), 2) << "of 10, without 3 and 5";
}

// A part whose server is unavailable is charged to the share. The part with the id is denied, after the window of the
// first part has ended.
TEST_P(FleetSeamRefund, APartThatAShareGetsBackIsOfTheTimeWhenItWasCharged) {
  redis_.is_cluster = true;
  SeamNode node(redis_, 0, 1, {.is_cluster = true});
  ASSERT_TRUE(check(node, 100, "k1").allowed);
  node.cut(redis_.server_of("k0"));
  pass_to_end_of_minute(node);
  bool is_other_allowed = false;
  node.line->meanwhile = [&] {    // the first part
    node.line->meanwhile = [&] {  // the part with the id
      pass(Micros{2'000'000}, node);
      is_other_allowed = check_ten(node, 3);
    };
  };
  const std::array<Charge, 2> charges{Charge{.key = "k1", .limit = &hundred_, .cost = 1},
                                      Charge{.key = "k0", .limit = &ten_, .cost = 5}};
  const auto verdict = node.store->charge(charges, 0, {.name = "id"});
  ASSERT_TRUE(verdict && !verdict->allowed && is_other_allowed);
  EXPECT_EQ(admitted_of_ten(node), 7) << "of 10, without 3";
}

// A node reserves without Redis and writes the charge back. In the next window it admits requests without Redis, and
// then the reservation is settled. The unused permits must not be subtracted from the charges of the new window.
TEST_P(FleetSeamRefund, ASettlementLowersNoLaterUnsyncedCharge) {
  SeamNode node(redis_, 0, 2);
  pass_to_end_of_minute(node);
  node.cut(0);
  const Charge charge{.key = "k0", .limit = &ten_, .cost = 3};
  ASSERT_TRUE(node.store->reserve({&charge, 1}, "r", Micros{600'000'000}, 0)->allowed);
  node.line->is_cut = {};
  write_back(node);
  node.cut(0);
  pass(Micros{50'000'000}, node);
  ASSERT_TRUE(check_ten(node, 2));
  Charge none = charge;
  none.cost = 0;
  node.line->is_cut = {};
  ASSERT_TRUE(node.store->commit({&none, 1}, "r", 0));
  write_back(node);
  pass(Micros{10'500'000}, node);
  SeamNode next(redis_, 0, 1);
  EXPECT_LE(admitted_of_ten(next), 10 - 2 + (algorithm::is_bucket(ten_.algorithm) ? 2 : 0))
      << "without 2, of which 2 may drain";
}

// The plan is lowered in an outage. Settlements and refunds under the lower version leave more used than its capacity.
// All of that stays unsynced, so Redis receives it.
TEST_P(FleetSeamRefund, ALowerVersionDeletesNoUnsyncedCharge) {
  const Limit high = limit_of("60/year", GetParam()), low = limit_of("20/year", GetParam());
  enum class Way { commit_below, commit_above, negative, overdraw, commit_high };
  for (const Way way : {Way::commit_below, Way::commit_above, Way::negative, Way::overdraw, Way::commit_high}) {
    SCOPED_TRACE(static_cast<int>(way));
    Redis redis;
    SeamNode node(redis, 0, 1);
    const auto charge_of = [](const Limit& limit, std::int64_t cost) {
      return Charge{.key = "k0", .limit = &limit, .cost = cost, .family = 7};
    };
    ASSERT_TRUE(node.store->check(charge_of(high, 0)));
    node.cut(0);
    const Charge reserved = charge_of(high, 30);
    ASSERT_TRUE(node.store->reserve({&reserved, 1}, "r", Micros{3'600'000'000}, 0)->allowed);
    ASSERT_TRUE(node.store->check(charge_of(high, 20))->allowed);
    EXPECT_EQ(node.store->unsynced(reserved), 50);
    std::int64_t used = 50;
    const Charge below = charge_of(low, 29), above = charge_of(low, 35), same = charge_of(high, 29);
    if (way == Way::negative) {
      used -= 1;
      ASSERT_TRUE(node.store->check(charge_of(low, -1))->allowed);
    } else if (way == Way::overdraw) {  // at most to full, which it is
      const Charge more = charge_of(low, 5);
      ASSERT_TRUE(node.store->overdraw({&more, 1}, 0));
    } else {
      const Charge& actual = way == Way::commit_below ? below : way == Way::commit_above ? above : same;
      if (way != Way::commit_above) used -= 1;  // an excess is charged at most to full, which it is
      ASSERT_TRUE(node.store->commit({&actual, 1}, "r", 0));
    }
    EXPECT_EQ(node.store->unsynced(reserved), used);
    EXPECT_FALSE(node.store->check(charge_of(low, 1))->allowed);
    EXPECT_EQ(node.store->unsynced(reserved), used);
    node.line->is_cut = {};
    write_back(node);
    SeamNode next(redis, 0, 1);
    int more = 0;
    for (int i = 0; i < 100; ++i) more += next.store->check(charge_of(high, 1))->allowed ? 1 : 0;
    EXPECT_EQ(more, 60 - used);
  }
}

// After an outage a request must pass both this node's share and Redis. If Redis denies it, the share is refunded, so
// the request charges nothing at all.
class FleetSeamBoth : public FleetSeamStep {
 protected:
  // The share has 20 left of k0. Redis has 15 left, and none of k1, which is on another server if there is one.
  void begin(SeamNode& node, SeamNode& other) {
    for (const std::string key : {"k0", "k1"}) ASSERT_TRUE(check(node, 1, key).allowed);
    node.cut(0);
    node.cut(1);
    for (const std::string key : {"k0", "k1"}) ASSERT_TRUE(check(node, 29, key).allowed);
    ASSERT_TRUE(check(other, 55, "k0").allowed);
    ASSERT_TRUE(check(other, 70, "k1").allowed);
    node.line->is_cut = {};
    write_back(node);
    EXPECT_EQ(share_left(node, "k0"), 20);
    EXPECT_EQ(share_left(node, "k1"), 20);
  }
  std::int64_t share_left(SeamNode& node, std::string_view key) {
    const Charge peek{.key = key, .limit = &hundred_, .cost = 0};
    const auto seen = node.store->fallback_store().answer({.what = What::look, .charges = {&peek, 1}}, redis_.now);
    EXPECT_TRUE(seen);
    return seen ? seen->decisions[0].remaining : -1;
  }
  std::array<Charge, 2> both(std::int64_t cost) const {
    return {Charge{.key = "k0", .limit = &hundred_, .cost = cost},
            Charge{.key = "k1", .limit = &hundred_, .cost = cost}};
  }
};

TEST_F(FleetSeamBoth, ADenialByRedisChargesNoShare) {
  SeamNode node(redis_, 0, 2), other(redis_, 1, 2);
  ASSERT_NO_FATAL_FAILURE(begin(node, other));
  const Decision denied = check(node, 18, "k0");
  EXPECT_FALSE(denied.allowed);
  EXPECT_EQ(denied.decided_by, DecidedBy::strict);
  EXPECT_EQ(share_left(node, "k0"), 20);
  EXPECT_EQ(admitted(node, 30, "k0"), 15);
  EXPECT_EQ(share_left(node, "k0"), 5) << "what Redis admitted is charged to the share, too";
}

// While Redis is asked, all charges are written back, Redis fails again, and the share begins again. It does not have
// the charge of the request, so a denial by Redis refunds nothing.
TEST_F(FleetSeamBoth, ADenialRefundsNoShareThatBeganAgain) {
  SeamNode node(redis_, 0, 2), other(redis_, 1, 2);
  ASSERT_NO_FATAL_FAILURE(begin(node, other));
  std::uint64_t beats = 0;
  const auto beat = [&](int times) {
    for (int i = 0; i < times; ++i) {
      redis_.now += Micros{100'000};
      node.beat({}, ++beats, Micros{60'000'000});
    }
  };
  beat(2);
  std::int64_t left = 0;
  node.line->meanwhile = [&] {
    beat(5);
    EXPECT_FALSE(node.store->handover().is_on());
    node.cut(0);
    left = share_left(node, "k0");
    node.line->is_cut = {};
  };
  const Decision denied = check(node, 18, "k0");
  EXPECT_FALSE(denied.allowed);
  EXPECT_EQ(denied.decided_by, DecidedBy::strict);
  EXPECT_EQ(left, 7) << "half of what Redis has left";
  EXPECT_EQ(share_left(node, "k0"), left);
}

// Several keys, with an id or reserved, on one server or on two: all or none.
TEST_F(FleetSeamBoth, ARequestThatRedisDeniesChargesNoShareOfItsKeys) {
  for (const bool is_cluster : {false, true}) {
    SCOPED_TRACE(is_cluster ? "cluster" : "one server");
    redis_.is_cluster = is_cluster;
    redis_.database = {};
    SeamNode node(redis_, 0, 2, {.is_cluster = is_cluster}), other(redis_, 1, 2, {.is_cluster = is_cluster});
    ASSERT_NO_FATAL_FAILURE(begin(node, other));
    const std::array<Charge, 2> charges = both(3);
    const auto expect_nothing_charged = [&](const Result<Verdict>& verdict, const char* what) {
      SCOPED_TRACE(what);
      ASSERT_TRUE(verdict);
      EXPECT_FALSE(verdict->allowed);
      EXPECT_EQ(share_left(node, "k0"), 20);
      EXPECT_EQ(share_left(node, "k1"), 20);
    };
    expect_nothing_charged(node.store->charge(charges, 0), "a plain request");
    expect_nothing_charged(node.store->charge(charges, 0, {.name = "id"}), "with an id");
    expect_nothing_charged(node.store->reserve(charges, "r", Micros{600'000'000}, 0), "a reservation");
    for (const Fate fate : {Fate::unsent, Fate::lost}) {
      if (!is_cluster) continue;  // one part is not answered, and the other is denied
      node.line->fate = fate;
      node.line->fate_server = redis_.server_of("k0");
      expect_nothing_charged(node.store->charge(charges, 0), "a part is not answered");
      node.line->fate = Fate::answered;
    }
    EXPECT_EQ(admitted(node, 30, "k0"), 15);
  }
}

// Redis admitted the request before, under the same id: it is charged nothing the second time.
TEST_F(FleetSeamBoth, ARepeatedRequestChargesNoShare) {
  SeamNode node(redis_, 0, 2), other(redis_, 1, 2);
  ASSERT_NO_FATAL_FAILURE(begin(node, other));
  const Charge one{.key = "k0", .limit = &hundred_, .cost = 4};
  ASSERT_TRUE(node.store->charge({&one, 1}, 0, {.name = "id"})->allowed);
  EXPECT_EQ(share_left(node, "k0"), 16);
  const auto again = node.store->charge({&one, 1}, 0, {.name = "id"});
  ASSERT_TRUE(again && again->repeated);
  EXPECT_EQ(share_left(node, "k0"), 16);
}

INSTANTIATE_TEST_SUITE_P(All, FleetSeamRefund, ::testing::ValuesIn(kChecked), algorithm_name);

}  // namespace
}  // namespace weir::test
