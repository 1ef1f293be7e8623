// The seams between "Redis decides" and "this node decides", with a real Redis: what all nodes admit together stays
// within the bounds of docs/fleet.md, "What can be let through".
//
// Each test is one way in which a fleet has admitted too much: an outage after a refund, the return of Redis, a crowded
// pipeline, two outages in a row. fleet_seam_model_test.cc mixes all of them at random, in virtual time.

#include <cstdlib>

#include "fleet/redis_key.h"
#include "fleet_faults.h"

namespace weir::test {
namespace {

class FleetSeam : public FleetFaults {
 protected:
  int admitted(Node& node, std::string_view key, int offered, std::int64_t cost = 1) {
    int count = 0;
    for (int i = 0; i < offered; ++i) {
      const Charge charge{.key = key, .limit = &hundred_, .cost = cost};
      const auto verdict = node.limiter->check_all({&charge, 1});
      EXPECT_TRUE(verdict) << verdict.error().message;
      count += verdict && verdict->allowed ? 1 : 0;
    }
    return count;
  }
  // At most `most` requests may be in flight to Redis or queued.
  static fleet::FleetStoreOptions with_requests(std::size_t most) {
    fleet::FleetStoreOptions options = with_deadline(kLong);
    options.pipeline.requests_max = most;
    return options;
  }
  // Only `node` is cut off, once both nodes know of each other.
  void cut_one_off(Node& other, Node& node) {
    for (Node* one : {&other, &node}) {
      ASSERT_TRUE(until([&] { return is_strict(*one) && one->store->rank().nodes == 2; }));
    }
    cut_off();
    ASSERT_TRUE(until([&] { return !is_strict(node); }));
  }
  static bool waits_for(Nodes& nodes, bool is_strict_wanted) {
    for (auto& node : nodes) {
      if (!until([&] { return is_strict(*node) == is_strict_wanted; })) return false;
    }
    return true;
  }

  const Limit hundred_ = limit_of("100/year", Algorithm::fixed_window);
};

TEST_F(FleetSeam, AnOutageAfterACommitStartsWithWhatWasLeft) {
  auto nodes = make_nodes(1, proxied(), with_deadline(kLong));
  Limiter& limiter = *nodes[0]->limiter;
  EXPECT_EQ(admitted(*nodes[0], "k", 1, 80), 1);
  const Charge twenty{.key = "k", .limit = &hundred_, .cost = 20}, ten{.key = "k", .limit = &hundred_, .cost = 10};
  ASSERT_TRUE(limiter.reserve({&twenty, 1}, {.id = "one"}));
  ASSERT_TRUE(limiter.commit("one", {&ten, 1}));
  EXPECT_EQ(admitted(*nodes[0], "refunded", 1, 95), 1);
  ASSERT_TRUE(limiter.check("refunded", hundred_, -5));
  cut_off();
  ASSERT_TRUE(waits_for(nodes, false));
  EXPECT_EQ(admitted(*nodes[0], "k", 200), 10);
  EXPECT_EQ(admitted(*nodes[0], "refunded", 200), 10);
}

// Redis must have the charges of the outage before it decides alone.
TEST_F(FleetSeam, SharesAndRedisTogetherAdmitTheLimit) {
  auto nodes = make_nodes(3, proxied(), with_deadline(kLong));
  for (int round = 0; round < 3; ++round) {
    const std::string key = "k" + std::to_string(round);
    Tally tally;
    cut_off();
    ASSERT_TRUE(waits_for(nodes, false));
    {
      for (auto& node : nodes) {
        for (int i = 0; i < 1'500; ++i) {  // so that there is much to write back
          ask(*node, key + std::to_string(i), hundred_, tally);
        }
      }
      Tally hot;
      Asking asking(nodes, [&](Node& node) { ask(node, key, hundred_, hot); });
      ASSERT_TRUE(until([&] { return hot.asked(DecidedBy::local) > 150; })) << hot.text();
      proxy_->set({});
      ASSERT_TRUE(waits_for(nodes, true));
      ASSERT_TRUE(until([&] { return hot.asked(DecidedBy::strict) + hot.asked(DecidedBy::cached) > 100; }))
          << hot.text();
      EXPECT_EQ(hot.admitted(), 100) << hot.text();
      EXPECT_EQ(hot.errors(), 0) << hot.error();
    }
    for (auto& node : nodes) EXPECT_TRUE(node->store->unsynced_charges().is_synced());
    EXPECT_EQ(nodes[0]->limiter->peek(key, hundred_)->remaining, 0);
    EXPECT_EQ(nodes[1]->limiter->peek(key + "7", hundred_)->remaining, 97) << "each node has charged one";
  }
}

// Redis lacks charges of a server that still writes back. The test plays that server: it writes its heartbeats.
TEST_F(FleetSeam, AServerThatStartsWaitsUntilTheOthersHaveWrittenBack) {
  const auto beat = [&](std::string_view says) {
    const auto time = redis({"TIME"});
    redis({"HSET", fleet::own_key("weir:", "nodes"), "other",
           time.items[0].text + "000 " + std::string(says) + " weir=1 host=other"});
  };
  beat("sync=0");
  fleet::FleetStoreOptions options = with_deadline(kLong);
  options.membership.believed = kOrderOfMagnitude;
  Node node(url(), options);
  ASSERT_TRUE(until([&] { return node.store->background().membership().has_joined(); }));
  EXPECT_EQ(node.store->rank().nodes, 2u);
  EXPECT_EQ(admitted(node, "k", 150), 50) << "its part, and no more";
  EXPECT_FALSE(node.store->background().is_strict());
  ASSERT_TRUE(until([&] {
    beat("sync=1");
    return is_strict(node);
  }));
  EXPECT_EQ(admitted(node, "k", 150), 50) << "Redis decides alone";
}

// A server that starts finds nobody, and the others return a moment later.
TEST_F(FleetSeam, AServerThatStartsLooksForOthersThatReturnLater) {
  fleet::FleetStoreOptions options = with_deadline(kLong);
  options.membership.believed = kOrderOfMagnitude;
  Node node(url(), options);
  ASSERT_TRUE(until([&] { return is_strict(node); })) << "it is alone";
  EXPECT_EQ(admitted(node, "k", 10), 10);
  const auto time = redis({"TIME"});
  redis({"HSET", fleet::own_key("weir:", "nodes"), "other", time.items[0].text + "000 sync=0 weir=1 host=other"});
  ASSERT_TRUE(until([&] { return !is_strict(node); }));
  EXPECT_EQ(admitted(node, "k", 150), 45) << "its part of what was left";
}

TEST_F(FleetSeam, TwoOutagesInARowAdmitTheLimitOnce) {
  auto nodes = make_nodes(1, proxied(), with_deadline(kLong));
  int all = 0;
  for (int round = 0; round < 3; ++round) {
    cut_off();
    ASSERT_TRUE(waits_for(nodes, false));
    all += admitted(*nodes[0], "k", 40);
    proxy_->set({});
    ASSERT_TRUE(waits_for(nodes, true));
    all += admitted(*nodes[0], "k", 5);
  }
  all += admitted(*nodes[0], "k", 100);
  EXPECT_EQ(all, 100);
}

// A denial under the lower version means only that its whole capacity is used. Nodes must not use the lower version in
// an outage or for a write-back.
TEST_F(FleetSeam, ALowerVersionOfALimitFreesNothing) {
  const Limit forty = limit_of("40/year", Algorithm::fixed_window);
  auto nodes = make_nodes(1, proxied(), with_deadline(kLong));
  Limiter& limiter = *nodes[0]->limiter;
  EXPECT_EQ(admitted(*nodes[0], "k", 1, 70), 1);
  EXPECT_FALSE(limiter.check("k", forty)->allowed);
  cut_off();
  ASSERT_TRUE(waits_for(nodes, false));
  EXPECT_FALSE(limiter.check("k", forty)->allowed);
  EXPECT_EQ(admitted(*nodes[0], "k", 10), 10);
  proxy_->set({});
  ASSERT_TRUE(waits_for(nodes, true));
  EXPECT_EQ(limiter.peek("k", hundred_)->remaining, 20);
  EXPECT_EQ(admitted(*nodes[0], "k", 100), 20);
}

TEST_F(FleetSeam, AWriteBackHasTheRoomOfTheHighestVersion) {
  const Limit forty = limit_of("40/year", Algorithm::fixed_window);
  Node other(url(), with_deadline(kLong)), node(proxied(), with_deadline(kLong));
  ASSERT_NO_FATAL_FAILURE(cut_one_off(other, node));
  EXPECT_EQ(admitted(node, "k", 1, 10), 1);
  EXPECT_TRUE(node.limiter->check("k", forty, 5)->allowed);
  EXPECT_EQ(admitted(other, "k", 1, 60), 1);
  proxy_->set({});
  ASSERT_TRUE(until([&] { return is_strict(node); }));
  EXPECT_EQ(other.limiter->peek("k", hundred_)->remaining, 25);
}

// Redis counts what was admitted in an outage also beyond the limit, so that a refund does not free it.
TEST_F(FleetSeam, AWriteBackCountsAboveAFullLimit) {
  Node other(url(), with_deadline(kLong)), node(proxied(), with_deadline(kLong));
  ASSERT_NO_FATAL_FAILURE(cut_one_off(other, node));
  EXPECT_EQ(admitted(node, "k", 20), 20);
  const Charge all{.key = "k", .limit = &hundred_, .cost = 100}, none{.key = "k", .limit = &hundred_, .cost = 0};
  ASSERT_TRUE(other.limiter->reserve({&all, 1}, {.id = "all"}));
  proxy_->set({});
  ASSERT_TRUE(until([&] { return is_strict(node); }));
  ASSERT_TRUE(other.limiter->commit("all", {&none, 1}));
  EXPECT_EQ(admitted(other, "k", 200), 80);
}

// Redis stops in the middle of calls, and may have charged them or not. A server that stops then saves these charges.
TEST_F(FleetSeam, AServerThatStopsKeepsChargesInDoubt) {
  auto nodes = make_nodes(1, url(), with_deadline(Micros{40'000}));
  EXPECT_TRUE(until([&] { return admitted(*nodes[0], "k", 1) == 1; }));
  EXPECT_TRUE(until([&] { return is_synced(*nodes[0]); })) << "on a busy machine the first reply was late";
  server_->pause();
  Tally tally;
  for (int i = 0; i < 10; ++i) ask(*nodes[0], "k", hundred_, tally);
  EXPECT_EQ(tally.admitted(), 10) << tally.text();
  const fleet::SavedFleetState kept = nodes[0]->store->close();
  std::int64_t all = 0;
  for (const fleet::UnsyncedCharge& charge : kept.charges) all += charge.cost;
  EXPECT_EQ(all, 10);
  server_->resume();
}

// Redis charges, but answers too late. After the reply the charge is synced, and the node knows what is used.
TEST_F(FleetSeam, ALateReplyIsRemembered) {
  auto nodes = make_nodes(1, proxied(), with_deadline(Micros{100'000}));
  ASSERT_TRUE(until([&] { return admitted(*nodes[0], "k", 1, 10) == 1; }));
  proxy_->set({.replies = {.delay = Micros{150'000}}});
  Tally tally;
  EXPECT_TRUE(ask(*nodes[0], "k", hundred_, tally));
  EXPECT_EQ(tally.admitted(DecidedBy::local), 1) << tally.text();
  EXPECT_TRUE(until([&] { return nodes[0]->store->unsynced_charges().is_synced(); })) << "the reply has come";
  cut_off();
  ASSERT_TRUE(waits_for(nodes, false));
  EXPECT_EQ(admitted(*nodes[0], "k", 200), 89);
}

// Redis keeps nothing on disk here.
TEST_F(FleetSeam, ARedisThatLostItsDataAdmitsTheLimitOnceMore) {
  auto nodes = make_nodes(2, url(), with_deadline(kLong));
  int all = admitted(*nodes[0], "k", 60) + admitted(*nodes[1], "k", 60);
  EXPECT_EQ(all, 100);
  server_->kill();
  ASSERT_TRUE(waits_for(nodes, false));
  for (auto& node : nodes) all += admitted(*node, "k", 60);
  const int away = all - 100;
  EXPECT_LE(away, 20) << "node 0 last heard that 40 are left";
  ASSERT_TRUE(server_->restart());
  ASSERT_TRUE(waits_for(nodes, true));
  for (auto& node : nodes) all += admitted(*node, "k", 120);
  EXPECT_EQ(all, 200) << "what was admitted meanwhile is written back";
}

// A killed server cannot write its unsynced charges back, nor save them.
TEST_F(FleetSeam, TheUnsyncedChargesOfAKilledServerAreAdmittedOnceMore) {
  auto nodes = make_nodes(1, proxied(), with_deadline(kLong));
  EXPECT_EQ(admitted(*nodes[0], "k", 50), 50);
  cut_off();
  ASSERT_TRUE(waits_for(nodes, false));
  EXPECT_EQ(admitted(*nodes[0], "k", 10), 10);
  nodes.clear();
  proxy_->set({});
  Node next(proxied(), with_deadline(kLong));
  ASSERT_TRUE(until([&] { return is_strict(next); }));
  EXPECT_EQ(admitted(next, "k", 100), 50);
}

// A ratio, not a speed: after each few batches the node rests for as long as they took.
TEST_F(FleetSeam, WriteBacksLeaveRedisHalfOfItsTime) {
  auto nodes = make_nodes(1, url(), with_pauses());
  server_->pause();
  Tally tally;
  ASSERT_TRUE(until([&] {
    ask(*nodes[0], "k", hundred_, tally);
    return !is_strict(*nodes[0]) && tally.asked(DecidedBy::local) > 3;
  }));
  for (int i = 0; i < 30'000; ++i) ask(*nodes[0], "k" + std::to_string(i), hundred_, tally);
  const auto busy_us = [&] {
    const std::string stats = redis({"INFO", "commandstats"}).text;
    const std::size_t at = stats.find("usec=", stats.find("cmdstat_evalsha:"));
    return at == std::string::npos ? 0 : std::strtoll(stats.c_str() + at + 5, nullptr, 10);
  };
  server_->resume();
  ASSERT_TRUE(until([&] { return nodes[0]->store->write_backs().written() > 0; }));
  const Micros began = redis::steady_now();
  const std::int64_t before = busy_us();
  ASSERT_TRUE(until([&] { return nodes[0]->store->unsynced_charges().is_synced(); }));
  const std::int64_t busy = busy_us() - before, took = (redis::steady_now() - began).count();
  EXPECT_GT(busy, 0);
  EXPECT_LE(busy, took * 11 / 20) << "us of " << took;
}

// The bound is 100,000 keys; here it is ten.
TEST_F(FleetSeam, BeyondTheBoundOfUnsyncedKeysChargesAreOnlyCounted) {
  EXPECT_EQ(fleet::FleetStoreOptions{}.unsynced_keys, 100'000u);
  fleet::FleetStoreOptions options = with_deadline(kLong);
  options.unsynced_keys = 10;
  auto nodes = make_nodes(1, proxied(), options);
  cut_off();
  ASSERT_TRUE(waits_for(nodes, false));
  for (int i = 0; i < 25; ++i) EXPECT_EQ(admitted(*nodes[0], "k" + std::to_string(i), 1, 60), 1);
  EXPECT_EQ(nodes[0]->store->unsynced_charges().dropped_permits(), 15u * 60);
  proxy_->set({});
  ASSERT_TRUE(waits_for(nodes, true));
  int whole = 0;
  for (int i = 0; i < 25; ++i) {
    const std::int64_t left = nodes[0]->limiter->peek("k" + std::to_string(i), hundred_)->remaining;
    EXPECT_TRUE(left == 40 || left == 100) << left;
    whole += left == 100 ? 1 : 0;
  }
  EXPECT_EQ(whole, 15) << "their charges were dropped";
}

// A pipeline with capacity for two requests: most checks cannot be sent, though Redis is available.
TEST_F(FleetSeam, ACrowdedPipelineAdmitsTheLimit) {
  auto nodes = make_nodes(1, url(), with_requests(2));
  for (int round = 0; round < 4; ++round) {
    const std::string key = "k" + std::to_string(round);
    Tally tally;
    on_threads(12, [&](int) {
      for (int k = 0; k < 100; ++k) ask(*nodes[0], key, hundred_, tally);
    });
    EXPECT_LE(tally.admitted(), 100) << tally.text();
    EXPECT_GT(tally.asked(DecidedBy::local) + tally.asked(DecidedBy::overloaded), 0) << tally.text();
    EXPECT_TRUE(until([&] { return nodes[0]->store->unsynced_charges().is_synced(); }));
    EXPECT_EQ(nodes[0]->limiter->peek(key, hundred_)->remaining, 100 - tally.admitted());
    while (ask(*nodes[0], key, hundred_, tally)) {
    }
    EXPECT_EQ(tally.admitted(), 100) << "later checks get the rest";
  }
}

// While the node can send nothing, a retry, or a reservation whose id is in use, is charged nothing.
TEST_F(FleetSeam, ARetryThatCannotBeSentIsNotChargedAgain) {
  Node node(url(), with_requests(0));
  const Charge five{.key = "k", .limit = &hundred_, .cost = 5};
  for (int i = 0; i < 3; ++i) {
    const auto once = node.limiter->check_once("id", {&five, 1});
    ASSERT_TRUE(once) << once.error().message;
    EXPECT_EQ(once->repeated, i > 0);
    EXPECT_EQ(node.limiter->reserve({&five, 1}, {.id = "one"}).has_value(), i == 0);
  }
  std::int64_t all = 0;
  for (const fleet::UnsyncedCharge& charge : node.store->close().charges) all += charge.cost;
  EXPECT_EQ(all, 10);
}

TEST_F(FleetSeam, ACheckThatCannotBeSentFollowsItsRule) {
  Node node(url(), with_requests(0));
  Tally closed, open;
  for (int i = 0; i < 10; ++i) {
    ask(node, "closed", hundred_, closed, Fallback::closed);
    ask(node, "open", hundred_, open, Fallback::open);
  }
  EXPECT_EQ(closed.asked(DecidedBy::closed), 10) << closed.text();
  EXPECT_EQ(closed.admitted(), 0);
  EXPECT_EQ(open.admitted(DecidedBy::open), 10) << open.text();
}

}  // namespace
}  // namespace weir::test
