// A fleet of one version of the key format: a node refuses to join servers that use another one, since they do not see
// each other's keys. The test plays the servers of the other version: it writes into Redis what they
// would write.

#include <mutex>

#include "fleet/redis_key.h"
#include "fleet_faults.h"

namespace weir::test {
namespace {

class FleetJoin : public FleetFaults {
 protected:
  // Writes the heartbeat of a server of that version. Version 1 wrote it to `weir:1!{0000}nodes`.
  void beat(char version, const std::string& id) const {
    const auto time = redis({"TIME"});
    ASSERT_EQ(time.items.size(), 2u);
    const std::string hash = fleet::own_key("weir:", "nodes", version);
    redis({"HSET", hash, id, time.items[0].text + "000 weir=0.1.0 policy=abc host=old pid=1"});
    redis({"PEXPIRE", hash, "600000"});  // longer than the test
  }
  void leave(char version, const std::string& id) const {
    redis({"HDEL", fleet::own_key("weir:", "nodes", version), id});
  }
  std::size_t keys(const std::string& pattern) const { return redis({"KEYS", pattern}).items.size(); }

  const Limit ninety_ = limit_of("90/year", Algorithm::fixed_window);
};

TEST_F(FleetJoin, TheNamesOfVersionOneAreKnown) {
  EXPECT_EQ(fleet::own_key("weir:", "nodes", '1'), "weir:1!{0000}nodes");
  EXPECT_EQ(fleet::own_key("weir:", "nodes"), std::string("weir:") + fleet::kRedisVersion + "!{0000}nodes");
}

TEST_F(FleetJoin, ANodeRefusesServersOfAnotherVersion) {
  for (const char version :
       {static_cast<char>(fleet::kRedisVersion - 1), static_cast<char>(fleet::kRedisVersion + 1)}) {
    SCOPED_TRACE(version);
    redis({"FLUSHALL"});
    beat(version, "a");
    beat(version, "b");
    std::vector<std::string> told;
    fleet::FleetStoreOptions options = with_deadline(kLong);
    std::mutex mutex;
    options.membership.on_other_version = [&](const fleet::OtherVersion& other, bool is_barred) {
      const std::lock_guard lock(mutex);
      told.push_back(fleet::to_string(other, "weir:") + (is_barred ? " barred" : ""));
    };
    Node node(url(), options);
    ASSERT_TRUE(until([&] { return node.store->background().membership().is_barred(); }));
    EXPECT_EQ(node.store->background().membership().other_version(), (fleet::OtherVersion{version, 2}));
    EXPECT_EQ(node.store->rank().nodes, 3u) << "it takes its part of a limit, as one of three";

    Tally tally;
    for (int i = 0; i < 200; ++i) ask(node, "k", ninety_, tally);
    EXPECT_EQ(tally.admitted(DecidedBy::local), 30) << tally.text();
    EXPECT_EQ(tally.asked(DecidedBy::local), 200) << tally.text();
    Tally closed;
    ask(node, "closed", ninety_, closed, Fallback::closed);
    EXPECT_EQ(closed.asked(DecidedBy::closed), 1) << closed.text();
    EXPECT_FALSE(node.store->background().is_strict());
    EXPECT_FALSE(node.limiter->reset("k")) << "as while Redis is unavailable";
    EXPECT_EQ(keys(std::string("weir:") + fleet::kRedisVersion + "*"), 0u) << "it writes nothing into Redis";

    leave(version, "a");
    EXPECT_TRUE(until([&] { return node.store->rank().nodes == 2; }));
    EXPECT_TRUE(node.store->background().membership().is_barred());
    leave(version, "b");
    ASSERT_TRUE(until([&] { return is_strict(node); })) << "it joins when they are gone";
    EXPECT_FALSE(node.store->background().membership().is_barred());
    EXPECT_TRUE(until([&] { return node.limiter->peek("k", ninety_)->remaining == 60; }))
        << "what it admitted is there";
    const std::lock_guard lock(mutex);
    ASSERT_EQ(told.size(), 3u);
    EXPECT_EQ(told[0], std::string("2 servers with the prefix weir: use version ") + version +
                           " of the key format, and this server uses version " + fleet::kRedisVersion + " barred");
    EXPECT_EQ(told[2], "");
  }
}

// The node may have started before the others. If it left the fleet, clients would get more than their limits.
TEST_F(FleetJoin, ANodeThatHasJoinedStays) {
  auto nodes = make_nodes(2, url(), with_deadline(kLong));
  beat(fleet::kRedisVersion - 1, "old");
  for (auto& node : nodes) {
    ASSERT_TRUE(until([&] { return node->store->background().membership().other_version().nodes == 1; }))
        << "it is reported";
    EXPECT_FALSE(node->store->background().membership().is_barred());
    EXPECT_TRUE(is_strict(*node));
    EXPECT_EQ(node->store->rank().nodes, 2u);
  }
  Node late(url(), with_deadline(kLong));
  EXPECT_TRUE(until([&] { return late.store->background().membership().is_barred(); }))
      << "one that comes later does not join";
}

// The node reaches Redis only some time after its start.
TEST_F(FleetJoin, ANodeLearnsItWhenRedisIsBack) {
  beat(fleet::kRedisVersion - 1, "old");
  proxy_->set({.is_refusing = true});
  Node node(proxied(), with_deadline(kLong));
  Tally tally;
  ASSERT_TRUE(until([&] {
    ask(node, "k", ninety_, tally);
    return tally.asked(DecidedBy::local) > 10;
  })) << tally.text();
  EXPECT_FALSE(node.store->background().membership().is_barred());
  proxy_->set({});
  ASSERT_TRUE(until([&] { return node.store->background().membership().is_barred(); }));
  EXPECT_FALSE(node.store->background().membership().has_joined());
  EXPECT_FALSE(is_strict(node));
}

// Another prefix is another fleet.
TEST_F(FleetJoin, ANodeWithAnotherPrefixJoins) {
  beat(fleet::kRedisVersion - 1, "old");
  fleet::FleetStoreOptions options = with_deadline(kLong);
  options.pipeline.prefix = "other:";
  Node node(url(), options);
  EXPECT_TRUE(until([&] { return is_strict(node) && node.store->background().membership().has_joined(); }));
  EXPECT_EQ(node.store->background().membership().other_version(), fleet::OtherVersion{});
}

}  // namespace
}  // namespace weir::test
