// A fleet, its Redis, and a proxy between them that makes the weather: what the tests of its faults begin with.
//
// Nodes that are given url() reach Redis itself, those that are given proxied() through the proxy. For the thread of
// the test. Used by fleet_faults_test.cc, fleet_faults_refusals_test.cc and fleet_faults_settle_test.cc.
#pragma once

#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fault_proxy.h"
#include "fleet_node.h"
#include "redis_fixture.h"

namespace weir::test {

inline constexpr Micros kOrderOfMagnitude{60'000'000};  // nobody waits so long, however busy the machine

class FleetFaults : public RedisTest {
 protected:
  void SetUp() override { start({}); }

  void start(RedisOptions options) {
    proxy_.reset();
    ASSERT_NO_FATAL_FAILURE(RedisTest::start(std::move(options)));
    auto proxy = FaultProxy::start(server_->port());
    ASSERT_TRUE(proxy) << proxy.error().message;
    proxy_ = *std::move(proxy);
  }
  std::string proxied() const { return "redis://" + proxy_->address(); }
  resp::Value redis(std::initializer_list<std::string> words) const { return call_redis(server_->port(), words); }

  // Until every node decides by Redis, in milliseconds.
  static std::int64_t back(std::vector<std::unique_ptr<Node>>& nodes) {
    const Micros began = redis::steady_now();
    for (auto& node : nodes) EXPECT_TRUE(until([&] { return is_strict(*node); })) << "Redis is not asked again";
    return (redis::steady_now() - began).count() / 1'000;
  }
  static std::uint64_t synced_permits(const std::vector<std::unique_ptr<Node>>& nodes) {
    std::uint64_t all = 0;
    for (const auto& node : nodes) all += node->store->keeper().synced_permits();
    return all;
  }

  const Limit thirty_ = limit_of("30/year", Algorithm::fixed_window);
  const Limit thousand_ = limit_of("1000/year", Algorithm::token_bucket);
  std::unique_ptr<FaultProxy> proxy_;
};

}  // namespace weir::test
