// Several nodes on one Redis, each with a limiter of its own: what they let through together is what one limiter would.
//
// Real servers of Redis, killed, paused and restarted by the tests; nodes are stores of this process, with threads that
// ask. What real servers of Weir do is tested by tests/server/fleet*.sh.

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "fleet/fleet_store.h"
#include "redis_fixture.h"
#include "redis_fleet.h"
#include "seed.h"
#include "store_fixture.h"
#include "weir/limiter.h"

namespace weir::test {
namespace {

// One process of a fleet.
struct Node {
  explicit Node(const std::string& url, FleetStoreOptions options = {}) {
    options.target = redis::parse_url(url).value();
    options.lane.deadline = Micros{1'000'000};  // machines that run tests are busy: what is decided late is decided
    store = std::make_shared<FleetStore>(options);
    limiter = std::make_unique<Limiter>(LimiterOptions{.keys = 10'000, .shared = store});
  }
  std::shared_ptr<FleetStore> store;
  std::unique_ptr<Limiter> limiter;
};

class Fleet : public RedisTest {};

// Waits until the node decides by Redis.
void until_strict(Node& node) {
  const Limit limit = limit_of("1000000/year", Algorithm::token_bucket);
  for (int i = 0; i < 6'000; ++i) {
    const auto decision = node.limiter->check("warm", limit);
    if (decision && decision->decided_by == DecidedBy::strict) return;
    std::this_thread::sleep_for(std::chrono::milliseconds{10});
  }
  FAIL() << "Redis is not asked";
}

TEST_F(Fleet, ThreeNodesAdmitExactlyTheLimit) {
  std::vector<std::unique_ptr<Node>> nodes;
  for (int i = 0; i < 3; ++i) {
    nodes.push_back(std::make_unique<Node>(url()));
    ASSERT_NO_FATAL_FAILURE(until_strict(*nodes.back()));
  }
  for (const Algorithm algorithm : kChecked) {
    const Limit limit = limit_of("500/year", algorithm);
    std::atomic<int> admitted{0}, strict{0}, cached{0};
    on_threads(6, [&](std::size_t thread) {
      for (int i = 0; i < 250; ++i) {
        const auto decision = nodes[thread % 3]->limiter->check("k", limit);
        ASSERT_TRUE(decision) << decision.error().message;
        admitted += decision->allowed;
        ++(decision->decided_by == DecidedBy::strict ? strict : cached);
        EXPECT_TRUE(decision->decided_by == DecidedBy::strict || decision->decided_by == DecidedBy::cached);
      }
    });
    EXPECT_EQ(admitted, 500) << to_string(algorithm);
    EXPECT_GT(cached, 0);
  }
}

TEST_F(Fleet, AResetOnOneNodeIsOneOnAll) {
  Node first(url()), second(url());
  ASSERT_NO_FATAL_FAILURE(until_strict(first));
  ASSERT_NO_FATAL_FAILURE(until_strict(second));
  for (const Algorithm algorithm : kChecked) {
    const Limit limit = limit_of("2/year", algorithm);
    EXPECT_TRUE(first.limiter->check("k", limit, 2)->allowed);
    EXPECT_FALSE(second.limiter->check("k", limit, 2)->allowed);
    EXPECT_EQ(first.limiter->reset("k").value(), true);
    EXPECT_EQ(first.limiter->reset("k").value(), false);
    EXPECT_TRUE(second.limiter->check("k", limit, 2)->allowed);
  }
}

// Everything that a limiter can be asked, from two nodes in turn, as one limiter would answer it.
TEST_F(Fleet, TwoNodesSettleReservationsAndPermitsOfEachOther) {
  Node first(url()), second(url());
  ASSERT_NO_FATAL_FAILURE(until_strict(first));
  ASSERT_NO_FATAL_FAILURE(until_strict(second));
  const Limit limit = limit_of("10/year", Algorithm::fixed_window);
  const Charge six{"r", &limit, 6}, two{"r", &limit, 2};
  const auto reserved = first.limiter->reserve({&six, 1}, {.id = "one"});
  ASSERT_TRUE(reserved);
  EXPECT_EQ(second.limiter->peek("r", limit)->remaining, 4);
  const auto settled = second.limiter->commit("one", {&two, 1});
  ASSERT_TRUE(settled) << settled.error().message;
  EXPECT_EQ(settled->reserved[0], 6);
  EXPECT_EQ(first.limiter->peek("r", limit)->remaining, 8);
  EXPECT_FALSE(first.limiter->commit("one", {&two, 1}));

  EXPECT_FALSE(first.limiter->check_once("id", {&two, 1})->repeated);
  EXPECT_TRUE(second.limiter->check_once("id", {&two, 1})->repeated);
  EXPECT_EQ(first.limiter->peek("r", limit)->remaining, 6);

  const Limit permits = compile("2 concurrent").value();
  EXPECT_TRUE(first.limiter->acquire("c", "a", permits)->allowed);
  EXPECT_TRUE(second.limiter->acquire("c", "b", permits)->allowed);
  EXPECT_FALSE(first.limiter->acquire("c", "d", permits)->allowed);
  EXPECT_EQ(second.limiter->release("c", "a").value(), true);
  EXPECT_TRUE(first.limiter->acquire("c", "d", permits)->allowed);
}

// Redis is gone: the limit holds on, by the node itself, and it is Redis again when it is back.
TEST_F(Fleet, GoesOnByItselfWhileRedisIsAway) {
  Node node(url());
  ASSERT_NO_FATAL_FAILURE(until_strict(node));
  const Limit limit = limit_of("10/year", Algorithm::token_bucket);
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(node.limiter->check("k", limit)->allowed);
  server_->kill();
  int admitted = 0;
  for (int i = 0; i < 50; ++i) {
    const auto decision = node.limiter->check("k", limit);
    ASSERT_TRUE(decision) << decision.error().message;
    EXPECT_EQ(decision->decided_by, DecidedBy::local);
    admitted += decision->allowed;
  }
  EXPECT_EQ(admitted, 6) << "what was left when Redis last spoke";
  ASSERT_TRUE(server_->restart());
  ASSERT_NO_FATAL_FAILURE(until_strict(node));
}

template <class Test>
bool until(Test test, int ms = 60'000) {
  for (int i = 0; i < ms / 5; ++i) {
    if (test()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds{5});
  }
  return false;
}

FleetStoreOptions quick() {
  FleetStoreOptions options;
  options.keeper.beat = Micros{50'000};
  options.keeper.believed = Micros{5'000'000};
  return options;
}

TEST_F(Fleet, NodesKnowEachOther) {
  std::vector<std::unique_ptr<Node>> nodes;
  for (int i = 0; i < 3; ++i) {
    FleetStoreOptions options = quick();
    options.keeper.id = "node" + std::to_string(i);
    nodes.push_back(std::make_unique<Node>(url(), options));
    nodes.back()->store->keeper().set_says([i] { return "version " + std::to_string(i); });
  }
  for (std::uint32_t i = 0; i < 3; ++i) {
    ASSERT_TRUE(until([&] { return nodes[i]->store->seat() == Seat{i, 3}; })) << nodes[i]->store->seat().nodes;
    const auto known = nodes[i]->store->keeper().nodes();
    ASSERT_EQ(known.size(), 3u);
    EXPECT_TRUE(until([&] { return nodes[i]->store->keeper().nodes()[2].says == "version 2"; }));
    EXPECT_EQ(known[i].is_self, true);
  }
  nodes.erase(nodes.begin());
  EXPECT_TRUE(until([&] { return nodes[1]->store->seat() == Seat{1, 2}; })) << "who leaves says so";
}

// Each goes on with its part of what was left, and all of them together with no more than that.
TEST_F(Fleet, AllTogetherLetNoMoreThroughThanTheLimitWhileRedisIsAway) {
  std::vector<std::unique_ptr<Node>> nodes;
  for (int i = 0; i < 3; ++i) nodes.push_back(std::make_unique<Node>(url(), quick()));
  for (auto& node : nodes) ASSERT_TRUE(until([&] { return node->store->seat().nodes == 3; }));
  const Limit fresh = limit_of("100/year", Algorithm::fixed_window), few = limit_of("2/year", Algorithm::sliding_log);
  const Limit begun = limit_of("100/year", Algorithm::token_bucket);
  for (auto& node : nodes) {
    ASSERT_NO_FATAL_FAILURE(until_strict(*node));
    EXPECT_TRUE(node->limiter->check("begun", begun, 10)->allowed);
  }
  for (auto& node : nodes) EXPECT_TRUE(node->limiter->peek("begun", begun).has_value());
  server_->kill();
  int admitted = 0, of_few = 0, of_begun = 0;
  for (int i = 0; i < 200; ++i) {
    for (auto& node : nodes) {
      const auto decision = node->limiter->check("fresh", fresh);
      ASSERT_TRUE(decision);
      EXPECT_EQ(decision->decided_by, DecidedBy::local);
      admitted += decision->allowed;
      of_few += node->limiter->check("few", few)->allowed;
      of_begun += node->limiter->check("begun", begun)->allowed;
    }
  }
  EXPECT_EQ(admitted, 100);
  EXPECT_EQ(of_few, 3) << "max(limit, nodes)";
  EXPECT_GT(of_begun, 60);
  EXPECT_LE(of_begun, 70) << "30 were spent before";
}

TEST_F(Fleet, WhatWasLetThroughMeanwhileIsPaidBack) {
  Node node(url(), quick()), other(url(), quick());
  const Limit limit = limit_of("100/year", Algorithm::fixed_window);
  ASSERT_TRUE(until([&] { return node.store->seat().nodes == 2; }));
  server_->kill();
  int admitted = 0;
  for (int i = 0; i < 80; ++i) admitted += node.limiter->check("k", limit)->allowed;
  EXPECT_EQ(admitted, 50);
  ASSERT_TRUE(server_->restart());
  EXPECT_TRUE(until([&] {
    const auto seen = other.limiter->peek("k", limit);
    return seen && seen->decided_by == DecidedBy::strict && seen->remaining == 50;
  }));
  EXPECT_TRUE(until([&] { return node.store->keeper().synced_permits() == 50; }))
      << node.store->keeper().synced_permits();
}

TEST_F(Fleet, SeesHowRedisIs) {
  Node node(url());
  ASSERT_NO_FATAL_FAILURE(until_strict(node));
  const auto health = node.store->inspect();
  ASSERT_EQ(health.size(), 1u);
  EXPECT_EQ(health[0].error, "");
  EXPECT_EQ(health[0].role, "master");
  EXPECT_EQ(health[0].eviction, "noeviction");
  EXPECT_NE(health[0].version, "");
  server_->kill();
  EXPECT_TRUE(until([&] { return node.store->inspect().at(0).error != ""; }));
}

TEST_F(Fleet, ARefundOnOneNodeEndsDenialsOnOthers) {
  Node first(url()), second(url());
  ASSERT_NO_FATAL_FAILURE(until_strict(first));
  ASSERT_NO_FATAL_FAILURE(until_strict(second));
  const Limit limit = limit_of("2/year", Algorithm::fixed_window);
  EXPECT_TRUE(first.limiter->check("k", limit, 2)->allowed);
  EXPECT_EQ(second.limiter->check("k", limit)->decided_by, DecidedBy::strict);
  EXPECT_TRUE(until([&] { return second.limiter->check("k", limit)->decided_by == DecidedBy::cached; }));
  EXPECT_TRUE(first.limiter->give_back("k", limit, 1));
  EXPECT_TRUE(until([&] { return second.limiter->check("k", limit)->allowed; }));
}

// A request that one of its limits denies for sure is denied without asking, and told what the others last had left.
TEST_F(Fleet, RemembersDenialsOfSeveralLimits) {
  Node node(url());
  ASSERT_NO_FATAL_FAILURE(until_strict(node));
  const Limit narrow = limit_of("2/year", Algorithm::token_bucket),
              wide = limit_of("9/year", Algorithm::sliding_window);
  const Charge charges[] = {{"n", &narrow}, {"w", &wide}};
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(node.limiter->check_all(charges)->allowed);
  ASSERT_TRUE(until([&] { return node.limiter->check_all(charges)->decisions[0].decided_by == DecidedBy::cached; }));
  const auto verdict = node.limiter->check_all(charges);
  EXPECT_FALSE(verdict->allowed);
  EXPECT_EQ(verdict->binding, 0u);
  EXPECT_EQ(verdict->decisions[0].decided_by, DecidedBy::cached);
  EXPECT_FALSE(verdict->decisions[0].allowed);
  EXPECT_GT(verdict->decisions[0].retry_after.count(), 0);
  EXPECT_TRUE(verdict->decisions[1].allowed);
  EXPECT_EQ(verdict->decisions[1].remaining, 7);
  EXPECT_EQ(node.limiter->peek("w", wide)->remaining, 7) << "nothing was charged";
  const Charge others[] = {{"n", &narrow}, {"unknown", &wide}};
  EXPECT_EQ(node.limiter->check_all(others)->decisions[0].decided_by, DecidedBy::strict) << "of one nothing is known";
  EXPECT_TRUE(node.limiter->reset("n").value());
  EXPECT_TRUE(node.limiter->check_all(charges)->allowed);
}

class FleetOnCluster : public ::testing::Test {
 protected:
  void SetUp() override {
    auto cluster = RedisCluster::start();
    ASSERT_TRUE(cluster) << cluster.error().message;
    cluster_ = *std::move(cluster);
  }
  std::unique_ptr<RedisCluster> cluster_;
};

// All of a request or none of it, wherever its keys lie; and exactly the limit in all.
TEST_F(FleetOnCluster, ChargesARequestOnSeveralServersOrNowhere) {
  std::vector<std::unique_ptr<Node>> nodes;
  for (int i = 0; i < 3; ++i) {
    nodes.push_back(std::make_unique<Node>("redis+cluster://" + cluster_->addresses()));
    ASSERT_NO_FATAL_FAILURE(until_strict(*nodes.back()));
  }
  for (const Algorithm algorithm : {Algorithm::fixed_window, Algorithm::sliding_log, Algorithm::sliding_window}) {
    const Limit wide = limit_of("1000/year", algorithm), narrow = limit_of("100/year", algorithm);
    const std::string name(to_string(algorithm));
    std::vector<std::string> users;
    for (int i = 0; i < 10; ++i) users.push_back(name + " user " + std::to_string(i));
    std::atomic<int> admitted{0};
    on_threads(6, [&](std::size_t thread) {
      for (std::size_t i = 0; i < 60; ++i) {
        const Charge charges[] = {{users[(thread + i) % 10], &wide}, {name, &narrow}};
        const auto verdict = nodes[thread % 3]->limiter->check_all(charges);
        ASSERT_TRUE(verdict) << verdict.error().message;
        EXPECT_NE(verdict->decisions[0].decided_by, DecidedBy::local);
        admitted += verdict->allowed;
      }
    });
    EXPECT_EQ(admitted, 100) << name;
    std::int64_t spent = 0;
    for (const std::string& user : users) spent += 1'000 - nodes[0]->limiter->peek(user, wide)->remaining;
    EXPECT_EQ(spent, 100) << name << ": who was denied was charged nothing";
  }
}

}  // namespace
}  // namespace weir::test
