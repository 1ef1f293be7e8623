// A Redis, and a proxy in front of it that delays, drops or cuts what passes. Fixture of the tests of a fleet's faults.
//
// A node with the address url() reaches Redis itself, a node with proxied() reaches it through the proxy. For the
// thread of the test. Used by fleet_faults_test.cc, fleet_seam_test.cc, fleet_join_test.cc and others.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "fault_proxy.h"
#include "fleet_node.h"
#include "redis_fixture.h"

namespace weir::test {

inline constexpr Micros kOrderOfMagnitude{60'000'000};  // no request waits that long, however busy the machine is

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
  // The proxy closes all connections and refuses new ones.
  void cut_off() {
    proxy_->set({.is_refusing = true});
    proxy_->cut();
  }
  std::string proxied() const { return "redis://" + proxy_->address(); }
  resp::Value redis(std::initializer_list<std::string> words) const { return call_redis(server_->port(), words); }

  // Waits until Redis decides for every node again. Returns how long that took, in milliseconds.
  static std::int64_t back(Nodes& nodes) {
    const Micros began = redis::steady_now();
    for (auto& node : nodes) EXPECT_TRUE(until([&] { return is_strict(*node); })) << "Redis is not asked again";
    return (redis::steady_now() - began).count() / 1'000;
  }
  // Two nodes that receive no reply decide by their shares, and then close their connections.
  void expect_shares_until_connections_end(Nodes& nodes, Tally& tally) const {
    ask_all(nodes, 40, "k", thirty_, tally);
    EXPECT_EQ(tally.asked(DecidedBy::local), 80) << tally.text();
    EXPECT_EQ(tally.admitted(), 30);
    for (auto& node : nodes) EXPECT_TRUE(until([&] { return node->lost > 0; })) << "the connection is dead";
  }
  static std::uint64_t synced_permits(const Nodes& nodes) {
    std::uint64_t all = 0;
    for (const auto& node : nodes) all += node->store->write_backs().written();
    return all;
  }

  const Limit thirty_ = limit_of("30/year", Algorithm::fixed_window);
  const Limit thousand_ = limit_of("1000/year", Algorithm::token_bucket);
  std::unique_ptr<FaultProxy> proxy_;
};

}  // namespace weir::test
