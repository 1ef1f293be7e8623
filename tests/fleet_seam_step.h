// A node with a scripted Redis in virtual time, for tests that go step by step.
//
// One thread. Used by fleet_seam_step_test.cc and fleet_seam_refund_test.cc.
#pragma once

#include <gtest/gtest.h>

#include <string_view>

#include "fleet_seam_model.h"

namespace weir::test {

class FleetSeamStep : public ::testing::Test {
 protected:
  Decision check(SeamNode& node, std::int64_t cost = 1, std::string_view key = "k0") {
    const auto decision = node.store->check({.key = key, .limit = &hundred_, .cost = cost});
    EXPECT_TRUE(decision) << decision.error().message;
    return decision.value_or(Decision{});
  }
  int admitted(SeamNode& node, int offered, std::string_view key = "k0") {
    int count = 0;
    for (int i = 0; i < offered; ++i) count += check(node, 1, key).allowed ? 1 : 0;
    return count;
  }

  // How many of these checks are admitted, though they cannot be sent.
  int admitted_unsent(SeamNode& node, int offered, std::string_view key = "k0") {
    int count = 0;
    for (int i = 0; i < offered; ++i) {
      node.line->fate = Fate::unsent;
      count += check(node, 1, key).allowed ? 1 : 0;
    }
    node.line->fate = Fate::answered;
    return count;
  }

  // Fills k1, charges 4 to k0, and then asks for both keys: k1 denies, and the part of k0 has this fate.
  void charge_denied_parts(SeamNode& node, Fate fate) {
    ASSERT_TRUE(node.store->check({.key = "k1", .limit = &ten_a_year_, .cost = 10})->allowed);
    ASSERT_TRUE(node.store->check({.key = "k0", .limit = &ten_a_year_, .cost = 4})->allowed);
    node.line->fate = fate;
    node.line->fate_server = node.line->redis.server_of("k0");
    const Charge charges[] = {{.key = "k0", .limit = &ten_a_year_, .cost = 3},
                              {.key = "k1", .limit = &ten_a_year_, .cost = 2}};
    const auto verdict = node.store->charge(charges, 0);
    ASSERT_TRUE(verdict && !verdict->allowed);
  }

  // Advances the time of Redis and of the node.
  void pass(Micros time, SeamNode& node) {
    redis_.now += time;
    node.clock->set(Micros{kEpoch_us} + redis_.now);
  }
  // To one second before the next minute begins.
  void pass_to_end_of_minute(SeamNode& node) {
    constexpr std::int64_t kMinute_us = 60'000'000;
    pass(Micros{2 * kMinute_us - redis_.now_us() % kMinute_us - 1'000'000}, node);
  }
  // As the background work does.
  void write_back(SeamNode& node) {
    while (const auto state = node.write_back(100)) ASSERT_EQ(*state, State::answered);
  }

  const Limit hundred_ = limit_of("100/year", Algorithm::fixed_window);
  const Limit ten_a_year_ = limit_of("10/year", Algorithm::fixed_window);
  Redis redis_;
};

}  // namespace weir::test
