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
#include "redis_fleet.h"
#include "redis_server.h"
#include "seed.h"
#include "store_fixture.h"
#include "weir/limiter.h"

namespace weir::test {
namespace {

// One process of a fleet.
struct Node {
  explicit Node(const std::string& url, FleetStoreOptions options = {}) {
    options.target = redis::parse_url(url).value();
    store = std::make_shared<FleetStore>(options);
    limiter = std::make_unique<Limiter>(LimiterOptions{.keys = 10'000, .shared = store});
  }
  std::shared_ptr<FleetStore> store;
  std::unique_ptr<Limiter> limiter;
};

class Fleet : public ::testing::Test {
 protected:
  void SetUp() override {
    auto server = RedisServer::start();
    ASSERT_TRUE(server) << server.error().message;
    server_ = *std::move(server);
  }
  std::string url() const { return "redis://" + server_->address(); }

  std::unique_ptr<RedisServer> server_;
};

void on_threads(std::size_t count, const std::function<void(std::size_t)>& work) {
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < count; ++i) threads.emplace_back(work, i);
  for (std::thread& thread : threads) thread.join();
}

// Waits until the node decides by Redis.
void until_strict(Node& node) {
  const Limit limit = limit_of("1000000/hour", Algorithm::token_bucket);
  for (int i = 0; i < 500; ++i) {
    const auto decision = node.limiter->check("warm", limit);
    if (decision && decision->made == MadeBy::strict) return;
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
    const Limit limit = limit_of("500/hour", algorithm);
    std::atomic<int> admitted{0}, strict{0}, cached{0};
    on_threads(6, [&](std::size_t thread) {
      for (int i = 0; i < 250; ++i) {
        const auto decision = nodes[thread % 3]->limiter->check("k", limit);
        ASSERT_TRUE(decision) << decision.error().message;
        admitted += decision->allowed;
        ++(decision->made == MadeBy::strict ? strict : cached);
        EXPECT_TRUE(decision->made == MadeBy::strict || decision->made == MadeBy::cached);
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
    const Limit limit = limit_of("2/hour", algorithm);
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
  const Limit limit = limit_of("10/hour", Algorithm::fixed_window);
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
  const Limit limit = limit_of("10/hour", Algorithm::token_bucket);
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(node.limiter->check("k", limit)->allowed);
  server_->kill();
  int admitted = 0;
  for (int i = 0; i < 50; ++i) {
    const auto decision = node.limiter->check("k", limit);
    ASSERT_TRUE(decision) << decision.error().message;
    EXPECT_EQ(decision->made, MadeBy::local);
    admitted += decision->allowed;
  }
  EXPECT_EQ(admitted, 6) << "what was left when Redis last spoke";
  ASSERT_TRUE(server_->restart());
  ASSERT_NO_FATAL_FAILURE(until_strict(node));
}

}  // namespace
}  // namespace weir::test
