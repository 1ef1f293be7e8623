// Tests limits of Envoy's files that one thread replaces while others use them.
#include "envoy/envoy_in_force.h"

#include <gtest/gtest.h>

#include <thread>

namespace weir::envoy {
namespace {

std::shared_ptr<const EnvoyRules> some_rules(int limits) {
  EnvoyConfig config;
  config.domains.push_back({.name = "d"});
  for (int i = 0; i < limits; ++i) {
    config.domains[0].descriptors.push_back({.key = "k" + std::to_string(i), .limit = EnvoyLimit{}});
  }
  return EnvoyRules::compile(config, Algorithm::fixed_window).value();
}

TEST(EnvoyInForce, AViewHasTheCountersOfItsRules) {
  EnvoyInForce in_force;
  std::shared_ptr<const EnvoyView> view;
  std::uint64_t version = 0;
  in_force.renew(view, version);
  EXPECT_EQ(view->rules, nullptr);
  in_force.lift(true);
  in_force.put(some_rules(3));
  in_force.renew(view, version);
  EXPECT_EQ(view->counts.size(), 3U);
  EXPECT_TRUE(view->is_lifted);
  const auto same = view;
  in_force.lift(true);
  in_force.renew(view, version);
  EXPECT_EQ(view, same) << "nothing has changed";
  in_force.put(nullptr);
  in_force.renew(view, version);
  EXPECT_EQ(view->rules, nullptr);
}

TEST(EnvoyInForce, TheNextPutFreesReplacedRules) {
  EnvoyInForce in_force;
  std::shared_ptr<const EnvoyView> view;
  std::uint64_t version = 0;
  in_force.put(some_rules(3));
  in_force.renew(view, version);
  const std::weak_ptr<const EnvoyRules> first = view->rules;
  in_force.put(some_rules(4));
  in_force.lift(true);
  in_force.renew(view, version);
  EXPECT_FALSE(first.expired()) << "the loop's view still has the rules";
  in_force.put(some_rules(5));
  EXPECT_TRUE(first.expired());
}

TEST(EnvoyInForce, CanBeReplacedWhileOtherThreadsReadIt) {
  constexpr int kThreads = 3, kRounds = 300;
  EnvoyInForce in_force;
  in_force.put(some_rules(1));
  std::atomic<bool> is_over{false};
  std::vector<std::thread> users;
  for (int i = 0; i < kThreads; ++i) {
    users.emplace_back([&] {
      std::shared_ptr<const EnvoyView> view;
      std::uint64_t version = 0;
      while (!is_over) {
        in_force.renew(view, version);
        for (const EnvoyRule& rule : view->rules->rules()) {
          view->counts[rule.place]->add(EnvoyResult::within_limit, 1);
        }
        in_force.tally().counts("d", "v", EnvoyTally::Name::with_values).add(EnvoyResult::over_limit, 1);
      }
    });
  }
  for (int i = 0; i < kRounds; ++i) {
    in_force.put(some_rules(1 + i % 5));
    in_force.lift(i % 2 == 0);
    (void)in_force.tally().all();
  }
  is_over = true;
  for (std::thread& user : users) user.join();
  std::shared_ptr<const EnvoyView> view;
  std::uint64_t version = 0;
  in_force.renew(view, version);
  EXPECT_EQ(view->counts.size(), static_cast<std::size_t>(1 + (kRounds - 1) % 5));
}

TEST(EnvoyTally, CountsByName) {
  EnvoyTally tally;
  EnvoyCounts& counts = tally.counts("edge", "user", EnvoyTally::Name::of_file);
  counts.add(EnvoyResult::near_limit, 3);
  EXPECT_EQ(&counts, &tally.counts("edge", "user", EnvoyTally::Name::with_values));
  EXPECT_NE(&counts, &tally.counts("inside", "user", EnvoyTally::Name::of_file));
  const auto all = tally.all();
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].domain, "edge");
  EXPECT_EQ(all[0].descriptor, "user");
  EXPECT_EQ(all[0].hits[1], 3U);
}

TEST(EnvoyTally, LimitsNamesWithRequestValues) {
  EnvoyTally tally;
  for (std::size_t i = 0; i < kEnvoyValueSeriesMax + 100; ++i) {
    tally.counts("edge", "user_" + std::to_string(i), EnvoyTally::Name::with_values).add(EnvoyResult::over_limit, 1);
  }
  EXPECT_EQ(tally.all().size(), kEnvoyValueSeriesMax + 1);
  EXPECT_EQ(tally.counts("edge", kEnvoyOther, EnvoyTally::Name::of_file).hits[2], 100U);
  tally.counts("edge", "of the file", EnvoyTally::Name::of_file);
  EXPECT_EQ(tally.all().size(), kEnvoyValueSeriesMax + 2);
}

}  // namespace
}  // namespace weir::envoy
