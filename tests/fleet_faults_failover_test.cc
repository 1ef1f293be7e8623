// What a fleet does when a master of Redis fails over, slots move, or a part of a cluster is down: faults F07 to F09,
// and F40 across slots, of docs/guarantees.md; with a real cluster and real sentinels.
//
// Redis itself needs seconds to fail over, and may lose what it had not replicated. The nodes then admit the limit,
// what was lost, and their shares for the time between. The rest is in fleet_faults_test.cc.

#include <functional>

#include "cluster_key.h"
#include "fleet_node.h"
#include "redis_fixture.h"

namespace weir::test {
namespace {

constexpr Micros kPatient{10'000'000};
const Limit kYear = limit_of("1000/year", Algorithm::fixed_window);
const Limit kTen = limit_of("10/year", Algorithm::fixed_window);

std::int64_t ms_since(Micros began) { return (redis::steady_now() - began).count() / 1'000; }

// F07. Redis admits a second time only what its replica had not received. `known` is charged before the master is
// killed, `bridged` while Redis fails over. Returns false if Redis does not fail over in time.
bool bridge_failover(Nodes& nodes, const std::string& known, const std::string& bridged, RedisServer& master,
                     const std::function<bool()>& is_promoted, int timeout_ms, const std::string& kind) {
  const Limit thirty = limit_of("30/year", Algorithm::fixed_window);
  Tally before, during, after;
  for (int i = 0; i < 10; ++i) ask(*nodes[0], known, thirty, before);
  EXPECT_EQ(before.admitted(DecidedBy::strict), 10) << before.text();
  master.kill();
  const Micros killed = redis::steady_now();
  Micros promoted{0};
  {
    Asking asking(nodes, [&](Node& node) { ask(node, bridged, thirty, during); });
    if (!until(is_promoted, timeout_ms)) return false;
    promoted = redis::steady_now();
    for (auto& node : nodes) EXPECT_TRUE(until([&] { return is_strict(*node, bridged); })) << during.text();
  }
  tell("F07 " + kind + ": promoted " + std::to_string((promoted - killed).count() / 1'000) +
       " ms after the kill, strict " + std::to_string(ms_since(promoted)) + " ms later; meanwhile " + during.text());
  EXPECT_EQ(during.errors(), 0) << during.error();
  EXPECT_GT(during.asked(DecidedBy::local), 0);
  EXPECT_LE(during.admitted(DecidedBy::local), 30) << "the limit, in shares";
  EXPECT_LE(during.admitted(DecidedBy::strict), 30);
  EXPECT_LT(during.longest(), Micros{60'000'000});
  const std::int64_t remaining = left(*nodes[0], known, thirty);
  EXPECT_GE(remaining, 20) << "the replica may not have received the 10 charges";
  ask_all(nodes, 40, known, thirty, after);
  EXPECT_EQ(after.admitted(), remaining) << after.text();
  return true;
}

class FleetClusterFaults : public RedisClusterTest {};

TEST_F(FleetClusterFaults, AFailoverIsBridgedAndCostsNoMoreThanWhatWasNotReplicated) {
  auto nodes = make_nodes(2, url(), with_deadline(kLong));
  cluster_->expect_failover();
  const auto is_promoted = [&] { return is_master(cluster_->replica(0)); };
  ASSERT_TRUE(bridge_failover(nodes, key_on(0, "known"), key_on(0, "bridged"), cluster_->master(0), is_promoted, 60'000,
                              "cluster"))
      << "the cluster does not fail over";
}

TEST(FleetSentinelFaults, AFailoverIsBridgedAndCostsNoMoreThanWhatWasNotReplicated) {
  auto sentinels = RedisSentinels::start();
  ASSERT_TRUE(sentinels) << sentinels.error().message;
  auto nodes = make_nodes(2, "redis+sentinel://" + (*sentinels)->addresses() + "/main", with_deadline(kLong));
  (*sentinels)->expect_failover();
  const std::string old = std::to_string((*sentinels)->master().port());
  const auto is_promoted = [&] {  // the sentinel that makes a replica the master reports it a second later
    for (std::size_t i = 0; i < 3; ++i) {
      const auto told = call_redis((*sentinels)->sentinel(i).port(), {"SENTINEL", "GET-MASTER-ADDR-BY-NAME", "main"});
      if (told.items.size() == 2 && told.items[1].text != old) return true;
    }
    return false;
  };
  // A sentinel whose timer was two seconds late does nothing for 30 seconds.
  if (!bridge_failover(nodes, "known", "bridged", (*sentinels)->master(), is_promoted, 80'000, "sentinel")) {
    GTEST_SKIP() << "the machine is too busy for sentinels: they do not fail over";
  }
}

// F08. No client notices, and each check is charged once.
TEST_F(FleetClusterFaults, SlotsMoveAndNoClientNotices) {
  auto nodes = make_nodes(2, url(), with_deadline(kPatient));
  std::vector<std::string> keys;
  for (int i = 0; i < 8; ++i) keys.push_back(key_on(0, "moves" + std::to_string(i) + " ", 40));
  Tally tally;
  int outcome = -1;
  {
    std::atomic<std::size_t> turn{0};
    Asking asking(nodes, [&](Node& node) { ask(node, keys[turn++ % keys.size()], kYear, tally); });
    outcome = cluster_->reshard(0, 1, 40);
    const int asked = tally.asked();
    EXPECT_TRUE(until([&] { return tally.asked() > asked + 50; }));
  }
  EXPECT_EQ(outcome, 0);
  EXPECT_EQ(tally.errors(), 0) << tally.error();
  EXPECT_EQ(tally.asked(DecidedBy::local), 0) << tally.text();
  std::int64_t all = 0;
  for (const std::string& key : keys) all += used(*nodes[1], key, kYear);
  EXPECT_EQ(all, tally.admitted()) << "each was charged once";
  tell("F08 40 slots moved: " + tally.text());
}

// Two limits of one client while their slot migrates: the key of one is still on the old server, that of the other is
// created on the new one. Redis decides, and charges both or none.
TEST_F(FleetClusterFaults, TwoLimitsOfOneClientAreDecidedByRedisWhileTheirSlotMigrates) {
  auto nodes = make_nodes(2, url(), with_deadline(kPatient));
  const std::string client = key_on(0, "client"), first = "{" + client + "}first", second = "{" + client + "}second";
  const std::string slot = std::to_string(slot_of_key(first));
  Tally alone, both;
  for (int i = 0; i < 10; ++i) ask(*nodes[0], first, kYear, alone);
  EXPECT_EQ(alone.admitted(DecidedBy::strict), 10) << alone.text();
  const std::uint16_t from = cluster_->master(0).port(), to = cluster_->master(1).port();
  const std::string from_id = call_redis(from, {"CLUSTER", "MYID"}).text;
  const std::string to_id = call_redis(to, {"CLUSTER", "MYID"}).text;
  ASSERT_EQ(call_redis(to, {"CLUSTER", "SETSLOT", slot, "IMPORTING", from_id}).text, "OK");
  ASSERT_EQ(call_redis(from, {"CLUSTER", "SETSLOT", slot, "MIGRATING", to_id}).text, "OK");
  const std::vector<Charge> charges{{.key = first, .limit = &kYear}, {.key = second, .limit = &kTen}};
  for (int i = 0; i < 20; ++i) {
    const auto verdict = ask(*nodes[static_cast<std::size_t>(i % 2)], charges, both);
    ASSERT_TRUE(verdict);
    EXPECT_EQ(verdict->allowed, i < 10) << i;
  }
  EXPECT_EQ(both.errors(), 0) << both.error();
  EXPECT_EQ(both.asked(DecidedBy::local) + both.asked(DecidedBy::overloaded), 0) << both.text();
  EXPECT_EQ(call_redis(from, {"CLUSTER", "COUNTKEYSINSLOT", slot}).integer, 1);
  EXPECT_GE(call_redis(to, {"CLUSTER", "COUNTKEYSINSLOT", slot}).integer, 1);
  EXPECT_EQ(used(*nodes[1], first, kYear), 20) << "denied requests are charged nowhere";
  EXPECT_EQ(used(*nodes[0], second, kTen), 10);
}

// F09. No server takes over: `on_backend_error` of the rules applies until the master is back.
TEST_F(FleetClusterFaults, WithoutAMasterAndItsReplicaThePoliciesApply) {
  auto nodes = make_nodes(2, url(), with_deadline(kLong));
  const std::string local = key_on(1, "local"), open = key_on(1, "open"), closed = key_on(1, "closed");
  cluster_->replica(1).kill();
  cluster_->master(1).kill();
  Tally of_local, of_open, of_closed;
  for (int i = 0; i < 30; ++i) {
    for (auto& node : nodes) {
      ask(*node, local, kTen, of_local);
      ask(*node, open, kTen, of_open, Fallback::open);
      ask(*node, closed, kTen, of_closed, Fallback::closed);
    }
  }
  EXPECT_EQ(of_local.asked(DecidedBy::local), 60) << of_local.text();
  EXPECT_EQ(of_open.asked(DecidedBy::open), 60) << of_open.text();
  EXPECT_EQ(of_closed.asked(DecidedBy::closed), 60) << of_closed.text();
  EXPECT_EQ(of_local.admitted(), 10);
  EXPECT_EQ(of_open.admitted(), 20);
  EXPECT_EQ(of_closed.admitted(), 0);
  EXPECT_EQ(of_local.errors() + of_open.errors() + of_closed.errors(), 0) << of_local.error();
  ASSERT_TRUE(cluster_->master(1).restart());
  EXPECT_TRUE(until([&] {
    const auto info = call_redis(cluster_->master(0).port(), {"CLUSTER", "INFO"});
    return info.text.find("cluster_state:ok") != info.text.npos;
  }));
  const Micros began = redis::steady_now();
  for (auto& node : nodes) EXPECT_TRUE(until([&] { return is_strict(*node, local); })) << "Redis is not asked again";
  tell("F09 strict " + std::to_string(ms_since(began)) + " ms after the cluster is well; " + of_local.text());
}

// A cluster whose other servers answer when a part of it is down.
class FleetPartlyDown : public FleetClusterFaults {
 protected:
  void SetUp() override { start({"--cluster-require-full-coverage", "no"}); }

  void pause_part() {
    cluster_->replica(1).pause();
    cluster_->master(1).pause();
  }
  void resume_part() {
    cluster_->master(1).resume();
    cluster_->replica(1).resume();
  }
  // Until the breaker of the paused server is open: then no check waits for it.
  static void open_breaker(Node& node, const std::string& key, const Limit& limit, Tally& tally) {
    EXPECT_TRUE(until([&] {
      ask(node, key, limit, tally);
      return tally.asked(DecidedBy::local) >= 3;
    }));
  }
};

// F40. Also while a part of the cluster is down, a request that one server denies is charged nothing, not even to the
// share of a limit whose server is down.
TEST_F(FleetPartlyDown, ADeniedRequestIsChargedNothingThoughAServerIsDown) {
  auto nodes = make_nodes(1, url(), with_pauses());
  Node& node = *nodes[0];
  const std::string full_key = key_on(0, "full"), down = key_on(1, "down"), well = key_on(2, "well");
  Tally tally;
  EXPECT_TRUE(ask(node, down, kTen, tally));
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(ask(node, full_key, kTen, tally));
  pause_part();
  Tally alone;
  open_breaker(node, down, limit_of("1000/year", Algorithm::sliding_log), alone);
  const Charge charges[] = {{.key = down, .limit = &kTen}, {.key = full_key, .limit = &kTen}};
  for (int i = 0; i < 20; ++i) {
    const auto verdict = node.limiter->check_all(charges);
    ASSERT_TRUE(verdict) << verdict.error().message;
    EXPECT_FALSE(verdict->allowed);
  }
  const Charge more[] = {{.key = down, .limit = &kTen, .cost = 11}, {.key = well, .limit = &kTen}};
  EXPECT_FALSE(node.limiter->check_all(more)->allowed) << "denied by the share";
  resume_part();
  EXPECT_EQ(used(node, well, kTen), 0);
  EXPECT_EQ(used(node, down, kTen), 1);
  EXPECT_TRUE(
      until([&] { return node.store->write_backs().written() == static_cast<std::uint64_t>(alone.admitted()); }));
  EXPECT_EQ(used(node, down, kTen), 1) << "a denied request was written back";
}

// The charge of a denied request is undone while another server of the cluster is down.
TEST_F(FleetPartlyDown, AnUndoWaitsForNoOtherServer) {
  auto nodes = make_nodes(1, url(), with_pauses());
  Node& node = *nodes[0];
  const std::string down = key_on(1, "down"), well = key_on(0, "well");
  Tally tally;
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(ask(node, well, kTen, tally));
  pause_part();
  Tally alone;
  EXPECT_TRUE(until([&] {
    ask(node, down, kTen, alone);
    return alone.asked(DecidedBy::local) >= 3 && !node.store->background().is_strict();
  }));
  const resp::Value time = call_redis(cluster_->master(0).port(), {"TIME"});
  ASSERT_EQ(time.items.size(), 2u);
  const std::int64_t now_us = std::stoll(time.items[0].text) * 1'000'000 + std::stoll(time.items[1].text);
  node.store->background().undos().add({.key = well, .limit = kTen, .cost = 2, .charged_us = now_us});
  EXPECT_TRUE(until([&] { return node.store->background().undos().done() == 1; })) << "it waits for the other server";
  EXPECT_EQ(used(node, well, kTen), 3);
  resume_part();
}

// F40. Many requests at once: one may use the share between the look at it and the answer of the server with the id.
TEST_F(FleetPartlyDown, ARequestThatTheShareDeniesIsNotRememberedByItsId) {
  auto nodes = make_nodes(1, url(), with_pauses());
  Node& node = *nodes[0];
  const Limit one = limit_of("1/year", Algorithm::fixed_window);
  const std::string down = key_on(1, "down"), well = key_on(2, "well");
  pause_part();
  Tally alone;
  open_breaker(node, down, kTen, alone);
  const std::string share = key_on(1, "share");
  const Charge charges[] = {{.key = well, .limit = &kYear}, {.key = share, .limit = &one}};
  for (int round = 0; round < 2; ++round) {
    std::atomic<int> admitted{0}, repeated{0};
    on_threads(8, [&](std::size_t thread) {
      for (int i = 0; i < 10; ++i) {
        const auto verdict = node.limiter->check_once(std::to_string(thread) + " " + std::to_string(i), charges);
        ASSERT_TRUE(verdict) << verdict.error().message;
        admitted += verdict->allowed ? 1 : 0;
        repeated += verdict->repeated ? 1 : 0;
      }
    });
    EXPECT_EQ(admitted, 1);
    EXPECT_EQ(repeated, round) << "the one that passed";
  }
  EXPECT_EQ(used(node, well, kYear), 1);
  resume_part();
}

// A reservation on two servers, of which one is down when it is settled: that part can be settled later.
TEST_F(FleetPartlyDown, APartIsSettledOnceItsServerIsBack) {
  // The deadline passes during the pause: a settlement that the paused server finds later must not be done.
  auto nodes = make_nodes(1, url(), with_deadline(Micros{1'000'000}));
  Node& node = *nodes[0];
  const std::string down = key_on(1, "down"), well = key_on(2, "well");
  const auto costs = [&](std::int64_t cost) {
    return std::array<Charge, 2>{Charge{.key = well, .limit = &kYear, .cost = cost},
                                 Charge{.key = down, .limit = &kYear, .cost = cost}};
  };
  ASSERT_TRUE(node.limiter->reserve(costs(50), {.id = "one"}));
  pause_part();
  for (int i = 0; i < 2; ++i) {
    const auto failed = node.limiter->commit("one", costs(10));
    ASSERT_FALSE(failed);
    EXPECT_EQ(failed.error().code, ErrorCode::unavailable) << failed.error().message;
  }
  EXPECT_EQ(used(node, well, kYear), 10);
  // The server's time is known to within half a round trip. Beyond that, a call is certainly late.
  std::this_thread::sleep_for(std::chrono::seconds{2});
  resume_part();
  ASSERT_TRUE(until([&] { return is_strict(node, down); }));
  const auto settled = node.limiter->commit("one", costs(10));
  ASSERT_TRUE(settled) << settled.error().message;
  EXPECT_EQ(settled->reserved, (std::vector<std::int64_t>{0, 50})) << "the other was settled before";
  EXPECT_EQ(used(node, down, kYear), 10);
  const auto again = node.limiter->commit("one", costs(10));
  EXPECT_TRUE(!again && again.error().code == ErrorCode::not_found);
}

// A reservation that one server denies is open on no server, also not where it costs nothing.
TEST_F(FleetClusterFaults, ADeniedReservationCanBeMadeAgain) {
  auto nodes = make_nodes(1, url(), with_deadline(kPatient));
  const std::string first = key_on(0, "first"), second = key_on(1, "second");
  const Charge free{.key = first, .limit = &kTen, .cost = 0};
  const Charge much[] = {free, {.key = second, .limit = &kTen, .cost = 11}};
  const Charge little[] = {free, {.key = second, .limit = &kTen, .cost = 1}};
  const auto denied = nodes[0]->limiter->reserve(much, {.id = "one"});
  ASSERT_TRUE(denied) << denied.error().message;
  EXPECT_FALSE(denied->verdict.allowed);
  const auto made = nodes[0]->limiter->reserve(little, {.id = "one"});
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_TRUE(made->verdict.allowed);
}

// F40. The id of a request that one of two servers denied is not stored.
TEST_F(FleetClusterFaults, ADeniedRequestIsNotRememberedByItsId) {
  auto nodes = make_nodes(1, url(), with_deadline(kPatient));
  Node& node = *nodes[0];
  const std::string first = key_on(0, "first"), second = key_on(1, "second");
  const Charge all{.key = second, .limit = &kTen, .cost = 10}, back{.key = second, .limit = &kTen, .cost = -5};
  ASSERT_TRUE(node.limiter->check_all({&all, 1})->allowed);
  const Charge orders[2][2] = {{{.key = first, .limit = &kTen}, {.key = second, .limit = &kTen}},
                               {{.key = second, .limit = &kTen}, {.key = first, .limit = &kTen}}};
  for (int i = 0; i < 2; ++i) EXPECT_FALSE(node.limiter->check_once("id" + std::to_string(i), orders[i])->allowed);
  EXPECT_EQ(used(node, first, kTen), 0);
  ASSERT_TRUE(node.limiter->check_all({&back, 1}));
  for (int i = 0; i < 2; ++i) {
    const auto verdict = node.limiter->check_once("id" + std::to_string(i), orders[i]);
    ASSERT_TRUE(verdict) << verdict.error().message;
    EXPECT_TRUE(verdict->allowed);
    EXPECT_FALSE(verdict->repeated) << "it was denied before, and charged nothing";
    EXPECT_TRUE(node.limiter->check_once("id" + std::to_string(i), orders[i])->repeated);
  }
  EXPECT_EQ(used(node, first, kTen), 2);
  EXPECT_EQ(used(node, second, kTen), 7);
}

}  // namespace
}  // namespace weir::test
