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

}  // namespace
}  // namespace weir::test
