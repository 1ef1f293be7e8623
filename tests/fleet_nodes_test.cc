// Several nodes on one Redis, each with its own limiter: together they admit what one limiter would admit.
//
// The tests kill and restart real servers of Redis. Nodes are stores of this process. tests/server/fleet*.sh test real
// servers of Weir.

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "fleet_node.h"
#include "redis_fixture.h"

namespace weir::test {
namespace {

class Fleet : public RedisTest {};

TEST_F(Fleet, ThreeNodesAdmitExactlyTheLimit) {
  const auto nodes = make_nodes(3, url(), with_deadline(kLong));
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
    EXPECT_EQ(admitted, 500) << weir::to_string(algorithm);
    EXPECT_GT(cached, 0);
  }
}

TEST_F(Fleet, AResetOnOneNodeIsOneOnAll) {
  const auto nodes = make_nodes(2, url(), with_deadline(kLong));
  Limiter &first = *nodes[0]->limiter, &second = *nodes[1]->limiter;
  for (const Algorithm algorithm : kChecked) {
    const Limit limit = limit_of("2/year", algorithm);
    EXPECT_TRUE(first.check("k", limit, 2)->allowed);
    EXPECT_FALSE(second.check("k", limit, 2)->allowed);
    EXPECT_EQ(first.reset("k").value(), true);
    EXPECT_EQ(first.reset("k").value(), false);
    EXPECT_TRUE(second.check("k", limit, 2)->allowed);
  }
}

// Calls of a limiter on two nodes by turns get the answers that one limiter would give.
TEST_F(Fleet, TwoNodesSettleReservationsAndPermitsOfEachOther) {
  const auto nodes = make_nodes(2, url(), with_deadline(kLong));
  Limiter &first = *nodes[0]->limiter, &second = *nodes[1]->limiter;
  const Limit limit = limit_of("10/year", Algorithm::fixed_window);
  const Charge six{"r", &limit, 6}, two{"r", &limit, 2};
  const auto reserved = first.reserve({&six, 1}, {.id = "one"});
  ASSERT_TRUE(reserved);
  EXPECT_EQ(second.peek("r", limit)->remaining, 4);
  const auto settled = second.commit("one", {&two, 1});
  ASSERT_TRUE(settled) << settled.error().message;
  EXPECT_EQ(settled->reserved[0], 6);
  EXPECT_EQ(first.peek("r", limit)->remaining, 8);
  EXPECT_FALSE(first.commit("one", {&two, 1}));

  EXPECT_FALSE(first.check_once("id", {&two, 1})->repeated);
  EXPECT_TRUE(second.check_once("id", {&two, 1})->repeated);
  EXPECT_EQ(first.peek("r", limit)->remaining, 6);

  const Limit permits = compile("2 concurrent").value();
  EXPECT_TRUE(first.acquire("c", "a", permits)->allowed);
  EXPECT_TRUE(second.acquire("c", "b", permits)->allowed);
  EXPECT_FALSE(first.acquire("c", "d", permits)->allowed);
  EXPECT_EQ(second.release("c", "a").value(), true);
  EXPECT_TRUE(first.acquire("c", "d", permits)->allowed);
}

// While Redis is unavailable, the node admits what was left of the limit. Redis decides again when it is back.
TEST_F(Fleet, DecidesByItselfWhileRedisIsUnavailable) {
  const auto nodes = make_nodes(1, url(), with_deadline(kLong));
  Limiter& limiter = *nodes[0]->limiter;
  const Limit limit = limit_of("10/year", Algorithm::token_bucket);
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(limiter.check("k", limit)->allowed);
  server_->kill();
  int admitted = 0;
  for (int i = 0; i < 50; ++i) {
    const auto decision = limiter.check("k", limit);
    ASSERT_TRUE(decision) << decision.error().message;
    EXPECT_EQ(decision->decided_by, DecidedBy::local);
    admitted += decision->allowed;
  }
  EXPECT_EQ(admitted, 6) << "what was left when Redis last replied";
  ASSERT_TRUE(server_->restart());
  const Limit wide = limit_of("1000000/year", Algorithm::token_bucket);
  ASSERT_TRUE(until([&] {
    const auto decision = limiter.check("warm", wide);
    return decision && decision->decided_by == DecidedBy::strict;
  })) << "Redis is not asked again";
}

TEST_F(Fleet, NodesKnowEachOther) {
  std::vector<std::unique_ptr<Node>> nodes;
  for (int i = 0; i < 3; ++i) {
    fleet::FleetStoreOptions options = with_deadline(kLong);
    options.membership.id = "node" + std::to_string(i);
    nodes.push_back(std::make_unique<Node>(url(), options));
    nodes.back()->store->background().membership().set_description([i] { return "version " + std::to_string(i); });
  }
  for (std::uint32_t i = 0; i < 3; ++i) {
    ASSERT_TRUE(until([&] {
      return nodes[i]->store->rank() == fleet::NodeRank{i, 3};
    })) << nodes[i]->store->rank().nodes;
    const auto known = nodes[i]->store->background().membership().nodes();
    ASSERT_EQ(known.size(), 3u);
    EXPECT_TRUE(
        until([&] { return nodes[i]->store->background().membership().nodes()[2].description == "version 2"; }));
    EXPECT_EQ(known[i].is_self, true);
  }
  nodes.erase(nodes.begin());
  EXPECT_TRUE(until([&] { return nodes[1]->store->rank() == fleet::NodeRank{1, 2}; })) << "who leaves says so";
}

// Each node admits its part of what was left, and together they admit no more than that.
TEST_F(Fleet, TogetherAdmitNoMoreThanTheLimitWhileRedisIsDown) {
  const auto nodes = make_nodes(3, url(), with_deadline(kLong));
  const Limit fresh = limit_of("100/year", Algorithm::fixed_window), few = limit_of("2/year", Algorithm::sliding_log);
  const Limit begun = limit_of("100/year", Algorithm::token_bucket);
  for (auto& node : nodes) EXPECT_TRUE(node->limiter->check("begun", begun, 10)->allowed);
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

TEST_F(Fleet, WritesBackWhatItAdmittedWhileRedisWasDown) {
  const auto nodes = make_nodes(2, url(), with_deadline(kLong));
  Node &node = *nodes[0], &other = *nodes[1];
  const Limit limit = limit_of("100/year", Algorithm::fixed_window);
  server_->kill();
  int admitted = 0;
  for (int i = 0; i < 80; ++i) admitted += node.limiter->check("k", limit)->allowed;
  EXPECT_EQ(admitted, 50) << "its share of the limit, as one of two nodes";
  ASSERT_TRUE(server_->restart());
  EXPECT_TRUE(until([&] {
    const auto seen = other.limiter->peek("k", limit);
    return seen && seen->decided_by == DecidedBy::strict && seen->remaining == 50;
  })) << "the other node sees in Redis what this node admitted";
  EXPECT_TRUE(until([&] { return node.store->write_backs().written() == 50; })) << node.store->write_backs().written();
}

TEST_F(Fleet, ReportsTheHealthOfRedis) {
  Node node(url(), with_deadline(kLong));
  ASSERT_TRUE(until([&] { return is_strict(node); }));
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
  const auto nodes = make_nodes(2, url(), with_deadline(kLong));
  Limiter &first = *nodes[0]->limiter, &second = *nodes[1]->limiter;
  const Limit limit = limit_of("2/year", Algorithm::fixed_window);
  EXPECT_TRUE(first.check("k", limit, 2)->allowed);
  EXPECT_EQ(second.check("k", limit)->decided_by, DecidedBy::strict);
  EXPECT_TRUE(until([&] { return second.check("k", limit)->decided_by == DecidedBy::cached; }));
  EXPECT_TRUE(first.refund("k", limit, 1));
  EXPECT_TRUE(until([&] { return second.check("k", limit)->allowed; }));
}

// A node with a cached denial denies a request without asking Redis. The answer has what the other limits last had
// left.
TEST_F(Fleet, CachesDenialsOfSeveralLimits) {
  Node node(url(), with_deadline(kLong));
  ASSERT_TRUE(until([&] { return is_strict(node); }));
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

class FleetOnCluster : public RedisClusterTest {};

// A request over keys on several servers is charged in whole or not at all, and the nodes admit exactly the limit.
TEST_F(FleetOnCluster, ChargesARequestOnSeveralServersOrNowhere) {
  const auto nodes = make_nodes(3, url(), with_deadline(kLong));
  for (const Algorithm algorithm : {Algorithm::fixed_window, Algorithm::sliding_log, Algorithm::sliding_window}) {
    const Limit wide = limit_of("1000/year", algorithm), narrow = limit_of("100/year", algorithm);
    const std::string name(weir::to_string(algorithm));
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
    std::int64_t all = 0;
    for (const std::string& user : users) all += used(*nodes[0], user, wide);
    EXPECT_EQ(all, 100) << name << ": who was denied was charged nothing";
  }
}

}  // namespace
}  // namespace weir::test
