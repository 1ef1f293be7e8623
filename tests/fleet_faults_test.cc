// What a fleet does when its Redis is killed, paused, slow or cut off: faults F01 to F06, F11 and F38 of
// docs/guarantees.md, by real servers of Redis and a proxy that makes the weather.
//
// For every fault: what is let through stays within its bound, every answer says how it was made, nobody waits for
// long, and Redis decides again afterwards. Times are only told, or held to bounds that a busy machine keeps; those
// of docs/guarantees.md are held by tests/server/fleet_fault*_long.sh. Failovers are in fleet_faults_failover_test.cc,
// refusals in fleet_faults_refusals_test.cc, what is settled later in fleet_faults_settle_test.cc.

#include "fleet_faults.h"
#include "fleet/own_turn.h"

namespace weir::test {
namespace {

// F01. The bounds of all three policies, and what each node says of how it decided.
TEST_F(FleetFaults, AKilledRedisIsBridgedByEachPolicyAndPaidBack) {
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
       " ms; while it was away: " + local.text());
  EXPECT_TRUE(until([&] { return synced_permits(nodes) == 30 + 3 + 90; })) << synced_permits(nodes);
  Tally after;
  for (auto& node : nodes) {
    EXPECT_FALSE(ask(*node, "local", thirty_, after));
    EXPECT_FALSE(ask(*node, "open", thirty_, after));
    EXPECT_TRUE(ask(*node, "closed", thirty_, after)) << "nothing was charged";
  }
  EXPECT_EQ(after.asked(DecidedBy::local), 0) << after.text();
}

// F01. Who asks all the time is answered all the time, and what is let through in all is what Redis granted, what it
// forgot when it was killed, and the shares.
TEST_F(FleetFaults, NobodyIsRefusedWhileRedisIsKilledAndComesBackAgainAndAgain) {
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

// F01. A Redis that comes back empty knows nobody: that it has heard of one node does not mean that there is one.
TEST_F(FleetFaults, NodesAreStillKnownWhenRedisHasForgottenThem) {
  std::vector<std::unique_ptr<Node>> nodes;
  FleetStoreOptions options = with_deadline(kLong);
  nodes = make_nodes(3, url(), options);
  for (int round = 0; round < 3; ++round) {
    server_->kill();
    ASSERT_TRUE(server_->restart());
    EXPECT_TRUE(until([&] {
      for (auto& node : nodes) {
        EXPECT_EQ(node->store->seat().nodes, 3U);
        if (!is_strict(*node)) return false;
      }
      return true;
    }));
  }
}

// F02. What Redis reads after its deadline charges nothing: all that is spent afterwards was granted to somebody.
TEST_F(FleetFaults, APausedRedisChargesNobodyLate) {
  auto nodes = make_nodes(3, url(), with_deadline(kLong));
  Tally before, during;
  for (auto& node : nodes) {
    for (int i = 0; i < 5; ++i) ask(*node, "k", thousand_, before);
  }
  ASSERT_EQ(before.admitted(DecidedBy::strict), 15) << before.text();
  server_->pause();
  const Micros paused = redis::steady_now();
  std::vector<std::thread> threads;
  for (int i = 0; i < 12; ++i) {
    threads.emplace_back([&, i] { ask(*nodes[static_cast<std::size_t>(i) % 3], "k", thousand_, during); });
  }
  for (std::thread& thread : threads) thread.join();
  for (int i = 0; i < 50; ++i) {
    for (auto& node : nodes) ask(*node, "k", thousand_, during);
  }
  EXPECT_EQ(during.asked(DecidedBy::local), 12 + 150) << during.text();
  EXPECT_LT(during.longest(), kOrderOfMagnitude);
  // Connections may have been given up before the deadline, and what Redis reads before that is in time.
  std::this_thread::sleep_for(paused + during.longest() + kLong + Micros{100'000} - redis::steady_now());
  server_->resume();
  const std::int64_t ms = back(nodes);
  EXPECT_TRUE(until([&] { return synced_permits(nodes) == static_cast<std::uint64_t>(during.admitted()); }));
  EXPECT_EQ(nodes[0]->limiter->peek("k", thousand_)->remaining, 1'000 - 15 - during.admitted())
      << "somebody was charged who had gone";
  tell("F02 back after " + std::to_string(ms) + " ms; meanwhile " + during.text());
}

// F02. However many ask, only so many wait for a Redis that does not answer; the others go on at once.
TEST_F(FleetFaults, OnlySoManyWaitForAPausedRedis) {
  constexpr Micros kDeadline{4'000'000};  // far longer than a busy machine keeps a thread from running
  FleetStoreOptions options = with_deadline(kDeadline);
  options.lane.asks_max = 4;
  auto nodes = make_nodes(1, url(), options);
  server_->pause();
  std::atomic<int> slow{0};
  Tally tally;
  std::vector<std::thread> threads;
  for (int i = 0; i < 24; ++i) {
    threads.emplace_back([&] {
      const Micros began = redis::steady_now();
      ask(*nodes[0], "k", thousand_, tally);
      if (redis::steady_now() - began > kDeadline * 9 / 10) ++slow;
    });
  }
  for (std::thread& thread : threads) thread.join();
  server_->resume();
  EXPECT_LE(slow, 4);
  EXPECT_EQ(tally.asked(DecidedBy::local) + tally.asked(DecidedBy::overloaded), 24) << tally.text();
}

// F03. Slower than the deadline is as good as gone, but nobody waits longer than that; faster is only slow.
TEST_F(FleetFaults, ASlowRedisIsWaitedForAsLongAsTheDeadlineAndNoLonger) {
  FleetStoreOptions others = with_deadline(Micros{10'000'000});
  others.lane.prefix = "others:";
  auto patient = make_nodes(1, proxied(), others);
  auto hurried = make_nodes(1, proxied(), with_deadline(Micros{15'000}));
  for (const int ms : {5, 25}) {
    proxy_->set({.replies = {.delay = Micros{ms * 1'000}}});
    Tally tally;
    for (int i = 0; i < 10; ++i) ask(*patient[0], "k", thousand_, tally);
    EXPECT_EQ(tally.asked(DecidedBy::strict), 10) << tally.text();
  }
  for (const int ms : {250, 1'000}) {  // far more than the deadline, as a busy machine makes little of much
    proxy_->set({.replies = {.delay = Micros{ms * 1'000}}});
    Tally tally;
    for (int i = 0; i < 200; ++i) ask(*hurried[0], "h", thousand_, tally);
    EXPECT_GE(tally.asked(DecidedBy::local), 150) << "but for what a busy machine let come late: " << tally.text();
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
  for (int i = 0; i < 20; ++i) {
    for (auto& node : nodes) ask(*node, "k", thirty_, tally);
  }
  EXPECT_EQ(tally.errors(), 0) << tally.error();
  EXPECT_EQ(tally.admitted(DecidedBy::strict), 30) << tally.text();
  EXPECT_EQ(tally.asked(DecidedBy::local), 0);
}

// F04. Nothing comes and nothing goes, and nobody says so: the deadline finds out, and silence ends the connection.
TEST_F(FleetFaults, ASilentPartitionIsFoundByTheDeadlineAndTheConnectionMadeAnew) {
  auto nodes = make_nodes(2, proxied(), with_deadline(Micros{50'000}));
  proxy_->set({.requests = {.is_stalled = true}, .replies = {.is_stalled = true}});
  const Micros began = redis::steady_now();
  Tally tally;
  for (int i = 0; i < 40; ++i) {
    for (auto& node : nodes) ask(*node, "k", thirty_, tally);
  }
  EXPECT_EQ(tally.asked(DecidedBy::local), 80) << tally.text();
  EXPECT_EQ(tally.admitted(), 30);
  for (auto& node : nodes) EXPECT_TRUE(until([&] { return node->lost > 0; })) << "the connection is dead";
  const auto noticed = (redis::steady_now() - began).count() / 1'000;
  proxy_->set({});
  const std::int64_t ms = back(nodes);
  EXPECT_TRUE(until([&] { return synced_permits(nodes) == 30; })) << synced_permits(nodes);
  EXPECT_FALSE(ask(*nodes[0], "k", thirty_, tally));
  tell("F04 connections given up after " + std::to_string(noticed) + " ms, back after " + std::to_string(ms) + " ms; " +
       tally.text());
}

// F04. Requests arrive, answers do not: what Redis has charged for them is charged; nobody is let through for it twice.
TEST_F(FleetFaults, WhenOnlyAnswersAreLostNothingIsGivenAwayTwice) {
  auto nodes = make_nodes(2, proxied(), with_deadline(Micros{100'000}));
  proxy_->set({.replies = {.is_dropped = true}});
  Tally tally;
  for (int i = 0; i < 40; ++i) {
    for (auto& node : nodes) ask(*node, "k", thirty_, tally);
  }
  EXPECT_EQ(tally.asked(DecidedBy::local), 80) << tally.text();
  EXPECT_EQ(tally.admitted(), 30);
  for (auto& node : nodes) EXPECT_TRUE(until([&] { return node->lost > 0; })) << "the connection is dead";
  proxy_->set({});
  back(nodes);
  EXPECT_TRUE(until([&] { return synced_permits(nodes) == 30; })) << synced_permits(nodes);
  EXPECT_FALSE(ask(*nodes[0], "k", thirty_, tally));
  EXPECT_FALSE(ask(*nodes[1], "k", thirty_, tally));
}

// F05. One node is cut off, the other is not: together they let through the limit and the share of the lonely one.
TEST_F(FleetFaults, ANodeThatIsCutOffHasItsShareWhileTheOtherAsksRedis) {
  std::vector<std::unique_ptr<Node>> nodes;
  nodes.push_back(std::make_unique<Node>(proxied(), with_deadline(Micros{100'000})));
  nodes.push_back(std::make_unique<Node>(url(), with_deadline(kLong)));
  for (auto& node : nodes) {
    ASSERT_TRUE(until([&] { return is_strict(*node) && node->store->seat().nodes == 2; }));
  }
  proxy_->set({.requests = {.is_stalled = true}, .replies = {.is_stalled = true}});
  Tally cut_off, well;
  for (int i = 0; i < 40; ++i) {
    ask(*nodes[0], "k", thirty_, cut_off);
    ask(*nodes[1], "k", thirty_, well);
  }
  EXPECT_EQ(cut_off.asked(DecidedBy::local), 40) << cut_off.text();
  EXPECT_EQ(well.asked(DecidedBy::local), 0) << well.text();
  EXPECT_EQ(cut_off.admitted(), 15);
  EXPECT_EQ(well.admitted(), 30);
  proxy_->set({});
  const std::int64_t ms = back(nodes);
  EXPECT_TRUE(until([&] { return synced_permits(nodes) == 15; })) << synced_permits(nodes);
  tell("F05 back after " + std::to_string(ms) + " ms");
}

// F06, without loss: connections that break again and again.
TEST_F(FleetFaults, ConnectionsThatAreResetAgainAndAgainHurtNobody) {
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

// F38. Many nodes lose Redis at once, and do not come back in one moment: their dials are spread.
TEST_F(FleetFaults, ManyWhoLostRedisTogetherDoNotComeBackTogether) {
  constexpr std::size_t kNodes = 30;
  FleetStoreOptions options = with_deadline(kLong);
  std::vector<std::unique_ptr<Node>> nodes;
  for (std::size_t i = 0; i < kNodes; ++i) nodes.push_back(std::make_unique<Node>(proxied(), options));
  back(nodes);
  for (auto& node : nodes) EXPECT_TRUE(until([&] { return node->store->nodes() == kNodes; })) << "they know each other";
  proxy_->set({.is_refusing = true});
  proxy_->cut();
  const Micros cut = redis::steady_now();
  const auto dials = [&] { return proxy_->arrivals().size() - kNodes; };
  EXPECT_TRUE(until([&] { return dials() >= 2 * kNodes; })) << "they dial again and again";
  const std::size_t refused = dials();
  const auto periods = static_cast<std::size_t>((redis::steady_now() - cut) / kTurnPeriod);
  proxy_->set({});
  back(nodes);
  const std::vector<Micros> times = proxy_->arrivals();
  // The first dial after a loss comes at once; those that follow have their turn, one in each period.
  EXPECT_LE(refused, kNodes * (periods + 3)) << "in " << periods << " periods";
  tell("F38 " + std::to_string(refused) + " dials of " + std::to_string(kNodes) + " nodes in " +
       std::to_string(periods) + " periods; back over " +
       std::to_string((times.back() - times[kNodes + refused]).count() / 1'000) + " ms");
}

// F11. The script is loaded again without a word, once for each connection.
TEST_F(FleetFaults, AForgottenScriptIsLoadedAgainUnnoticed) {
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
      nodes[0]->limiter->reset("k");  // so that they ask on
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
