// The seams of a fleet, mixed at random: a scripted Redis in virtual time, nodes with the store of the program, and
// after every step the bound of docs/fleet.md, "What can be let through".
//
// A seed is a history: checks of one key and of several, reservations, settlements and plain refunds, each under one of
// two versions of a limit; calls that are lost, answered late, cut off or not sent; calls in flight while others are
// decided; outages of all nodes and of one, flaps, failovers and restarts; steps back of Redis's clock. The seed also
// draws the algorithm, whether Redis is one server or a cluster of two, and whether nodes have a table or a memory that
// is too small. Redis is the script itself, in Lua. WEIR_SEED=n runs one history.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "fleet_seam_model.h"
#include "fleet_seam_world.h"
#include "seed.h"

namespace weir::test {
namespace {

void run_seeds(std::uint64_t first, std::uint64_t count, int steps) {
  const Seeds seeds = seeds_or_given(first, count);
  int failures = 0;
  for (std::uint64_t seed = seeds.first; seed < seeds.first + seeds.count && failures < 5; ++seed) {
    const std::string why = World(seed).run(steps);
    if (why.empty()) continue;
    ++failures;
    ADD_FAILURE() << "WEIR_SEED=" << seed << ": " << why;
  }
}

// One reply in eight comes after its deadline. The node has decided alone by then, and Redis has charged, too.
TEST(FleetSeamModel, ALateReplyIsChargedOnce) {
  for (const std::int64_t permits : {1'000, 100}) {
    Redis redis;
    SeamNode node(redis, 0, 1);
    const Limit limit = limit_of(std::to_string(permits) + "/year", Algorithm::fixed_window);
    const auto keep = [&] {
      node.hear_late();
      node.send_undos();
    };
    std::int64_t granted = 0;
    for (int i = 0; i < 300; ++i) {
      redis.now += Micros{1'000};
      node.clock->set(Micros{kEpoch_us} + redis.now);
      node.line->fate = i % 8 == 0 ? Fate::late : i % 8 == 4 ? Fate::lost : Fate::answered;
      const auto decision = node.store->check({.key = "k", .limit = &limit, .cost = 1});
      ASSERT_TRUE(decision);
      granted += decision->allowed ? 1 : 0;
      node.line->fate = Fate::answered;
      keep();
    }
    EXPECT_EQ(granted, std::min<std::int64_t>(300, permits));
    const auto seen = node.store->check({.key = "k", .limit = &limit, .cost = 0});
    ASSERT_TRUE(seen && seen->decided_by == DecidedBy::strict);
    EXPECT_EQ(seen->remaining, permits - granted) << "of " << permits;
    EXPECT_TRUE(node.store->unsynced_charges().is_synced());
  }
}

TEST(FleetSeamModel, AdmitsNoMoreThanTheBoundOfThePresentCondition) { run_seeds(1, 1'000, 150); }

TEST(FleetSeamModelLong, AdmitsNoMoreThanTheBoundOfThePresentCondition) { run_seeds(1'001, 20'000, 150); }

}  // namespace
}  // namespace weir::test
