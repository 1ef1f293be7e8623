// A fleet of one version of the key format: a node refuses to join servers that use another one, since they do not see
// each other's keys. The servers of the other version are what they write into Redis.

#include <mutex>

#include "fleet/own_key.h"
#include "fleet_faults.h"

namespace weir::test {
namespace {

class FleetJoin : public FleetFaults {
 protected:
  // As a server of that version does with every heartbeat. `weir:1!{0000}nodes` is what version 1 wrote.
  void beat(char version, const std::string& id) const {
    const auto time = redis({"TIME"});
    ASSERT_EQ(time.items.size(), 2u);
    const std::string hash = own_key("weir:", "nodes", version);
    redis({"HSET", hash, id, time.items[0].text + "000 weir=0.1.0 policy=abc host=old pid=1"});
    redis({"PEXPIRE", hash, "600000"});  // longer than the test
  }
  void leave(char version, const std::string& id) const { redis({"HDEL", own_key("weir:", "nodes", version), id}); }
  std::size_t keys(const std::string& pattern) const { return redis({"KEYS", pattern}).items.size(); }

  const Limit ninety_ = limit_of("90/year", Algorithm::fixed_window);
};

TEST_F(FleetJoin, TheNamesOfVersionOneAreKnown) {
  EXPECT_EQ(own_key("weir:", "nodes", '1'), "weir:1!{0000}nodes");
  EXPECT_EQ(own_key("weir:", "nodes"), std::string("weir:") + kRedisVersion + "!{0000}nodes");
}

TEST_F(FleetJoin, ANodeRefusesServersOfAnotherVersion) {
  for (const char version : {static_cast<char>(kRedisVersion - 1), static_cast<char>(kRedisVersion + 1)}) {
    SCOPED_TRACE(version);
    redis({"FLUSHALL"});
    beat(version, "a");
    beat(version, "b");
    std::vector<std::string> told;
    FleetStoreOptions options = with_deadline(kLong);
    std::mutex mutex;
    options.keeper.on_strangers = [&](const Strangers& strangers, bool is_barred) {
      const std::lock_guard lock(mutex);
      told.push_back(to_string(strangers, "weir:") + (is_barred ? " barred" : ""));
    };
    Node node(url(), options);
    ASSERT_TRUE(until([&] { return node.store->keeper().is_barred(); }));
    EXPECT_EQ(node.store->keeper().strangers(), (Strangers{version, 2}));
    EXPECT_EQ(node.store->seat().nodes, 3u) << "its part of a limit, as if it was one of them";

    Tally tally;
    for (int i = 0; i < 200; ++i) ask(node, "k", ninety_, tally);
    EXPECT_EQ(tally.admitted(DecidedBy::local), 30) << tally.text();
    EXPECT_EQ(tally.asked(DecidedBy::local), 200) << tally.text();
    Tally closed;
    ask(node, "closed", ninety_, closed, Fallback::closed);
    EXPECT_EQ(closed.asked(DecidedBy::closed), 1) << closed.text();
    EXPECT_FALSE(node.store->keeper().is_strict());
    EXPECT_FALSE(node.limiter->reset("k")) << "as while Redis is unavailable";
    EXPECT_EQ(keys(std::string("weir:") + kRedisVersion + "*"), 0u) << "it writes nothing into Redis";

    leave(version, "a");
    EXPECT_TRUE(until([&] { return node.store->seat().nodes == 2; }));
    EXPECT_TRUE(node.store->keeper().is_barred());
    leave(version, "b");
    ASSERT_TRUE(until([&] { return is_strict(node); })) << "it joins when they are gone";
    EXPECT_FALSE(node.store->keeper().is_barred());
    EXPECT_TRUE(until([&] { return node.limiter->peek("k", ninety_)->remaining == 60; }))
        << "what it admitted is there";
    const std::lock_guard lock(mutex);
    ASSERT_EQ(told.size(), 3u);
    EXPECT_EQ(told[0], std::string("2 servers with the prefix weir: use version ") + version +
                           " of the key format, and this server uses version " + kRedisVersion + " barred");
    EXPECT_EQ(told[2], "");
  }
}

// It may have been started before them; to stop would leave clients without a limit.
TEST_F(FleetJoin, ANodeThatHasJoinedStays) {
  auto nodes = make_nodes(2, url(), with_deadline(kLong));
  beat(kRedisVersion - 1, "old");
  for (auto& node : nodes) {
    ASSERT_TRUE(until([&] { return node->store->keeper().strangers().nodes == 1; })) << "it is reported";
    EXPECT_FALSE(node->store->keeper().is_barred());
    EXPECT_TRUE(is_strict(*node));
    EXPECT_EQ(node->store->seat().nodes, 2u);
  }
  Node late(url(), with_deadline(kLong));
  EXPECT_TRUE(until([&] { return late.store->keeper().is_barred(); })) << "one that comes later does not join";
}

// Redis is reached only after the start.
TEST_F(FleetJoin, ANodeLearnsItWhenRedisIsBack) {
  beat(kRedisVersion - 1, "old");
  proxy_->set({.is_refusing = true});
  Node node(proxied(), with_deadline(kLong));
  Tally tally;
  ASSERT_TRUE(until([&] {
    ask(node, "k", ninety_, tally);
    return tally.asked(DecidedBy::local) > 10;
  })) << tally.text();
  EXPECT_FALSE(node.store->keeper().is_barred());
  proxy_->set({});
  ASSERT_TRUE(until([&] { return node.store->keeper().is_barred(); }));
  EXPECT_FALSE(node.store->keeper().has_joined());
  EXPECT_FALSE(is_strict(node));
}

// Another prefix is another fleet.
TEST_F(FleetJoin, ANodeWithAnotherPrefixJoins) {
  beat(kRedisVersion - 1, "old");
  FleetStoreOptions options = with_deadline(kLong);
  options.lane.prefix = "other:";
  Node node(url(), options);
  EXPECT_TRUE(until([&] { return is_strict(node) && node.store->keeper().has_joined(); }));
  EXPECT_EQ(node.store->keeper().strangers(), Strangers{});
}

}  // namespace
}  // namespace weir::test
