// What a fleet does when its Redis is killed, paused, slow or cut off: faults F01 to F06, F11 and F38 of
// docs/guarantees.md, with real servers of Redis and a proxy that delays or drops what passes.
//
// For every fault: admitted requests stay within the bound, every answer states how it was decided, no request waits
// long, and Redis decides again afterwards. These tests print times, and check only bounds that a busy machine keeps.
// tests/server/fleet_fault*_long.sh check the times of docs/guarantees.md. Failovers are in
// fleet_faults_failover_test.cc, refusals in fleet_faults_refusals_test.cc, what is settled later in
// fleet_faults_settle_test.cc.

#include "fleet_faults.h"
#include "fleet/own_turn.h"

namespace weir::test {
namespace {

// F01. The bounds of all three policies, and how each node states that it decided.
TEST_F(FleetFaults, EachPolicyBridgesAKilledRedisAndChargesAreWrittenBack) {
  auto nodes = make_nodes(3, url(), with_deadline(kLong));
  const Limit few = limit_of("2/year", Algorithm::sliding_log);
  server_->kill();
  Tally local, of_few, open, closed;
  for (int i = 0; i < 40; ++i) {
    for (auto& node : nodes) {
      ask(*node, "local", thirty_, local);
      ask(*node, "few", few, of_few);
      ask(*node, "open", thirty_, open, Fallback::open);
      ask(*node, "closed", thirty_, closed, Fallback::closed);
    }
  }
  EXPECT_EQ(local.asked(DecidedBy::local), 120) << local.text();
  EXPECT_EQ(open.asked(DecidedBy::open), 120) << open.text();
  EXPECT_EQ(closed.asked(DecidedBy::closed), 120) << closed.text();
  EXPECT_EQ(local.admitted(), 30) << "the limit";
  EXPECT_EQ(of_few.admitted(), 3) << "as many as nodes, where that is more";
  EXPECT_EQ(open.admitted(), 90) << "the limit, on each of three nodes";
  EXPECT_EQ(closed.admitted(), 0);
  EXPECT_LT(local.longest(), kOrderOfMagnitude);

  ASSERT_TRUE(server_->restart());
  tell("F01 all nodes ask Redis again after " + std::to_string(back(nodes)) +
       " ms; while it was down: " + local.text());
  EXPECT_TRUE(until([&] { return synced_permits(nodes) == 30 + 3 + 90; })) << synced_permits(nodes);
  Tally after;
  for (auto& node : nodes) {
    EXPECT_FALSE(ask(*node, "local", thirty_, after));
    EXPECT_FALSE(ask(*node, "open", thirty_, after));
    EXPECT_TRUE(ask(*node, "closed", thirty_, after)) << "nothing was charged";
  }
  EXPECT_EQ(after.asked(DecidedBy::local), 0) << after.text();
}

// F01. Every request gets an answer. The nodes admit what Redis granted, again what it lost when it was killed, and
// their shares.
TEST_F(FleetFaults, EveryRequestIsAnsweredWhileRedisIsKilledAgainAndAgain) {
  auto nodes = make_nodes(3, url(), with_deadline(kLong));
  Tally tally;
  {
    Asking asking(nodes, [&](Node& node) { ask(node, "k", thirty_, tally); });
    for (int round = 0; round < 3; ++round) {
      ASSERT_TRUE(
          until([&] { return tally.asked(DecidedBy::strict) + tally.asked(DecidedBy::cached) > 50 * (round + 1); }));
      server_->kill();
      const int before = tally.asked();
      EXPECT_TRUE(until([&] { return tally.asked() > before + 200; })) << tally.text();
      ASSERT_TRUE(server_->restart());
      for (auto& node : nodes) EXPECT_TRUE(until([&] { return is_strict(*node); }));
    }
  }
  EXPECT_EQ(tally.errors(), 0) << tally.error();
  EXPECT_LE(tally.admitted(DecidedBy::strict), 4 * 30) << "it forgets, when it is killed";
  EXPECT_LE(tally.admitted(DecidedBy::local), 3 * 30) << "the limit while Redis is unavailable";
  EXPECT_LT(tally.longest(), kOrderOfMagnitude);
  tell("F01 three times: " + tally.text());
}

// F01. A Redis that comes back empty knows no node. After the first heartbeat it knows one, though there are three.
TEST_F(FleetFaults, NodesKnowEachOtherThoughRedisLostItsData) {
  auto nodes = make_nodes(3, url(), with_deadline(kLong));
  for (int round = 0; round < 3; ++round) {
    server_->kill();
    ASSERT_TRUE(server_->restart());
    EXPECT_TRUE(until([&] {
      for (auto& node : nodes) {
        EXPECT_EQ(node->store->rank().nodes, 3U);
        if (!is_strict(*node)) return false;
      }
      return true;
    }));
  }
}

// F02. A call that Redis reads after its deadline charges nothing: what is used afterwards was admitted.
TEST_F(FleetFaults, APausedRedisChargesNoLateCall) {
  auto nodes = make_nodes(3, url(), with_pauses());
  Tally before, during;
  ask_all(nodes, 5, "k", thousand_, before);
  ASSERT_EQ(before.admitted(DecidedBy::strict), 15) << before.text();
  server_->pause();
  const Micros paused = redis::steady_now();
  on_threads(12, [&](std::size_t thread) { ask(*nodes[thread % 3], "k", thousand_, during); });
  ask_all(nodes, 50, "k", thousand_, during);
  EXPECT_EQ(during.asked(DecidedBy::local), 12 + 150) << during.text();
  EXPECT_LT(during.longest(), kOrderOfMagnitude);
  // Nodes may have closed connections before the deadline, and what Redis reads before the deadline is in time.
  std::this_thread::sleep_for(paused + during.longest() + kLong + Micros{100'000} - redis::steady_now());
  server_->resume();
  const std::int64_t ms = back(nodes);
  EXPECT_TRUE(until([&] { return synced_permits(nodes) == static_cast<std::uint64_t>(during.admitted()); }));
  EXPECT_EQ(nodes[0]->limiter->peek("k", thousand_)->remaining, 1'000 - 15 - during.admitted())
      << "a call was charged after its deadline";
  tell("F02 back after " + std::to_string(ms) + " ms; meanwhile " + during.text());
}

// F02. Only a bounded number of requests waits for a Redis that does not answer; the others are decided at once.
TEST_F(FleetFaults, ABoundedNumberOfRequestsWaitsForAPausedRedis) {
  constexpr Micros kDeadline{4'000'000};  // far longer than a busy machine keeps a thread from running
  fleet::FleetStoreOptions options = with_deadline(kDeadline);
  options.pipeline.requests_max = 4;
  auto nodes = make_nodes(1, url(), options);
  server_->pause();
  std::atomic<int> slow{0};
  Tally tally;
  on_threads(24, [&](int) {
    const Micros began = redis::steady_now();
    ask(*nodes[0], "k", thousand_, tally);
    if (redis::steady_now() - began > kDeadline * 9 / 10) ++slow;
  });
  server_->resume();
  EXPECT_LE(slow, 4);
  EXPECT_EQ(tally.asked(DecidedBy::local) + tally.asked(DecidedBy::overloaded), 24) << tally.text();
}

// F03. If Redis is slower than the deadline, nodes decide alone when the deadline has passed; else they wait for Redis.
TEST_F(FleetFaults, RequestsWaitForASlowRedisUntilTheDeadline) {
  fleet::FleetStoreOptions others = with_deadline(Micros{10'000'000});
  others.pipeline.prefix = "others:";
  auto patient = make_nodes(1, proxied(), others);
  auto hurried = make_nodes(1, proxied(), with_deadline(Micros{15'000}));
  for (const int ms : {5, 25}) {
    proxy_->set({.replies = {.delay = Micros{ms * 1'000}}});
    Tally tally;
    for (int i = 0; i < 10; ++i) ask(*patient[0], "k", thousand_, tally);
    EXPECT_EQ(tally.asked(DecidedBy::strict), 10) << tally.text();
  }
  for (const int ms : {250, 1'000}) {  // far more than the deadline, since a busy machine may be late, too
    proxy_->set({.replies = {.delay = Micros{ms * 1'000}}});
    Tally tally;
    for (int i = 0; i < 200; ++i) ask(*hurried[0], "h", thousand_, tally);
    EXPECT_GE(tally.asked(DecidedBy::local), 150) << "the others came in time on a busy machine: " << tally.text();
    EXPECT_EQ(tally.errors(), 0) << tally.error();
    EXPECT_LT(tally.longest(), kOrderOfMagnitude);
    tell("F03 replies after " + std::to_string(ms) + " ms: " + tally.text());
  }
  proxy_->set({});
  tell("F03 back after " + std::to_string(back(hurried)) + " ms");
}

// F03. One reply in a hundred takes half a second, and those behind it on the connection with it.
TEST_F(FleetFaults, AFewSlowRepliesDoNotHoldUpTheOthers) {
  auto nodes = make_nodes(2, proxied(), with_deadline(Micros{15'000}));
  proxy_->set({.replies = {.slow_one_in = 100, .slow = Micros{500'000}}});
  Tally tally;
  {
    Asking asking(nodes, [&](Node& node) { ask(node, "k", thousand_, tally); });
    std::this_thread::sleep_for(std::chrono::milliseconds{1'500});
  }
  EXPECT_EQ(tally.errors(), 0) << tally.error();
  EXPECT_LE(tally.admitted(), 2'000);
  EXPECT_LT(tally.longest(), kOrderOfMagnitude);
  tell("F03 one reply of 100 half a second late: " + tally.text());
}

// F03. Replies in halves and bytes are replies.
TEST_F(FleetFaults, AnswersInSmallPiecesAreAnswers) {
  auto nodes = make_nodes(2, proxied(), with_deadline(Micros{10'000'000}));
  proxy_->set({.requests = {.piece_max = 7}, .replies = {.delay = Micros{200}, .piece_max = 3}});
  Tally tally;
  ask_all(nodes, 20, "k", thirty_, tally);
  EXPECT_EQ(tally.errors(), 0) << tally.error();
  EXPECT_EQ(tally.admitted(DecidedBy::strict), 30) << tally.text();
  EXPECT_EQ(tally.asked(DecidedBy::local), 0);
}

// F04. The network drops everything silently: requests end at their deadline, and nodes close silent connections.
TEST_F(FleetFaults, TheDeadlineFindsASilentPartitionAndNodesConnectAgain) {
  auto nodes = make_nodes(2, proxied(), with_deadline(Micros{50'000}));
  proxy_->set({.requests = {.is_stalled = true}, .replies = {.is_stalled = true}});
  const Micros began = redis::steady_now();
  Tally tally;
  expect_shares_until_connections_end(nodes, tally);
  const auto noticed = (redis::steady_now() - began).count() / 1'000;
  proxy_->set({});
  const std::int64_t ms = back(nodes);
  EXPECT_TRUE(until([&] { return synced_permits(nodes) == 30; })) << synced_permits(nodes);
  EXPECT_FALSE(ask(*nodes[0], "k", thirty_, tally));
  tell("F04 connections given up after " + std::to_string(noticed) + " ms, back after " + std::to_string(ms) + " ms; " +
       tally.text());
}

// F04. Requests arrive and replies do not: Redis has charged them, and no permit is granted twice.
TEST_F(FleetFaults, LostRepliesGrantNoPermitTwice) {
  auto nodes = make_nodes(2, proxied(), with_deadline(Micros{100'000}));
  proxy_->set({.replies = {.is_dropped = true}});
  Tally tally;
  expect_shares_until_connections_end(nodes, tally);
  proxy_->set({});
  back(nodes);
  EXPECT_TRUE(until([&] { return synced_permits(nodes) == 30; })) << synced_permits(nodes);
  EXPECT_FALSE(ask(*nodes[0], "k", thirty_, tally));
  EXPECT_FALSE(ask(*nodes[1], "k", thirty_, tally));
}

// F05. One node is cut off, the other is not: together they admit the limit and the share of the first.
TEST_F(FleetFaults, ANodeThatIsCutOffDecidesByItsShareWhileTheOtherAsksRedis) {
  std::vector<std::unique_ptr<Node>> nodes;
  nodes.push_back(std::make_unique<Node>(proxied(), with_deadline(Micros{100'000})));
  nodes.push_back(std::make_unique<Node>(url(), with_deadline(kLong)));
  for (auto& node : nodes) {
    ASSERT_TRUE(until([&] { return is_strict(*node) && node->store->rank().nodes == 2; }));
  }
  proxy_->set({.requests = {.is_stalled = true}, .replies = {.is_stalled = true}});
  Tally lonely, well;
  for (int i = 0; i < 40; ++i) {
    ask(*nodes[0], "k", thirty_, lonely);
    ask(*nodes[1], "k", thirty_, well);
  }
  EXPECT_EQ(lonely.asked(DecidedBy::local), 40) << lonely.text();
  EXPECT_EQ(well.asked(DecidedBy::local), 0) << well.text();
  EXPECT_EQ(lonely.admitted(), 15);
  EXPECT_EQ(well.admitted(), 30);
  proxy_->set({});
  const std::int64_t ms = back(nodes);
  EXPECT_TRUE(until([&] { return synced_permits(nodes) == 15; })) << synced_permits(nodes);
  tell("F05 back after " + std::to_string(ms) + " ms");
}

// F06, without loss: connections that break again and again.
TEST_F(FleetFaults, ConnectionsThatAreResetAgainAndAgainCauseNoError) {
  auto nodes = make_nodes(2, proxied(), with_deadline(kLong));
  Tally tally;
  {
    Asking asking(nodes, [&](Node& node) { ask(node, "k", thirty_, tally); });
    for (int i = 0; i < 10; ++i) {
      const int connected = nodes[0]->connected;
      proxy_->cut();
      EXPECT_TRUE(until([&] { return nodes[0]->connected > connected && is_strict(*nodes[0]); }));
    }
  }
  EXPECT_EQ(tally.errors(), 0) << tally.error();
  EXPECT_LE(tally.admitted(DecidedBy::strict), 30);
  EXPECT_LE(tally.admitted(), 2 * 30) << tally.text();
  back(nodes);
  tell("F06 ten resets: " + tally.text());
}

// F38. Many nodes lose Redis at once, and their attempts to connect are spread over time.
TEST_F(FleetFaults, NodesThatLoseRedisTogetherDoNotReconnectTogether) {
  constexpr std::size_t kNodes = 30;
  fleet::FleetStoreOptions options = with_deadline(kLong);
  std::vector<std::unique_ptr<Node>> nodes;
  for (std::size_t i = 0; i < kNodes; ++i) nodes.push_back(std::make_unique<Node>(proxied(), options));
  back(nodes);
  for (auto& node : nodes) EXPECT_TRUE(until([&] { return node->store->nodes() == kNodes; })) << "they know each other";
  cut_off();
  const Micros cut = redis::steady_now();
  const auto dials = [&] { return proxy_->arrivals().size() - kNodes; };
  EXPECT_TRUE(until([&] { return dials() >= 2 * kNodes; })) << "they try to connect again and again";
  const std::size_t refused = dials();
  const auto periods = static_cast<std::size_t>((redis::steady_now() - cut) / fleet::kTurnPeriod);
  proxy_->set({});
  back(nodes);
  const std::vector<Micros> times = proxy_->arrivals();
  // A node tries at once after a loss, and then in its own part of each period.
  EXPECT_LE(refused, kNodes * (periods + 3)) << "in " << periods << " periods";
  tell("F38 " + std::to_string(refused) + " dials of " + std::to_string(kNodes) + " nodes in " +
       std::to_string(periods) + " periods; back over " +
       std::to_string((times.back() - times[kNodes + refused]).count() / 1'000) + " ms");
}

// F11. Nodes load the script again, once for each connection, and no client notices.
TEST_F(FleetFaults, AFlushedScriptIsLoadedAgainUnnoticed) {
  auto nodes = make_nodes(3, url(), with_deadline(Micros{10'000'000}));
  const auto loads = [&] {
    const std::string stats = redis({"INFO", "commandstats"}).text;
    const std::size_t at = stats.find("cmdstat_script|load:calls=");
    return at == stats.npos ? 0 : std::stoi(stats.substr(at + 26));
  };
  const int before = loads();
  Tally tally;
  {
    Asking asking(nodes, [&](Node& node) { ask(node, "k", thirty_, tally); });
    for (int i = 0; i < 5; ++i) {
      const int asked = tally.asked(DecidedBy::strict);
      redis({"SCRIPT", "FLUSH"});
      nodes[0]->limiter->reset("k");  // else cached denials would answer
      EXPECT_TRUE(until([&] { return tally.asked(DecidedBy::strict) > asked + 30; })) << tally.text();
    }
  }
  EXPECT_EQ(tally.errors(), 0) << tally.error();
  EXPECT_EQ(tally.asked(DecidedBy::local), 0) << tally.text();
  EXPECT_LE(tally.admitted(), 6 * 30) << "it was reset five times";
  if (redis_major_version() >= 7) {
    EXPECT_LE(loads() - before, 5 * 3 * 2) << "two scripts on each node's connection";
  }
  tell("F11 five flushes, " + std::to_string(loads() - before) + " loads; " + tally.text());
}

}  // namespace
}  // namespace weir::test
