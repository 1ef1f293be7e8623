// Tests the client on one real server: pipelines, deadlines, lost connections, faults by kind. Cluster and Sentinel
// have tests of their own.
#include <gtest/gtest.h>
#include <poll.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "redis_driver.h"

namespace weir::redis {
namespace {

std::string url_of(const test::RedisServer& server) { return "redis://" + server.address(); }

class RedisClient : public ::testing::Test {
 protected:
  void SetUp() override {
    server = start_redis({.settings = {"--enable-debug-command", "yes"}});
    ASSERT_NE(server, nullptr);
  }
  resp::Value tell_server(std::initializer_list<std::string> words) { return test::call_redis(server->port(), words); }

  std::unique_ptr<test::RedisServer> server;
};

TEST_F(RedisClient, ConnectsAtTheFirstCommandAndAnswersIt) {
  Driver driver(url_of(*server));
  EXPECT_EQ(driver.client->due(), kNever);
  EXPECT_EQ(driver.ask({"SET", "a", "1"}).text, "OK");
  EXPECT_EQ(driver.ask({"GET", "a"}).text, "1");
  EXPECT_EQ(driver.client->counters().dials, 1u);
  EXPECT_EQ(driver.client->counters().connects, 1u);
  const auto masters = driver.client->masters();
  ASSERT_EQ(masters.size(), 1u);
  EXPECT_TRUE(masters[0].is_connected);
  EXPECT_EQ(masters[0].address, server->address());
  EXPECT_NE(tell_server({"CLIENT", "LIST"}).text.find("name=weir"), std::string::npos);
  ASSERT_EQ(driver.events.size(), 1u);
  EXPECT_EQ(driver.events[0].kind, Event::Kind::connected);
}

TEST_F(RedisClient, AnswersAHundredThousandCommandsInOrder) {
  constexpr int kCommands = 100'000;
  Driver driver(url_of(*server), {.commands_max = kCommands});
  std::vector<std::uint64_t> tags;
  for (int i = 0; i < kCommands; ++i) {
    tags.push_back(driver.send({"INCR", "n"}, {.deadline = steady_now() + 20'000_ms, .reading = Reading::integers}));
  }
  ASSERT_TRUE(driver.wait([&] { return driver.heard.size() == kCommands; }));
  EXPECT_EQ(driver.sequence, tags);
  for (int i = 0; i < kCommands; ++i) {
    ASSERT_EQ(driver.heard[tags[static_cast<std::size_t>(i)]].integers, std::vector<std::int64_t>{i + 1});
  }
}

TEST_F(RedisClient, DeliversOtherRepliesAsValuesWhereIntegersAreExpected) {
  Driver driver(url_of(*server));
  const Command integers{.reading = Reading::integers};
  EXPECT_EQ(driver.ask({"EVAL", "return {1,{2,-3},4}", "0"}, integers).integers,
            (std::vector<std::int64_t>{1, 2, -3, 4}));
  EXPECT_EQ(driver.ask({"EVAL", "return {1,'x'}", "0"}, integers).value.items.size(), 2u);
  EXPECT_EQ(driver.ask({"EVAL", "return 'x'", "0"}, integers).text, "x");
  EXPECT_EQ(driver.ask({"EVAL", "return false", "0"}, integers).value.type, resp::Type::null);
  EXPECT_EQ(driver.ask({"NOSUCH"}, integers).fault, FaultKind::error);
}

TEST_F(RedisClient, AnswersTimeoutAtTheDeadlineAndDropsTheLateReply) {
  Driver driver(url_of(*server), {.silence = 10'000_ms});
  driver.ask({"SET", "k", "old"});
  const std::uint64_t slow = driver.send({"DEBUG", "SLEEP", "1.5"}, {.deadline = steady_now() + 50_ms});
  const std::uint64_t behind = driver.send({"SET", "k", "new"}, {.deadline = steady_now() + 60_ms});
  const std::uint64_t patient = driver.send({"GET", "k"});
  ASSERT_TRUE(driver.wait([&] { return driver.heard.count(behind) > 0; }));
  EXPECT_EQ(driver.heard[slow].fault, FaultKind::timeout);
  EXPECT_EQ(driver.heard[behind].fault, FaultKind::timeout);
  EXPECT_TRUE(driver.heard[behind].was_sent);
  ASSERT_TRUE(driver.wait([&] { return driver.heard.count(patient) > 0; }));
  EXPECT_EQ(driver.heard[patient].text, "new");
  EXPECT_EQ(driver.client->counters().late_replies, 2u);
  EXPECT_EQ(driver.client->counters().timeouts, 2u);
  EXPECT_EQ(driver.client->counters().lost, 0u);
}

TEST_F(RedisClient, ContinuesAfterAPauseWithRepliesInOrder) {
  Driver driver(url_of(*server), {.silence = 10'000_ms});
  driver.ask({"SET", "n", "0"});
  server->pause();
  std::vector<std::uint64_t> hurried, patient;
  for (int i = 0; i < 50; ++i) {
    const Reading reading = i % 2 == 0 ? Reading::integers : Reading::value;
    hurried.push_back(driver.send({"INCR", "n"}, {.deadline = steady_now() + 500_ms, .reading = reading}));
    patient.push_back(driver.send({"INCR", "n"}));
  }
  ASSERT_TRUE(driver.wait([&] { return driver.heard.size() == 51; }));
  server->resume();
  ASSERT_TRUE(driver.wait([&] { return driver.heard.size() == 101; }));
  for (std::size_t i = 0; i < 50; ++i) {
    EXPECT_EQ(driver.heard[hurried[i]].fault, FaultKind::timeout);
    EXPECT_EQ(driver.heard[patient[i]].value.integer, static_cast<std::int64_t>(2 * i + 2));
  }
  for (const auto& row : driver.calls) EXPECT_EQ(row.second, 1);
}

TEST_F(RedisClient, SendsNoCommandWhoseDeadlineHasPassed) {
  Driver driver(url_of(*server), {.silence = 10'000_ms, .bytes_max = 64U << 20});
  driver.ask({"PING"});
  server->pause();
  for (int i = 0; i < 20; ++i) driver.send({"SET", "large", std::string(1'000'000, 'x')});  // fills the socket buffer
  driver.client->flush(steady_now());
  const Heard hurried = driver.ask({"INCR", "n"}, {.deadline = steady_now() + 30_ms});
  EXPECT_EQ(hurried.fault, FaultKind::timeout);
  EXPECT_FALSE(hurried.was_sent);
  server->resume();
  EXPECT_EQ(driver.ask({"GET", "n"}).value.type, resp::Type::null);
  EXPECT_EQ(driver.faults(), 1u) << driver.first_fault();
}

TEST_F(RedisClient, ReconnectsToAServerThatIsSilent) {
  Driver driver(url_of(*server), {.silence = 1'000_ms});
  driver.ask({"PING"});
  server->pause();
  const Micros start = steady_now();
  const Heard lost = driver.ask({"INCR", "n"});
  EXPECT_EQ(lost.fault, FaultKind::disconnected);
  EXPECT_TRUE(lost.was_sent);
  EXPECT_GE(steady_now() - start, 900_ms);
  EXPECT_EQ(driver.client->counters().lost, 1u);
  server->resume();
  EXPECT_TRUE(driver.wait([&] { return driver.ask({"PING"}).text == "PONG"; }));
}

TEST_F(RedisClient, ReportsLostCommandsAndReconnectsWhenTheServerIsBack) {
  Driver driver(url_of(*server), {.backoff_most = 200_ms});
  driver.ask({"PING"});
  server->pause();
  const std::uint64_t in_flight = driver.send({"INCR", "n"});
  driver.run_for(10_ms);
  server->kill();
  ASSERT_TRUE(driver.wait([&] { return driver.heard.count(in_flight) > 0; }));
  EXPECT_EQ(driver.heard[in_flight].fault, FaultKind::disconnected);
  EXPECT_TRUE(driver.heard[in_flight].was_sent);
  // Without a server, a command that cannot wait for the next dial is answered at once.
  ASSERT_TRUE(driver.wait([&] {
    const Heard refused = driver.ask({"PING"}, {.deadline = steady_now() + Micros{1'000}});
    return refused.fault == FaultKind::disconnected && !refused.was_sent;
  }));
  const std::uint64_t waiting = driver.send({"PING"}, {.deadline = steady_now() + 120'000_ms});
  driver.run_for(300_ms);
  EXPECT_EQ(driver.heard.count(waiting), 0u);
  ASSERT_TRUE(server->restart());
  ASSERT_TRUE(driver.wait([&] { return driver.heard.count(waiting) > 0; }));
  EXPECT_EQ(driver.heard[waiting].text, "PONG");
}

TEST_F(RedisClient, DialsWithinTheStepsOfItsBackoffAndSpreads) {
  server->kill();
  std::vector<Micros> first_waits;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Driver driver(url_of(*server), {.seed = seed});
    driver.client->connect();
    Micros now{1'000'000};
    for (std::size_t step = 0; step < 9; ++step) {
      while (driver.client->counters().failures <= step) {  // each dial is refused sooner or later
        driver.client->turn(now);
        pollfd poll{driver.client->descriptor(), POLLIN, 0};
        if (driver.client->counters().failures <= step) ::poll(&poll, 1, 1'000);
      }
      const Micros wait = driver.client->due() - now;
      EXPECT_LE(wait, std::min(Micros{50'000} * (1 << step), Micros{5'000'000})) << step;
      if (step == 0) first_waits.push_back(wait);
      now = driver.client->due();
    }
    EXPECT_EQ(driver.events.size(), 1u) << "the same failure is not reported again";
  }
  std::ranges::sort(first_waits);
  EXPECT_LT(first_waits.front(), Micros{15'000});
  EXPECT_GT(first_waits.back(), Micros{35'000});
}

TEST_F(RedisClient, IsBoundedInCommandsAndBytes) {
  Driver driver(url_of(*server), {.commands_max = 10, .bytes_max = 4'096});
  server->pause();
  for (int i = 0; i < 10; ++i) driver.send({"PING"});
  EXPECT_TRUE(driver.heard.empty());
  EXPECT_EQ(driver.heard[driver.send({"PING"})].fault, FaultKind::too_many_in_flight);
  server->resume();
  ASSERT_TRUE(driver.wait([&] { return driver.heard.size() == 11; }));
  driver.send({"SET", "k", std::string(5'000, 'x')});
  EXPECT_EQ(driver.heard[driver.send({"PING"})].fault, FaultKind::too_many_in_flight);
  ASSERT_TRUE(driver.wait([&] { return driver.heard.size() == 13; }));
  EXPECT_EQ(driver.ask({"PING"}).text, "PONG");
}

TEST_F(RedisClient, LoadsItsScriptsBeforeAnyCommandAndAgainWhenTheyAreGone) {
  Driver driver(url_of(*server));
  const int script = driver.client->add_script("return {tonumber(ARGV[1]), 7}");
  const Command order{.script = script, .reading = Reading::integers};
  EXPECT_EQ(driver.ask({"0", "5"}, order).integers, (std::vector<std::int64_t>{5, 7}));
  EXPECT_EQ(driver.client->counters().script_loads, 1u);
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 500; ++i) driver.send({"0", "5"}, order);
    driver.client->flush(steady_now());
    tell_server({"SCRIPT", "FLUSH"});
    for (int i = 0; i < 500; ++i) driver.send({"0", "5"}, order);
    ASSERT_TRUE(driver.wait([&] { return driver.heard.size() == driver.tags; }));
  }
  EXPECT_EQ(driver.faults(), 0u) << driver.first_fault();
  EXPECT_LE(driver.client->counters().script_loads, 4u);
  ASSERT_TRUE(server->restart());
  ASSERT_TRUE(driver.wait([&] { return !driver.ask({"0", "5"}, order).fault; }));
}

TEST_F(RedisClient, ClassifiesErrors) {
  Driver driver(url_of(*server));
  EXPECT_EQ(driver.ask({"NOSUCH"}).fault, FaultKind::error);
  driver.ask({"LPUSH", "list", "1"});
  EXPECT_EQ(driver.ask({"GET", "list"}).fault, FaultKind::wrong_type);
  EXPECT_EQ(driver.ask({"EVALSHA", std::string(40, 'a'), "0"}).fault, FaultKind::noscript);
  tell_server({"CONFIG", "SET", "maxmemory", "1"});
  EXPECT_EQ(driver.ask({"SET", "a", "b"}).fault, FaultKind::oom);
  tell_server({"CONFIG", "SET", "maxmemory", "0"});
  tell_server({"CONFIG", "SET", "min-replicas-to-write", "1"});
  EXPECT_EQ(driver.ask({"SET", "a", "b"}).fault, FaultKind::misconf);
  tell_server({"CONFIG", "SET", "min-replicas-to-write", "0"});
  tell_server({"ACL", "SETUSER", "default", "-get"});
  EXPECT_EQ(driver.ask({"GET", "a"}).fault, FaultKind::noperm);
  tell_server({"ACL", "SETUSER", "default", "+get"});
  EXPECT_EQ(driver.client->counters().lost, 0u);
}

TEST_F(RedisClient, ReportsThatAScriptBlocksTheServer) {
  tell_server({"CONFIG", "SET", "lua-time-limit", "10"});
  Driver driver(url_of(*server), {.silence = 10'000_ms}), other(url_of(*server));
  other.ask({"PING"});
  driver.ask({"PING"});
  const std::uint64_t endless = driver.send({"EVAL", "while true do end", "0"});
  driver.client->flush(steady_now());
  ASSERT_TRUE(other.wait([&] { return other.ask({"GET", "a"}).fault == FaultKind::busy; }));
  // A new connection that must load a script cannot, and reports why.
  Driver third(url_of(*server));
  third.client->add_script("return 1");
  ASSERT_TRUE(third.wait(
      [&] { return third.ask({"PING"}, {.deadline = steady_now() + Micros{1'000}}).fault == FaultKind::busy; }));
  other.ask({"SCRIPT", "KILL"});
  ASSERT_TRUE(driver.wait([&] { return driver.heard.count(endless) > 0; }));
  EXPECT_EQ(driver.heard[endless].fault, FaultKind::error);
  EXPECT_EQ(third.ask({"PING"}).text, "PONG");
}

TEST_F(RedisClient, ReconnectsOnceWhenTheServerIsAReplica) {
  Driver driver(url_of(*server));
  driver.ask({"PING"});
  tell_server({"REPLICAOF", "127.0.0.1", "1"});
  EXPECT_EQ(driver.ask({"SET", "a", "b"}).fault, FaultKind::readonly);
  ASSERT_TRUE(driver.wait([&] { return driver.client->counters().connects == 2; }));
  for (int i = 0; i < 5; ++i) EXPECT_EQ(driver.ask({"SET", "a", "b"}).fault, FaultKind::readonly);
  EXPECT_EQ(driver.client->counters().dials, 2u);
}

TEST_F(RedisClient, ReceivesMessagesAlsoAfterAReconnect) {
  Driver driver(url_of(*server), {.backoff_most = 100_ms});
  std::vector<std::string> heard;
  driver.client->subscribe("news", [&](std::string_view payload) { heard.emplace_back(payload); });
  ASSERT_TRUE(driver.wait([&] { return tell_server({"PUBLISH", "news", "one"}).integer == 1; }));
  ASSERT_TRUE(driver.wait([&] { return !heard.empty(); }));
  EXPECT_EQ(heard[0], "one");
  // Messages between replies.
  for (int i = 0; i < 100; ++i) driver.send({"INCR", "n"});
  tell_server({"PUBLISH", "news", "two"});
  tell_server({"PUBLISH", "other", "none"});
  for (int i = 0; i < 100; ++i) driver.send({"INCR", "n"});
  ASSERT_TRUE(driver.wait([&] { return heard.size() == 2 && driver.heard.size() == 200; }));
  EXPECT_EQ(driver.faults(), 0u);
  ASSERT_TRUE(server->restart());
  ASSERT_TRUE(driver.wait([&] { return tell_server({"PUBLISH", "news", "three"}).integer == 1; }));
  ASSERT_TRUE(driver.wait([&] { return heard.size() == 3; }));
}

TEST_F(RedisClient, KnowsWhetherItIsSubscribed) {
  tell_server({"ACL", "SETUSER", "limiter", "on", ">pw", "~*", "+@all", "resetchannels"});
  Driver driver("redis://limiter:pw@" + server->address(), {.backoff_most = 50_ms, .subscribe_gap = 50_ms});
  EXPECT_TRUE(driver.client->subscription().is_complete) << "there is no channel";
  std::vector<std::string> heard;
  for (const char* channel : {"news", "gossip"}) {
    driver.client->subscribe(channel, [&](std::string_view payload) { heard.emplace_back(payload); });
  }
  EXPECT_FALSE(driver.client->subscription().is_complete);
  ASSERT_TRUE(driver.wait([&] { return !driver.client->subscription().refusal.empty(); }));
  EXPECT_FALSE(driver.client->subscription().is_complete);
  const std::string refusal(driver.client->subscription().refusal);
  EXPECT_TRUE(refusal.starts_with(server->address() + ": SUBSCRIBE: NOPERM")) << refusal;
  EXPECT_EQ(driver.ask({"PING"}).text, "PONG") << "commands work nevertheless";
  // One subscription of two is not enough. A permission granted while connected takes effect.
  tell_server({"ACL", "SETUSER", "limiter", "&news"});
  ASSERT_TRUE(driver.wait([&] { return tell_server({"PUBLISH", "news", "one"}).integer == 1; }));
  ASSERT_TRUE(driver.wait([&] { return !heard.empty(); }));
  EXPECT_FALSE(driver.client->subscription().is_complete);
  tell_server({"ACL", "SETUSER", "limiter", "&gossip"});
  ASSERT_TRUE(driver.wait([&] { return driver.client->subscription().is_complete; }));
  EXPECT_TRUE(driver.client->subscription().refusal.empty());
  EXPECT_EQ(driver.client->counters().dials, 1u);
  // So does a revoked one: Redis then closes the connection.
  tell_server({"ACL", "SETUSER", "limiter", "resetchannels"});
  ASSERT_TRUE(driver.wait([&] { return !driver.client->subscription().is_complete; }));
  ASSERT_TRUE(driver.wait([&] { return !driver.client->subscription().refusal.empty(); }));
  tell_server({"ACL", "SETUSER", "limiter", "allchannels"});
  ASSERT_TRUE(driver.wait([&] { return driver.client->subscription().is_complete; }));
  server->kill();
  ASSERT_TRUE(driver.wait([&] { return !driver.client->subscription().is_complete; }));
}

TEST_F(RedisClient, ReportsThatItCannotSubscribeIfHelloIsRefused) {
  server.reset();
  server = start_redis({.settings = {"--rename-command", "HELLO", ""}});
  Driver driver(url_of(*server));
  driver.client->subscribe("news", [](std::string_view) {});
  driver.client->add_script("return 1");
  EXPECT_EQ(driver.ask({"0"}, {.script = 0}).value.integer, 1);
  ASSERT_TRUE(driver.wait([&] { return !driver.client->subscription().refusal.empty(); }));
  EXPECT_FALSE(driver.client->subscription().is_complete);
  EXPECT_NE(driver.client->subscription().refusal.find("needs RESP3"), std::string_view::npos);
  EXPECT_EQ(driver.client->counters().dials, 1u);
}

TEST_F(RedisClient, AnswersCommandsInFlightWhenItEnds) {
  auto driver = std::make_unique<Driver>(url_of(*server));
  driver->ask({"PING"});
  server->pause();
  const std::uint64_t sent = driver->send({"PING"});
  driver->client->flush(steady_now());
  const std::uint64_t unsent = driver->send({"PING"});
  driver->client.reset();
  EXPECT_EQ(driver->heard[sent].fault, FaultKind::disconnected);
  EXPECT_TRUE(driver->heard[sent].was_sent);
  EXPECT_EQ(driver->heard[unsent].fault, FaultKind::disconnected);
  EXPECT_FALSE(driver->heard[unsent].was_sent);
}

TEST_F(RedisClient, LogsInByPasswordFileWhichMayChange) {
  const std::string file = server->folder() + "/password";
  std::ofstream(file) << "first\n";
  tell_server({"ACL", "SETUSER", "limiter", "on", ">first", "~*", "+@all"});
  Driver driver("redis://" + server->address() + "/3?user=limiter&password_file=" + file, {.backoff_most = 50_ms});
  EXPECT_EQ(driver.ask({"ACL", "WHOAMI"}).text, "limiter");
  EXPECT_NE(driver.ask({"CLIENT", "INFO"}).text.find("db=3"), std::string::npos);
  tell_server({"ACL", "SETUSER", "limiter", "resetpass", ">second"});
  tell_server({"CLIENT", "KILL", "USER", "limiter"});
  ASSERT_TRUE(driver.wait(
      [&] { return driver.ask({"PING"}, {.deadline = steady_now() + Micros{1'000}}).fault == FaultKind::noauth; }));
  std::ofstream(file) << "second\n";
  EXPECT_EQ(driver.ask({"ACL", "WHOAMI"}).text, "limiter");
}

TEST_F(RedisClient, UsesResp2IfHelloIsRefused) {
  tell_server({"ACL", "SETUSER", "limiter", "on", ">pw", "~*", "+@all"});
  tell_server({"CONFIG", "SET", "requirepass", "pw"});
  server.reset();
  server = start_redis({.settings = {"--rename-command", "HELLO", "", "--requirepass", "pw"}});
  Driver driver("redis://:pw@" + server->address() + "/2");
  driver.client->add_script("return 1");
  EXPECT_EQ(driver.ask({"SET", "a", "b"}).text, "OK");
  EXPECT_EQ(driver.ask({"0"}, {.script = 0}).value.integer, 1);
  EXPECT_NE(driver.ask({"CLIENT", "INFO"}).text.find("db=2"), std::string::npos);
  EXPECT_EQ(driver.client->counters().dials, 1u);
}

TEST_F(RedisClient, ReportsAMissingOrWrongPassword) {
  server.reset();
  server = start_redis({.settings = {"--requirepass", "pw"}});
  for (const std::string user : {"", ":wrong@", "nobody:pw@"}) {
    Driver driver("redis://" + user + server->address());
    ASSERT_TRUE(driver.wait([&] {
      return driver.ask({"PING"}, {.deadline = steady_now() + Micros{1'000}}).fault == FaultKind::noauth;
    })) << user;
  }
}

TEST_F(RedisClient, ReportsThatTheServerIsLoading) {
  if (test::redis_major_version() < 7) GTEST_SKIP() << "it cannot be made to load slowly";
  server.reset();
  server = start_redis({.settings = {"--enable-debug-command", "yes", "--key-load-delay", "1000",
                                     "--loading-process-events-interval-bytes", "1024"}});
  tell_server({"DEBUG", "POPULATE", "3000"});
  Driver driver(url_of(*server));
  driver.client->add_script("return 1");
  EXPECT_EQ(driver.ask({"PING"}).text, "PONG");
  Driver admin(url_of(*server));
  admin.ask({"SAVE"});
  bool is_told = false;
  std::string last;
  for (int i = 0; i < 20 && !is_told; ++i) {  // a test that is not scheduled in time may miss the first
    const std::uint64_t reload = admin.send({"DEBUG", "RELOAD", "NOSAVE"});
    admin.client->flush(steady_now());
    while (!is_told && admin.heard.count(reload) == 0) {
      is_told = driver.ask({"GET", "a"}).fault == FaultKind::loading;
      admin.client->turn(steady_now());
    }
    last = admin.heard[reload].text;
  }
  ASSERT_TRUE(is_told) << "DEBUG RELOAD: " << last;
}

TEST_F(RedisClient, ConnectsThroughAUnixSocket) {
  server.reset();
  server = start_redis({.settings = {"--unixsocket", "/tmp/weir-redis-PORT.sock"}});
  const std::string path = "/tmp/weir-redis-" + std::to_string(server->port()) + ".sock";
  Driver driver("redis+unix://" + path + "?db=1");
  EXPECT_EQ(driver.ask({"PING"}).text, "PONG");
  EXPECT_EQ(driver.client->masters()[0].address, path);
  std::filesystem::remove(path);
}

TEST_F(RedisClient, LooksUpNamesOnAThreadAndTriesEachAddress) {
  Driver driver("redis://localhost:" + std::to_string(server->port()));  // ::1 comes first, where nothing listens
  EXPECT_EQ(driver.ask({"PING"}).text, "PONG");
  Driver lost("redis://nowhere.invalid");
  ASSERT_TRUE(lost.wait(
      [&] { return !lost.events.empty() || lost.ask({"PING"}, {.deadline = steady_now() + 1'000_ms}).fault; }));
}

TEST_F(RedisClient, BlockingClientWaitsForTheReply) {
  BlockingClient client(*base::redis::parse_url(url_of(*server)));
  EXPECT_EQ(client.call({"ECHO", "x"}, 60'000_ms)->text, "x");
  const std::string refusal = client.call({"NOSUCH"}, 60'000_ms).error().message;
  EXPECT_TRUE(refusal.starts_with("error: " + server->address() + ": ERR unknown command")) << refusal;
  server->kill();
  EXPECT_EQ(client.call({"PING"}, 100_ms).error().code, ErrorCode::unavailable);
}

}  // namespace
}  // namespace weir::redis
