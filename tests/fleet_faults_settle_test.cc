// Reservations and permits in flight that begin before or during an outage of Redis, and end during or after it.
//
// The nodes admit no more than the limit. If a reservation cannot be settled now, the call returns an error, and a
// later call can settle it.

#include "fleet_faults.h"

namespace weir::test {
namespace {

class FleetSettling : public FleetFaults {
 protected:
  Charge costs(std::int64_t cost, std::string_view key = "k") const {
    return {.key = key, .limit = &thirty_, .cost = cost};
  }
  std::int64_t left(Limiter& limiter, std::string_view key = "k") const {
    const auto seen = limiter.peek(key, thirty_);
    EXPECT_TRUE(seen && seen->decided_by == DecidedBy::strict);
    return seen ? seen->remaining : -1;
  }
};

// A node writes back what was used of a reservation.
TEST_F(FleetSettling, WritesBackWhatAReservationWithoutRedisUsed) {
  auto nodes = make_nodes(1, url(), with_deadline(kLong));
  Limiter& limiter = *nodes[0]->limiter;
  server_->kill();
  const Charge five = costs(5), two = costs(2);
  ASSERT_TRUE(limiter.reserve({&five, 1}, {.id = "used"}));
  ASSERT_TRUE(limiter.reserve({&five, 1}, {.id = "left"}));
  const auto settled = limiter.commit("used", {&two, 1});
  ASSERT_TRUE(settled) << settled.error().message;
  EXPECT_EQ(settled->decisions[0].decided_by, DecidedBy::local);
  EXPECT_EQ(settled->decisions[0].remaining, 23);
  ASSERT_TRUE(limiter.cancel("left", {&five, 1}));
  ASSERT_TRUE(server_->restart());
  back(nodes);
  ASSERT_TRUE(until([&] { return synced_permits(nodes) > 0; }));
  EXPECT_EQ(synced_permits(nodes), 2u);
  EXPECT_EQ(left(limiter), 28);
}

// The node has written the reservation back by then. It does not know how much of it fitted the limit in Redis. So it
// refunds nothing, since others may have used these permits.
TEST_F(FleetSettling, SettlesAReservationOfAnOutageOnceRedisIsBack) {
  auto nodes = make_nodes(1, url(), with_deadline(kLong));
  Limiter& limiter = *nodes[0]->limiter;
  server_->kill();
  const Charge five = costs(5), two = costs(2), seven = costs(7);
  for (const char* const id : {"less", "more", "none"}) ASSERT_TRUE(limiter.reserve({&five, 1}, {.id = id})) << id;
  ASSERT_TRUE(server_->restart());
  back(nodes);
  ASSERT_TRUE(until([&] { return synced_permits(nodes) == 15; })) << synced_permits(nodes);
  const auto less = limiter.commit("less", {&two, 1});
  ASSERT_TRUE(less) << less.error().message;
  EXPECT_EQ(less->reserved, std::vector<std::int64_t>{5});
  ASSERT_TRUE(limiter.cancel("none", {&five, 1}));
  EXPECT_EQ(left(limiter), 15);
  ASSERT_TRUE(limiter.commit("more", {&seven, 1}));
  EXPECT_TRUE(until([&] { return left(limiter) == 13; })) << left(limiter);
  const auto again = limiter.commit("less", {&two, 1});
  EXPECT_TRUE(!again && again.error().code == ErrorCode::not_found);
}

// Others have used the permits that one node reserved without Redis. The reservation does not fit the limit in Redis.
// So Redis refunds nothing.
TEST_F(FleetSettling, RefundsNothingThatOthersHaveUsed) {
  std::vector<std::unique_ptr<Node>> nodes;
  nodes.push_back(std::make_unique<Node>(proxied(), with_deadline(kLong)));
  nodes.push_back(std::make_unique<Node>(url(), with_deadline(kLong)));
  back(nodes);
  Limiter& lonely = *nodes[0]->limiter;
  const Charge five = costs(5), all = costs(30);
  cut_off();
  ASSERT_TRUE(until([&] { return !is_strict(*nodes[0]); }));
  ASSERT_TRUE(lonely.reserve({&five, 1}, {.id = "one"}));
  ASSERT_TRUE(nodes[1]->limiter->check_all({&all, 1})->allowed);
  proxy_->set({});
  back(nodes);
  ASSERT_TRUE(until([&] { return synced_permits(nodes) == 5; }));
  ASSERT_TRUE(lonely.cancel("one", {&five, 1}));
  EXPECT_EQ(left(*nodes[1]->limiter), 0);
}

// Redis has the reservation, and is unavailable: the error is `unavailable`, not `not_found`.
TEST_F(FleetSettling, SettlesAReservationInRedisOnceRedisIsBack) {
  auto nodes = make_nodes(1, proxied(), with_deadline(kLong));
  Limiter& limiter = *nodes[0]->limiter;
  const Charge five = costs(5), two = costs(2);
  ASSERT_TRUE(limiter.reserve({&five, 1}, {.id = "one"}));
  cut_off();
  ASSERT_TRUE(until([&] { return !is_strict(*nodes[0]); }));
  const auto failed = limiter.commit("one", {&two, 1});
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, ErrorCode::unavailable) << failed.error().message;
  proxy_->set({});
  back(nodes);
  const auto settled = limiter.commit("one", {&two, 1});
  ASSERT_TRUE(settled) << settled.error().message;
  EXPECT_EQ(settled->decisions[0].remaining, 28);
}

// Redis and the nodes together keep permits in flight within the limit, during an outage and after it.
TEST_F(FleetSettling, KeepsPermitsInFlightWithinTheLimit) {
  auto nodes = make_nodes(2, proxied(), with_deadline(kLong));
  for (auto& node : nodes) ASSERT_TRUE(until([&] { return node->store->nodes() == 2; }));
  const Limit ten = limit_of("10 concurrent for 5min", Algorithm::concurrency);
  const auto acquired = [&](const char* when, int offered) {
    int count = 0;
    for (int i = 0; i < offered; ++i) {
      for (auto& node : nodes) {
        const auto one = node->limiter->acquire("k", when + std::to_string(count), ten);
        EXPECT_TRUE(one) << one.error().message;
        count += one && one->allowed ? 1 : 0;
      }
    }
    return count;
  };
  EXPECT_EQ(acquired("before", 2), 4);
  cut_off();
  for (auto& node : nodes) ASSERT_TRUE(until([&] { return !is_strict(*node); }));
  const int meanwhile = acquired("meanwhile", 10);
  EXPECT_GE(meanwhile, 6) << "what was left when each last heard of it";
  EXPECT_LE(meanwhile, 7) << "one of them had not heard of the last permit";
  EXPECT_TRUE(*nodes[0]->limiter->release("k", "meanwhile0"));
  proxy_->set({});
  back(nodes);
  EXPECT_TRUE(until([&] {
    return nodes[1]->limiter->peek("k", ten)->remaining == std::max(0, 10 - 4 - meanwhile + 1);
  })) << nodes[1]->limiter->peek("k", ten)->remaining;
  for (int i = 1; i < meanwhile; ++i) {
    const std::string id = "meanwhile" + std::to_string(i);
    EXPECT_TRUE(*nodes[1]->limiter->release("k", id)) << "by any node: Redis knows of it";
  }
  EXPECT_EQ(nodes[0]->limiter->peek("k", ten)->remaining, 6);
}

}  // namespace
}  // namespace weir::test
