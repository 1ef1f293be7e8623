// What a fleet does when its Redis is killed, paused, slow, cut off or refuses: faults F01 to F06, F10, F11 and F38
// of docs/operate.md, by real servers of Redis and a proxy that makes the weather.
//
// For every fault: what is let through stays within its bound, every answer says how it was made, nobody waits for
// long, and Redis decides again afterwards. Times are only told, or held to bounds that a busy machine keeps; those
// of docs/operate.md are held by tests/server/fleet_fault*_long.sh. Failovers are in fleet_faults_failover_test.cc.

#include <sys/stat.h>

#include "fault_proxy.h"
#include "fleet_node.h"
#include "redis_server.h"

namespace weir::test {
namespace {

constexpr Micros kOrderOfMagnitude{5'000'000};  // nobody waits so long, however busy the machine

class FleetFaults : public ::testing::Test {
 protected:
  void SetUp() override { start({}); }

  void start(RedisOptions options) {
    proxy_.reset();
    server_.reset();
    auto server = RedisServer::start(std::move(options));
    ASSERT_TRUE(server) << server.error().message;
    server_ = *std::move(server);
    auto proxy = FaultProxy::start(server_->port());
    ASSERT_TRUE(proxy) << proxy.error().message;
    proxy_ = *std::move(proxy);
  }
  std::string url() const { return "redis://" + server_->address(); }
  std::string proxied() const { return "redis://" + proxy_->address(); }
  resp::Value redis(std::initializer_list<std::string> words) const { return call_redis(server_->port(), words); }

  // Until every node decides by Redis, in milliseconds.
  static std::int64_t back(std::vector<std::unique_ptr<Node>>& nodes) {
    const Micros began = redis::steady_now();
    for (auto& node : nodes) EXPECT_TRUE(until([&] { return is_strict(*node); })) << "Redis is not asked again";
    return (redis::steady_now() - began).count() / 1'000;
  }
  static std::uint64_t paid_back(const std::vector<std::unique_ptr<Node>>& nodes) {
    std::uint64_t all = 0;
    for (const auto& node : nodes) all += node->store->keeper().paid_back();
    return all;
  }

  const Limit thirty_ = limit_of("30/year", Algorithm::fixed_window);
  const Limit thousand_ = limit_of("1000/year", Algorithm::token_bucket);
  std::unique_ptr<RedisServer> server_;
  std::unique_ptr<FaultProxy> proxy_;
};

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
  EXPECT_EQ(local.asked(MadeBy::local), 120) << local.text();
  EXPECT_EQ(open.asked(MadeBy::open), 120) << open.text();
  EXPECT_EQ(closed.asked(MadeBy::closed), 120) << closed.text();
  EXPECT_EQ(local.admitted(), 30) << "the limit";
  EXPECT_EQ(of_few.admitted(), 3) << "as many as nodes, where that is more";
  EXPECT_EQ(open.admitted(), 90) << "the limit, on each of three nodes";
  EXPECT_EQ(closed.admitted(), 0);
  EXPECT_LT(local.longest(), kOrderOfMagnitude);

  ASSERT_TRUE(server_->restart());
  tell("F01 all nodes ask Redis again after " + std::to_string(back(nodes)) +
       " ms; while it was away: " + local.text());
  EXPECT_TRUE(until([&] { return paid_back(nodes) == 30 + 3 + 90; })) << paid_back(nodes);
  Tally after;
  for (auto& node : nodes) {
    EXPECT_FALSE(ask(*node, "local", thirty_, after));
    EXPECT_FALSE(ask(*node, "open", thirty_, after));
    EXPECT_TRUE(ask(*node, "closed", thirty_, after)) << "nothing was charged";
  }
  EXPECT_EQ(after.asked(MadeBy::local), 0) << after.text();
}

// F01. Who asks all the time is answered all the time, and what is let through in all is what Redis granted, what it
// forgot when it was killed, and the shares.
TEST_F(FleetFaults, NobodyIsRefusedWhileRedisIsKilledAndComesBackAgainAndAgain) {
  auto nodes = make_nodes(3, url(), with_deadline(kLong));
  Tally tally;
  {
    Asking asking(nodes, [&](Node& node) { ask(node, "k", thirty_, tally); });
    for (int round = 0; round < 3; ++round) {
      ASSERT_TRUE(until([&] { return tally.asked(MadeBy::strict) + tally.asked(MadeBy::cached) > 50 * (round + 1); }));
      server_->kill();
      const int before = tally.asked();
      EXPECT_TRUE(until([&] { return tally.asked() > before + 200; })) << tally.text();
      ASSERT_TRUE(server_->restart());
      for (auto& node : nodes) EXPECT_TRUE(until([&] { return is_strict(*node); }));
    }
  }
  EXPECT_EQ(tally.errors(), 0) << tally.error();
  EXPECT_LE(tally.admitted(MadeBy::strict), 4 * 30) << "it forgets, when it is killed";
  EXPECT_LE(tally.admitted(MadeBy::local), 3 * 30) << "the limit while it is away";
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
  ASSERT_EQ(before.admitted(MadeBy::strict), 15) << before.text();
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
  EXPECT_EQ(during.asked(MadeBy::local), 12 + 150) << during.text();
  EXPECT_LT(during.longest(), kOrderOfMagnitude);
  // Connections may have been given up before the deadline, and what Redis reads before that is in time.
  std::this_thread::sleep_for(paused + during.longest() + kLong + Micros{100'000} - redis::steady_now());
  server_->resume();
  const std::int64_t ms = back(nodes);
  EXPECT_TRUE(until([&] { return paid_back(nodes) == static_cast<std::uint64_t>(during.admitted()); }));
  EXPECT_EQ(nodes[0]->limiter->peek("k", thousand_)->remaining, 1'000 - 15 - during.admitted())
      << "somebody was charged who had gone";
  tell("F02 back after " + std::to_string(ms) + " ms; meanwhile " + during.text());
}

// F02. However many ask, only so many wait for a Redis that does not answer; the others go on at once.
TEST_F(FleetFaults, OnlySoManyWaitForAPausedRedis) {
  FleetStoreOptions options = with_deadline(Micros{900'000});
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
      if (redis::steady_now() - began > Micros{800'000}) ++slow;
    });
  }
  for (std::thread& thread : threads) thread.join();
  server_->resume();
  EXPECT_LE(slow, 4);
  EXPECT_EQ(tally.asked(MadeBy::local), 24) << tally.text();
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
    EXPECT_EQ(tally.asked(MadeBy::strict), 10) << tally.text();
  }
  for (const int ms : {25, 100, 1'000}) {
    proxy_->set({.replies = {.delay = Micros{ms * 1'000}}});
    Tally tally;
    for (int i = 0; i < 200; ++i) ask(*hurried[0], "h", thousand_, tally);
    EXPECT_GE(tally.asked(MadeBy::local), 150) << "but for what a busy machine let come late: " << tally.text();
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
  EXPECT_EQ(tally.admitted(MadeBy::strict), 30) << tally.text();
  EXPECT_EQ(tally.asked(MadeBy::local), 0);
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
  EXPECT_EQ(tally.asked(MadeBy::local), 80) << tally.text();
  EXPECT_EQ(tally.admitted(), 30);
  for (auto& node : nodes) EXPECT_TRUE(until([&] { return node->lost > 0; })) << "the connection is dead";
  const auto noticed = (redis::steady_now() - began).count() / 1'000;
  proxy_->set({});
  const std::int64_t ms = back(nodes);
  EXPECT_TRUE(until([&] { return paid_back(nodes) == 30; })) << paid_back(nodes);
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
  EXPECT_EQ(tally.asked(MadeBy::local), 80) << tally.text();
  EXPECT_EQ(tally.admitted(), 30);
  for (auto& node : nodes) EXPECT_TRUE(until([&] { return node->lost > 0; })) << "the connection is dead";
  proxy_->set({});
  back(nodes);
  EXPECT_TRUE(until([&] { return paid_back(nodes) == 30; })) << paid_back(nodes);
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
  EXPECT_EQ(cut_off.asked(MadeBy::local), 40) << cut_off.text();
  EXPECT_EQ(well.asked(MadeBy::local), 0) << well.text();
  EXPECT_EQ(cut_off.admitted(), 15);
  EXPECT_EQ(well.admitted(), 30);
  proxy_->set({});
  const std::int64_t ms = back(nodes);
  EXPECT_TRUE(until([&] { return paid_back(nodes) == 15; })) << paid_back(nodes);
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
  EXPECT_LE(tally.admitted(MadeBy::strict), 30);
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
  std::this_thread::sleep_for(std::chrono::milliseconds{2'000});  // each has dialled in its turn by then
  const std::size_t refused = proxy_->arrivals().size() - kNodes;
  proxy_->set({});
  back(nodes);
  std::vector<Micros> times = proxy_->arrivals();
  times.erase(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(kNodes + refused));
  std::size_t most = 0;
  for (std::size_t i = 0; i < times.size(); ++i) {
    std::size_t together = 0;
    while (i + together < times.size() && times[i + together] - times[i] < Micros{100'000}) ++together;
    most = std::max(most, together);
  }
  EXPECT_LE(refused, kNodes * 40) << "dials in two seconds";
  EXPECT_LT(most, kNodes / 2) << "in a tenth of a second; on a quiet machine a fifth at most";
  tell("F38 " + std::to_string(refused) + " dials of " + std::to_string(kNodes) + " nodes in 2 s; back over " +
       std::to_string((times.back() - times.front()).count() / 1'000) + " ms, at most " + std::to_string(most) +
       " in 100 ms");
}

// What is paid back of a reservation is what was used of it.
TEST_F(FleetFaults, AReservationSettledWhileRedisIsAwayIsPaidBackAsItWasUsed) {
  auto nodes = make_nodes(1, url(), with_deadline(kLong));
  Limiter& limiter = *nodes[0]->limiter;
  server_->kill();
  const Charge five{.key = "k", .limit = &thirty_, .cost = 5}, two{.key = "k", .limit = &thirty_, .cost = 2};
  ASSERT_TRUE(limiter.reserve({&five, 1}, {.id = "used"}));
  ASSERT_TRUE(limiter.reserve({&five, 1}, {.id = "left"}));
  const auto settled = limiter.commit("used", {&two, 1});
  ASSERT_TRUE(settled) << settled.error().message;
  EXPECT_EQ(settled->decisions[0].made, MadeBy::local);
  EXPECT_EQ(settled->decisions[0].remaining, 23);
  ASSERT_TRUE(limiter.cancel("left", {&five, 1}));
  ASSERT_TRUE(server_->restart());
  back(nodes);
  ASSERT_TRUE(until([&] { return paid_back(nodes) > 0; }));
  EXPECT_EQ(paid_back(nodes), 2u);
  const auto seen = limiter.peek("k", thirty_);
  EXPECT_TRUE(seen && seen->made == MadeBy::strict);
  EXPECT_EQ(seen->remaining, 28);
}

// F10. A Redis that answers, but with a refusal, is as good as none: `break_it` makes it so, `mend_it` ends it.
class FleetRefusals : public FleetFaults {
 protected:
  void refuses(const char* what, const std::function<void()>& break_it, const std::function<void()>& mend_it) {
    auto nodes = make_nodes(2, url(), with_deadline(kLong));
    break_it();
    Tally tally;
    EXPECT_TRUE(until([&] {
      ask(*nodes[0], "other", thousand_, tally);
      ask(*nodes[1], "other", thousand_, tally);
      return !is_strict(*nodes[0]) && !is_strict(*nodes[1]);
    })) << what;
    Tally during;
    for (int i = 0; i < 40; ++i) {
      for (auto& node : nodes) ask(*node, "k", thirty_, during);
    }
    EXPECT_EQ(during.asked(MadeBy::local), 80) << what << ": " << during.text();
    EXPECT_EQ(during.admitted(), 30) << what;
    EXPECT_EQ(during.errors() + tally.errors(), 0) << what << ": " << during.error() << tally.error();
    EXPECT_LT(during.longest(), kOrderOfMagnitude) << what;
    mend_it();
    const std::int64_t ms = back(nodes);
    EXPECT_TRUE(until([&] { return !ask(*nodes[0], "k", thirty_, tally); })) << what << ": it is not paid back";
    tell("F10 " + std::string(what) + ": back after " + std::to_string(ms) + " ms; " + during.text());
  }
};

TEST_F(FleetRefusals, OutOfMemory) {
  refuses(
      "OOM",
      [&] {
        redis({"CONFIG", "SET", "maxmemory", "1"});
      },
      [&] {
        redis({"CONFIG", "SET", "maxmemory", "0"});
      });
}

TEST_F(FleetRefusals, CannotSave) {
  refuses(
      "MISCONF",
      [&] {
        ASSERT_EQ(::mkdir((server_->folder() + "/dump.rdb").c_str(), 0700), 0);  // so that no file can become it
        redis({"CONFIG", "SET", "save", "3600 1"});
        redis({"SET", "something", "1"});
        redis({"BGSAVE"});
        EXPECT_TRUE(until([&] { return redis({"SET", "something", "2"}).text.starts_with("MISCONF"); }));
      },
      [&] {
        redis({"CONFIG", "SET", "stop-writes-on-bgsave-error", "no"});
      });
}

TEST_F(FleetRefusals, PasswordIsMissing) {
  refuses(
      "NOAUTH",
      [&] {
        redis({"CONFIG", "SET", "requirepass", "secret"});
        RedisClient again(server_->port());
        again.call({"AUTH", "secret"});
        again.call({"CLIENT", "KILL", "TYPE", "normal"});
        again.call({"CLIENT", "KILL", "TYPE", "pubsub"});  // who also listens
      },
      [&] {
        RedisClient again(server_->port());
        again.call({"AUTH", "secret"});
        again.call({"CONFIG", "SET", "requirepass", ""});
      });
}

TEST_F(FleetRefusals, UserMayNot) {
  refuses(
      "NOPERM",
      [&] {
        redis({"ACL", "SETUSER", "default", "-evalsha", "-set"});
      },
      [&] {
        redis({"ACL", "SETUSER", "default", "+@all"});
      });
}

TEST_F(FleetRefusals, Replica) {
  refuses(
      "READONLY",
      [&] {
        redis({"REPLICAOF", "127.0.0.1", "1"});
      },
      [&] {
        redis({"REPLICAOF", "NO", "ONE"});
      });
}

// It reads so many keys, a millisecond each, that it would take minutes; what it had counted it knows afterwards.
TEST_F(FleetRefusals, ReadsItsData) {
  if (redis_major_version() < 7) GTEST_SKIP() << "it cannot be made to load slowly";
  for (const bool are_connections_lost : {false, true}) {
    start({.settings = {"--enable-debug-command", "yes", "--loading-process-events-interval-bytes", "1024"}});
    redis({"DEBUG", "POPULATE", "200000"});
    {
      Node before(url(), with_deadline(kLong));
      ASSERT_TRUE(until([&] { return is_strict(before); }));
      Tally spent;
      for (int i = 0; i < 30; ++i) ask(before, "spent", thirty_, spent);
      ASSERT_EQ(spent.admitted(MadeBy::strict), 30) << spent.text();
    }
    std::thread reload;
    refuses(
        are_connections_lost ? "LOADING, all connections anew" : "LOADING",
        [&] {
          redis({"CONFIG", "SET", "key-load-delay", "1000"});
          reload = std::thread([&] { redis({"DEBUG", "RELOAD"}); });
          ASSERT_TRUE(until([&] { return redis({"GET", "x"}).text.starts_with("LOADING"); }));
          if (are_connections_lost) {
            EXPECT_EQ(redis({"CLIENT", "KILL", "TYPE", "pubsub"}).integer, 2);
          }
        },
        [&] {
          EXPECT_TRUE(redis({"GET", "x"}).text.starts_with("LOADING")) << "it was done too early";
          EXPECT_EQ(redis({"CONFIG", "SET", "key-load-delay", "0"}).text, "OK");
          reload.join();
        });
    Node after(url(), with_deadline(kLong));
    ASSERT_TRUE(until([&] { return is_strict(after); }));
    Tally none;
    EXPECT_FALSE(ask(after, "spent", thirty_, none)) << none.text();
    EXPECT_EQ(none.asked(MadeBy::strict), 1) << none.text();
  }
}

TEST_F(FleetRefusals, HeldByAScript) {
  std::thread script;
  refuses(
      "BUSY",
      [&] {
        redis({"CONFIG", "SET", "lua-time-limit", "20"});
        script = std::thread([&] { redis({"EVAL", "while true do end", "0"}); });
        EXPECT_TRUE(until([&] { return redis({"GET", "x"}).text.starts_with("BUSY"); }));
      },
      [&] {
        redis({"SCRIPT", "KILL"});
        script.join();
      });
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
      const int asked = tally.asked(MadeBy::strict);
      redis({"SCRIPT", "FLUSH"});
      nodes[0]->limiter->reset("k");  // so that they ask on
      EXPECT_TRUE(until([&] { return tally.asked(MadeBy::strict) > asked + 30; })) << tally.text();
    }
  }
  EXPECT_EQ(tally.errors(), 0) << tally.error();
  EXPECT_EQ(tally.asked(MadeBy::local), 0) << tally.text();
  EXPECT_LE(tally.admitted(), 6 * 30) << "it was reset five times";
  if (redis_major_version() >= 7) {
    EXPECT_LE(loads() - before, 5 * 3 * 2) << "two scripts on each node's connection";
  }
  tell("F11 five flushes, " + std::to_string(loads() - before) + " loads; " + tally.text());
}

}  // namespace
}  // namespace weir::test
