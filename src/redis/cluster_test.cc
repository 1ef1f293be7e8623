// Tests the client on a real cluster: slot owners, redirections, slots that move under load, a failover.
//
// A cluster takes some seconds to form, so each test checks many things.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdio>
#include <set>
#include <thread>

#include "redis_driver.h"
#include "redis_fleet.h"

namespace weir::redis {
namespace {

class RedisClusterClient : public ::testing::Test {
 protected:
  void SetUp() override {
    const Micros start = steady_now();
    auto started = test::RedisCluster::start();
    ASSERT_TRUE(started) << started.error().message;
    cluster = *std::move(started);
    std::printf("the cluster is ready after %lld ms\n", static_cast<long long>((steady_now() - start).count() / 1'000));
  }
  std::string url() const { return "redis+cluster://" + cluster->addresses(); }
  void move_a_slot_by_hand();
  Micros fail_over(Driver& driver, std::size_t master);

  std::unique_ptr<test::RedisCluster> cluster;
};

Command at(const std::string& key, Command order = {}) {
  order.slot = slot_of(key);
  return order;
}

TEST(RedisClusterAddress, ReportsAServerThatIsNotInACluster) {
  const auto server = test::RedisServer::start({});
  ASSERT_TRUE(server) << server.error().message;
  Driver driver("redis+cluster://" + (*server)->address());
  EXPECT_TRUE(driver.wait([&] {
    const std::string text = driver.ask({"GET", "a"}, {.slot = 1, .deadline = steady_now() + 10_ms}).text;
    return text.find((*server)->address() + ": ERR This instance has cluster support disabled") != text.npos &&
           text.find("this Redis is not a cluster: write redis://") != text.npos;
  }));
}

TEST_F(RedisClusterClient, SendsEachCommandToTheOwnerOfItsSlotAndFollowsAMigration) {
  Driver driver("redis+cluster://" + cluster->replica(1).address());  // a replica knows the map too
  for (int i = 0; i < 300; ++i) {
    const std::string key = "k" + std::to_string(i);
    driver.send({"SET", key, key}, at(key));
  }
  ASSERT_TRUE(driver.wait([&] { return driver.heard.size() == 300; }));
  EXPECT_EQ(driver.faults(), 0u) << driver.first_fault();
  EXPECT_EQ(driver.client->counters().redirects, 0u);
  const std::uint64_t tries = test::redis_major_version() < 7 ? 2 : 1;  // CLUSTER SHARDS is unknown before version 7
  EXPECT_EQ(driver.client->counters().refreshes, tries);
  const auto masters = driver.client->masters();
  ASSERT_EQ(masters.size(), 3u);
  for (const NodeState& master : masters) {
    EXPECT_TRUE(master.is_connected);
    Command order;
    order.node = master.index;
    EXPECT_GT(driver.ask({"DBSIZE"}, order).value.integer, 50) << master.address;
  }
  EXPECT_LE(driver.client->counters().dials, 3u + tries);  // the extra ones are the asked replica

  // A command sent to the wrong node is redirected by MOVED.
  EXPECT_EQ(driver.ask({"GET", "k7"}, {.slot = (slot_of("k7") + 8'000) % kSlots}).text, "k7");
  EXPECT_EQ(driver.client->counters().redirects, 1u);
  EXPECT_EQ(driver.ask({"PING"}).text, "PONG");
  EXPECT_EQ(driver.ask({"SELECT", "1"}).fault, FaultKind::error);

  // Scripts are on every master, and are reloaded where they were flushed.
  const int script = driver.client->add_script("return {redis.call('INCR', KEYS[1])}");
  for (const NodeState& master : masters) driver.ask({"SCRIPT", "FLUSH"}, {.node = master.index});
  for (int i = 0; i < 300; ++i) {
    const std::string key = "n" + std::to_string(i);
    driver.send({"1", key}, at(key, {.script = script, .reading = Reading::integers}));
  }
  ASSERT_TRUE(driver.wait([&] { return driver.heard.size() == driver.tags; }));
  EXPECT_EQ(driver.client->counters().script_loads, 3u);

  // A message published on any node is received.
  std::vector<std::string> heard;
  driver.client->subscribe("news", [&](std::string_view payload) { heard.emplace_back(payload); });
  ASSERT_TRUE(driver.wait([&] {
    test::call_redis(cluster->master(0).port(), {"PUBLISH", "news", "x"});
    return !heard.empty();
  }));
  move_a_slot_by_hand();
}

TEST_F(RedisClusterClient, ServesEverythingWhileSlotsMove) {
  Driver driver(url(), {.commands_max = 100'000});
  const int script =
      driver.client->add_script("return {redis.call('INCR', KEYS[1]), redis.call('INCR', KEYS[2] or KEYS[1])}");
  // Keys in the slots that will move: reshard moves slots from 0 on first.
  std::vector<std::string> tags;
  for (int i = 0; tags.size() < 200; ++i) {
    if (slot_of("t" + std::to_string(i)) < 40) tags.push_back("t" + std::to_string(i));
  }
  EXPECT_EQ(driver.ask({"PING"}).text, "PONG");  // fetches the map before slots move
  int outcome = 0;
  std::atomic<bool> is_over{false};
  std::thread resharding([&] {
    outcome = cluster->reshard(0, 1, 40);
    is_over = true;
  });
  std::map<std::string, std::int64_t> counts;
  for (bool is_last = false; !is_last;) {
    is_last = is_over;  // one more round after the move
    for (std::size_t i = 0; i < tags.size(); ++i) {
      const std::string& tag = tags[driver.tags % tags.size()];
      ++counts[tag];
      driver.send({"2", "{" + tag + "}a", "{" + tag + "}b"},
                  at(tag, {.script = script, .deadline = steady_now() + 5'000_ms, .reading = Reading::integers}));
    }
    driver.wait([&] { return driver.heard.size() == driver.tags; });
  }
  resharding.join();
  EXPECT_EQ(outcome, 0);
  EXPECT_EQ(driver.faults(), 0u) << driver.first_fault();
  for (const auto& row : counts) {  // each charged exactly once
    const std::string key = "{" + row.first + "}a";
    ASSERT_EQ(driver.ask({"GET", key}, at(key)).text, std::to_string(row.second)) << key;
  }
  const Counters& all = driver.client->counters();
  std::printf("%llu commands, %llu redirects, %llu retries, %llu refreshes\n",
              static_cast<unsigned long long>(all.commands), static_cast<unsigned long long>(all.redirects),
              static_cast<unsigned long long>(all.retries), static_cast<unsigned long long>(all.refreshes));
  EXPECT_GT(all.redirects, 0u);
}

// A slot between two nodes, set by hand: the first node has begun to migrate it to the second.
void RedisClusterClient::move_a_slot_by_hand() {
  const std::uint16_t from = cluster->master(0).port(), to = cluster->master(1).port();
  const std::string from_id = test::call_redis(from, {"CLUSTER", "MYID"}).text;
  const std::string to_id = test::call_redis(to, {"CLUSTER", "MYID"}).text;
  std::string tag;
  for (int i = 0; tag.empty(); ++i) {
    if (slot_of("t" + std::to_string(i)) < 5'000) tag = "t" + std::to_string(i);
  }
  const std::string slot = std::to_string(slot_of(tag)), a = "{" + tag + "}a", b = "{" + tag + "}b";
  Driver driver(url());
  ASSERT_EQ(driver.ask({"SET", a, "1"}, at(tag)).text, "OK");
  test::call_redis(to, {"CLUSTER", "SETSLOT", slot, "IMPORTING", from_id});
  test::call_redis(from, {"CLUSTER", "SETSLOT", slot, "MIGRATING", to_id});

  // Existing keys are still served by the old node. Missing keys are asked for at the new node, while the map stays.
  EXPECT_EQ(driver.ask({"GET", a}, at(tag)).text, "1");
  EXPECT_EQ(driver.client->counters().redirects, 0u);
  EXPECT_EQ(driver.ask({"SET", b, "2"}, at(tag)).text, "OK");
  EXPECT_EQ(driver.ask({"GET", b}, at(tag)).text, "2");
  EXPECT_EQ(driver.client->counters().redirects, 2u);
  EXPECT_EQ(test::call_redis(to, {"CLUSTER", "COUNTKEYSINSLOT", slot}).integer, 1);

  // One key is on each node: fails until the deadline, or until both keys are on one node.
  ASSERT_TRUE(driver.wait([&] {  // if the machine is too busy for a reply in time, it is a timeout
    return driver.ask({"MGET", a, b}, at(tag, {.deadline = steady_now() + 100_ms})).fault == FaultKind::try_again;
  }));
  EXPECT_GT(driver.client->counters().retries, 2u);
  const std::uint64_t patient = driver.send({"MGET", a, b}, at(tag));
  driver.run_for(30_ms);
  EXPECT_EQ(driver.heard.count(patient), 0u);
  test::call_redis(from, {"MIGRATE", "127.0.0.1", std::to_string(to), a, "0", "1000"});
  ASSERT_TRUE(driver.wait([&] { return driver.heard.count(patient) > 0; }));
  EXPECT_FALSE(driver.heard[patient].fault) << driver.heard[patient].text;
  EXPECT_EQ(driver.heard[patient].value.items.size(), 2u);

  // A node that does not import the slot redirects everything back.
  test::call_redis(to, {"CLUSTER", "SETSLOT", slot, "STABLE"});
  EXPECT_EQ(driver.ask({"GET", "{" + tag + "}c"}, at(tag)).fault, FaultKind::moved_too_often);
  test::call_redis(from, {"CLUSTER", "SETSLOT", slot, "STABLE"});

  // A slot without an owner.
  const std::uint64_t refreshes = driver.client->counters().refreshes;
  const Micros since = steady_now();
  test::call_redis(from, {"CLUSTER", "DELSLOTS", slot});
  ASSERT_TRUE(driver.wait([&] {
    return driver.ask({"GET", a}, at(tag, {.deadline = steady_now() + 500_ms})).fault == FaultKind::cluster_down;
  }));
  EXPECT_LE(driver.client->counters().refreshes - refreshes,
            static_cast<std::uint64_t>((steady_now() - since) / 100_ms + 1));
  test::call_redis(from, {"CLUSTER", "ADDSLOTS", slot});
  EXPECT_FALSE(driver.ask({"GET", a}, at(tag)).fault);

  // MOVED is followed at once, without another refresh of the map.
  Driver slow(url(), {.refresh_gap = 60'000_ms});
  EXPECT_FALSE(slow.ask({"GET", a}, at(tag)).fault);
  for (const std::uint16_t port : {to, from}) test::call_redis(port, {"CLUSTER", "SETSLOT", slot, "NODE", to_id});
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(slow.ask({"GET", a}, at(tag)).fault);
  EXPECT_EQ(slow.client->counters().redirects, 1u);
}

// Kills a master and requests one of its keys until a node answers. Returns how long that took.
Micros RedisClusterClient::fail_over(Driver& driver, std::size_t master) {
  std::string key;
  for (int i = 0; key.empty(); ++i) {
    if (slot_of("s" + std::to_string(i)) / 5'462 == static_cast<int>(master)) key = "s" + std::to_string(i);
  }
  EXPECT_EQ(driver.ask({"SET", key, "1"}, at(key)).text, "OK");
  const std::uint64_t refreshes_before = driver.client->counters().refreshes;
  const Micros start = steady_now();
  cluster->master(master).kill();
  std::size_t faults = 0;
  while (driver.ask({"SET", key, "2"}, at(key, {.deadline = steady_now() + 15_ms})).fault) {
    driver.run_for(5_ms);
    if (steady_now() - start > 120'000_ms) break;
    ++faults;
  }
  const Micros took = steady_now() - start;
  const std::uint64_t refreshes = driver.client->counters().refreshes - refreshes_before;
  std::printf("back after %lld ms, %zu faults, %llu refreshes\n", static_cast<long long>(took.count() / 1'000), faults,
              static_cast<unsigned long long>(refreshes));
  EXPECT_GT(faults, 0u);
  EXPECT_LE(refreshes, static_cast<std::uint64_t>(took / 100_ms + 2));
  return took;
}

TEST_F(RedisClusterClient, FollowsAFailoverWithoutAStormOfRefreshes) {
  cluster->expect_failover();
  Driver driver(url());
  driver.client->connect();
  ASSERT_TRUE(driver.wait([&] { return driver.client->masters().size() == 3; }));
  EXPECT_LT(fail_over(driver, 2), 120'000_ms);
  EXPECT_EQ(driver.ask({"SET", "b", "1"}, at("b")).text, "OK");
  ASSERT_TRUE(driver.wait([&] {
    std::set<std::string> addresses;
    for (const NodeState& node : driver.client->masters()) addresses.insert(node.address);
    return addresses.count(cluster->master(2).address()) == 0 && addresses.count(cluster->replica(2).address()) == 1;
  }));
}

// Any remaining server will do, since messages go to all servers.
TEST_F(RedisClusterClient, SubscribesToAnotherServerWhenItsOwnIsGone) {
  Driver driver(url());
  driver.client->connect();
  std::vector<std::string> heard;
  driver.client->subscribe("news", [&](std::string_view payload) { heard.emplace_back(payload); });
  ASSERT_TRUE(driver.wait([&] { return driver.client->subscription().is_complete; }));
  const auto has_it = [&](std::size_t i) {
    return test::call_redis(cluster->master(i).port(), {"PUBSUB", "NUMSUB", "news"}).items[1].integer == 1;
  };
  std::size_t chosen = 0;
  while (chosen < 2 && !has_it(chosen)) ++chosen;
  ASSERT_TRUE(has_it(chosen));
  cluster->replica(chosen).kill();  // no replica can take over, so the map stays as it is
  cluster->master(chosen).kill();
  ASSERT_TRUE(driver.wait([&] { return !driver.client->subscription().is_complete; }))
      << "it may have missed something";
  ASSERT_TRUE(driver.wait([&] { return driver.client->subscription().is_complete; }));
  test::call_redis(cluster->master((chosen + 1) % 3).port(), {"PUBLISH", "news", "on"});
  EXPECT_TRUE(driver.wait([&] { return !heard.empty(); }));
}

class RedisClusterClientLong : public RedisClusterClient {};

TEST_F(RedisClusterClientLong, AnswersAPatientCommandDespiteAFailover) {
  cluster->expect_failover();
  Driver driver(url());
  std::string key;
  for (int i = 0; key.empty(); ++i) {
    if (slot_of("s" + std::to_string(i)) / 5'462 == 1) key = "s" + std::to_string(i);
  }
  EXPECT_EQ(driver.ask({"SET", key, "1"}, at(key)).text, "OK");
  cluster->master(1).kill();
  driver.run_for(50_ms);
  const Heard patient = driver.ask({"SET", key, "1"}, at(key, {.deadline = steady_now() + 15'000_ms}));
  EXPECT_FALSE(patient.fault) << patient.text;
}

// Slots move back and forth with thousands of keys, while all of them are incremented.
TEST_F(RedisClusterClientLong, ServesEverythingWhileAThousandSlotsMove) {
  Driver driver(url(), {.commands_max = 100'000});
  const int script = driver.client->add_script("return {redis.call('INCR', KEYS[1]), redis.call('INCR', KEYS[2])}");
  std::map<std::string, std::int64_t> counts;
  for (int i = 0; counts.size() < 2'000; ++i) {
    if (slot_of("t" + std::to_string(i)) < 1'000) counts["t" + std::to_string(i)] = 0;
  }
  int outcome = 0;
  std::atomic<bool> is_over{false};
  const Micros start = steady_now();
  std::thread resharding([&] {
    outcome = cluster->reshard(0, 1, 1'000) | cluster->reshard(1, 0, 500);
    is_over = true;
  });
  std::size_t faults = 0, charges = 0;
  while (!is_over) {
    for (auto& row : counts) {
      ++row.second;
      ++charges;
      driver.send({"2", "{" + row.first + "}a", "{" + row.first + "}b"},
                  at(row.first, {.script = script, .deadline = steady_now() + 5'000_ms, .reading = Reading::integers}));
    }
    ASSERT_TRUE(driver.wait([&] { return driver.heard.size() == driver.tags; }));
    faults += driver.faults();
    driver.heard.clear();
    driver.tags = 0;
  }
  resharding.join();
  const Counters& all = driver.client->counters();
  const std::int64_t took_ms = (steady_now() - start).count() / 1'000;
  std::printf("%zu charges in %lld ms, %zu faults, %llu redirects, %llu retries, %llu refreshes\n", charges,
              static_cast<long long>(took_ms), faults, static_cast<unsigned long long>(all.redirects),
              static_cast<unsigned long long>(all.retries), static_cast<unsigned long long>(all.refreshes));
  EXPECT_EQ(outcome, 0);
  EXPECT_EQ(faults, 0u);
  EXPECT_LE(all.refreshes, static_cast<std::uint64_t>(took_ms / 100 + 2));
  for (const auto& row : counts) {
    const std::string key = "{" + row.first + "}b";
    ASSERT_EQ(driver.ask({"GET", key}, at(key)).text, std::to_string(row.second)) << key;
  }
}

TEST_F(RedisClusterClientLong, SurvivesTheLossOfEachMasterInTurn) {
  cluster->expect_failover();
  Driver driver(url());
  for (const std::size_t master : {0U, 1U, 2U}) {
    EXPECT_LT(fail_over(driver, master), 120'000_ms);
    ASSERT_TRUE(cluster->master(master).restart());
    driver.run_for(3'000_ms);  // it becomes a replica, and its vote is needed for the next failover
  }
}

}  // namespace
}  // namespace weir::redis
