// The seams of a fleet on a real cluster, mixed at random: after every step, all nodes together have admitted no more
// than docs/fleet.md, "What can be let through", states for what has happened so far.
//
// A seed is a history: checks of one key and of keys on several servers, reservations and refunds of such; a server of
// Redis that is paused, floods of new keys on nodes whose tables have one page, and failovers, both by CLUSTER FAILOVER
// and because a master is killed. The machine decides how it interleaves, so a seed repeats the history, not each
// moment. fleet_seam_random_test.cc does the same with one server, fleet_seam_model_test.cc in virtual time.
// WEIR_SEED=n runs one history.

#include <algorithm>
#include <array>
#include <cstdlib>

#include "cluster_key.h"
#include "fleet_seam_bound.h"
#include "redis_fleet.h"

namespace weir::test {
namespace {

constexpr std::size_t kKeys = 3;  // key i lies on server i
constexpr std::size_t kNodes = 2;
constexpr Micros kDeadline{40'000};
constexpr std::uint64_t kFamily = 7;  // all are of one rule

std::int64_t offset_of(const RedisServer& server, const std::string& field) {
  const std::string info = call_redis(server.port(), {"INFO", "replication"}).text;
  const std::size_t at = info.find(field + ":");
  return at == info.npos ? -1 : std::strtoll(info.c_str() + at + field.size() + 1, nullptr, 10);
}

// Of a cluster, with roles that change.
class Servers {
 public:
  explicit Servers(RedisCluster& cluster) : cluster_(cluster) {}

  RedisServer& master(std::size_t i) const { return is_swapped_[i] ? cluster_.replica(i) : cluster_.master(i); }
  RedisServer& replica(std::size_t i) const { return is_swapped_[i] ? cluster_.master(i) : cluster_.replica(i); }
  std::string url() const { return "redis+cluster://" + cluster_.addresses(); }

  void pause(std::size_t i) const {  // also the replica, which would take over
    replica(i).pause();
    master(i).pause();
  }
  void resume(std::size_t i) const {
    master(i).resume();
    replica(i).resume();
  }
  // Whether the replica has every write that the master had by now.
  bool is_replicated(std::size_t i) const {
    const std::int64_t written = offset_of(master(i), "master_repl_offset");
    return written >= 0 && until([&] { return offset_of(replica(i), "slave_repl_offset") >= written; });
  }
  bool has_taken_over(std::size_t i) {
    if (!until([&] { return is_master(replica(i)); })) return false;
    is_swapped_[i] = !is_swapped_[i];
    return true;
  }
  // A majority of the masters must vote for it, so the test asks again.
  bool fail_over(std::size_t i) {
    return until([&] {
             call_redis(replica(i).port(), {"CLUSTER", "FAILOVER"});
             return until([&] { return is_master(replica(i)); }, 2'000);
           }) &&
           has_taken_over(i);
  }
  // Between these two, the cluster fails over. becomes_whole() waits until the old master is a replica of the new one.
  void expect_failover() const { cluster_.expect_failover(); }
  bool becomes_whole(std::size_t i) const {
    const bool is_whole = until([&] {
      const std::string info = call_redis(replica(i).port(), {"INFO", "replication"}).text;
      return info.find("role:slave") != info.npos && info.find("master_link_status:up") != info.npos;
    });
    cluster_.expect_stalls();
    return is_whole;
  }

 private:
  RedisCluster& cluster_;
  std::array<bool, kKeys> is_swapped_{};
};

struct SeamNode : Knowledge<kKeys> {
  SeamNode(const std::string& url, std::size_t keys) {
    fleet::FleetStoreOptions options = with_deadline(kDeadline);
    options.membership.believed = Micros{2'000'000};
    node = std::make_unique<Node>(url, options, keys);
  }
  bool is_sharing(const std::string& key) const { return node->store->handover().concerns(slot_of_key(key)); }

  std::unique_ptr<Node> node;
  std::array<std::int64_t, kKeys> most_alone{};
};

class World : public SeamBound<SeamNode, kKeys> {
 public:
  World(Servers& servers, std::uint64_t seed)
      : SeamBound(limit_of("60/year", seed % 2 == 0 ? Algorithm::fixed_window : Algorithm::token_bucket), seed),
        servers_(servers),
        seed_(seed) {
    for (std::size_t i = 0; i < kKeys; ++i) names_[i] = key_on(i, "s" + std::to_string(seed) + "/");
    for (std::size_t i = 0; i < kNodes; ++i) nodes_.push_back(std::make_unique<SeamNode>(servers.url(), 1));
    for (const auto& node : nodes_) {
      EXPECT_TRUE(until([&] { return is_strict(*node->node) && node->node->store->rank().nodes == kNodes; }));
    }
  }

  std::string run(int rounds) {
    for (int round = 0; round < rounds; ++round) {
      const std::string where = "round " + std::to_string(round) + ": ";
      if (std::string why = rest(); !why.empty()) return where + why;
      for (std::int64_t i = 8 + draw(8); i > 0; --i) {
        step();
        if (std::string why = broken_bound(); !why.empty()) return where + why;
      }
      if (std::string why = rest(); !why.empty()) return where + why;
      const auto server = static_cast<std::size_t>(draw(kKeys));
      if (std::string why = (seed_ + static_cast<std::uint64_t>(round)) % 2 == 0 ? fail_over(server) : lose(server);
          !why.empty()) {
        return where + why;
      }
    }
    if (std::string why = rest(); !why.empty()) return why;
    return drain();
  }
  std::string text() const override {
    return std::string(weir::to_string(limit_.algorithm)) + ", " + tally_.text() + sums();
  }

 private:
  SeamNode& some_node() { return *nodes_[static_cast<std::size_t>(draw(kNodes))]; }
  std::vector<std::size_t> some_keys(std::size_t least) {
    std::vector<std::size_t> keys{0, 1, 2};
    std::ranges::shuffle(keys, dice_);
    keys.resize(least + static_cast<std::size_t>(draw(static_cast<std::int64_t>(kKeys - least) + 1)));
    return keys;
  }
  std::vector<Charge> charges_of(const std::vector<std::size_t>& keys, std::int64_t cost) const {
    std::vector<Charge> charges;
    for (const std::size_t key : keys) {
      charges.push_back({.key = names_[key], .limit = &limit_, .cost = cost, .family = kFamily});
    }
    return charges;
  }

  // This node's part of what it last heard was left, rounded up.
  std::int64_t part(const SeamNode& node, std::size_t key) const {
    const std::int64_t left = limit_.capacity - std::min(limit_.capacity, node.heard[key].value_or(0));
    return (left + static_cast<std::int64_t>(kNodes) - 1) / static_cast<std::int64_t>(kNodes);
  }
  // What a node admits by itself, others may admit once more in Redis. Its share may have begun before the last answer.
  static void decides_alone(SeamNode& node, std::size_t key) {
    node.alone[key] = std::max(node.alone[key], node.most_alone[key]);
  }
  void note(SeamNode& node, std::size_t key, const Decision& decision, std::int64_t admitted) {
    net_[key] += admitted;
    if (decision.decided_by == DecidedBy::strict) {
      node.heard[key] = limit_.capacity - decision.remaining;
      node.most_alone[key] = std::max(node.most_alone[key], part(node, key));
    } else if (admitted > 0 && decision.decided_by == DecidedBy::local && !is_outage_[key]) {
      decides_alone(node, key);
    }
  }

  void check(SeamNode& node, const std::vector<std::size_t>& keys, std::int64_t cost) {
    const auto verdict = ask(*node.node, charges_of(keys, cost), tally_);
    ASSERT_TRUE(verdict) << verdict.error().message;
    for (std::size_t i = 0; i < keys.size(); ++i) {
      note(node, keys[i], verdict->decisions[i], verdict->allowed ? cost : 0);
    }
  }
  void check(SeamNode& node, std::size_t key, std::int64_t cost) { check(node, std::vector{key}, cost); }
  void some_checks(std::int64_t most) {
    for (std::int64_t i = draw(most + 1); i > 0; --i) {
      draw(2) == 0 ? check(some_node(), static_cast<std::size_t>(draw(kKeys)), 1 + draw(3))
                   : check(some_node(), some_keys(2), 1 + draw(2));
    }
  }
  void reserve() {
    SeamNode& node = some_node();
    Reservation made{&node, some_keys(1), "s" + std::to_string(seed_) + "#" + std::to_string(next_id_++), 1 + draw(5)};
    const auto reserved = node.node->limiter->reserve(charges_of(made.keys, made.cost), {.id = made.id});
    if (!reserved || !reserved->verdict.allowed) return;
    for (std::size_t i = 0; i < made.keys.size(); ++i) {
      note(node, made.keys[i], reserved->verdict.decisions[i], made.cost);
    }
    open_.push_back(std::move(made));
  }
  // Nodes do not know what Redis has refunded, and Redis admits it once more.
  void commit() {
    if (open_.empty()) return;
    const auto which = static_cast<std::size_t>(draw(static_cast<std::int64_t>(open_.size())));
    const Reservation made = open_[which];
    open_.erase(open_.begin() + static_cast<std::ptrdiff_t>(which));
    const std::int64_t unused = draw(made.cost + 1);
    const auto verdict = made.node->node->limiter->commit(made.id, charges_of(made.keys, made.cost - unused));
    for (const std::size_t key : made.keys) {
      for (const auto& node : nodes_) once_more_[key] += std::exchange(node->alone[key], 0);
      for (const auto& node : nodes_) node->most_alone[key] += unused;
      if (verdict) {
        net_[key] -= unused;
      } else {  // Redis may have refunded it, and the answer was late
        once_more_[key] += unused;
        may_lack_[key] = true;
      }
    }
  }
  // New keys of a server that is unavailable: more than fit the one page that a node has.
  void flood(SeamNode& node, std::size_t server) {
    for (int i = 0; i < 500; ++i) {
      const std::string key = key_on(server, "new" + std::to_string(seed_) + "/" + std::to_string(next_id_++) + "/");
      const Charge charge{.key = key, .limit = &limit_, .cost = 1 + draw(30), .family = kFamily};
      const auto verdict = node.node->limiter->check_all({&charge, 1});
      EXPECT_TRUE(verdict) << verdict.error().message;
    }
  }

  // A server is unavailable for all: together they have what each last heard was left, in parts.
  void begin_outage(std::size_t server) {
    parts_ = 0;
    for (const auto& node : nodes_) {
      if (node->is_sharing(names_[server])) {
        decides_alone(*node, server);  // its share has begun before
      } else {
        parts_ += part(*node, server);
      }
    }
    once_more_[server] += std::max<std::int64_t>(0, parts_ - std::max<std::int64_t>(0, limit_.capacity - net_[server]));
    is_outage_[server] = true;
  }
  // A node that did not notice asks Redis before that has the charges of the others.
  void end_outage(std::size_t server) {
    const bool have_all_noticed =
        std::ranges::all_of(nodes_, [&](const auto& one) { return one->is_sharing(names_[server]); });
    if (!have_all_noticed) once_more_[server] += parts_;
  }
  void outage(std::size_t server) {
    begin_outage(server);
    servers_.pause(server);
    some_checks(12);
    if (draw(2) == 0) flood(some_node(), server);
    some_checks(12);
    end_outage(server);
    servers_.resume(server);
  }

  // The replica takes over with all writes of its master: nothing is lost, though checks go on meanwhile.
  std::string fail_over(std::size_t server) {
    last_ = "failover";
    some_checks(3);
    servers_.expect_failover();
    if (!servers_.fail_over(server)) return "the cluster does not fail over when it is asked to";
    some_checks(6);
    if (!servers_.becomes_whole(server)) return "the old master does not follow the new one";
    return broken_bound();
  }
  // A master is killed that has replicated all charges: the cluster fails over, and until then nodes have their shares.
  std::string lose(std::size_t server) {
    last_ = "a lost master";
    if (!servers_.is_replicated(server)) return "a replica does not get what its master has";
    begin_outage(server);
    servers_.expect_failover();
    servers_.master(server).kill();
    some_checks(12);
    flood(some_node(), server);
    some_checks(12);
    if (!servers_.has_taken_over(server)) return "the cluster does not fail over";
    end_outage(server);
    some_checks(6);
    const auto back = servers_.replica(server).restart();
    if (!back) return back.error().message;
    if (!servers_.becomes_whole(server)) return "the old master does not follow the new one";
    return broken_bound();
  }

  void step() {
    const std::int64_t what = draw(100);
    last_ = "step " + std::to_string(what);
    if (what < 35) {
      check(some_node(), static_cast<std::size_t>(draw(kKeys)), 1 + draw(3));
    } else if (what < 62) {
      check(some_node(), some_keys(2), 1 + draw(2));
    } else if (what < 72) {
      reserve();
    } else if (what < 80) {
      commit();
    } else if (what < 94) {
      outage(static_cast<std::size_t>(draw(kKeys)));
    } else {
      std::this_thread::sleep_for(std::chrono::milliseconds{draw(200)});
    }
    for (std::size_t key = 0; key < kKeys; ++key) {
      const bool is_over = std::ranges::all_of(
          nodes_, [&](const auto& one) { return !one->is_sharing(names_[key]) && is_synced(*one->node); });
      if (is_over) is_outage_[key] = false;
    }
  }

  // No fault any more: Redis gets every charge and decides alone. What it lacks was admitted beyond the limit.
  std::string rest() {
    last_ = "at rest";
    for (const auto& node : nodes_) {
      for (const std::string& name : names_) {
        const bool is_well =
            until([&] { return is_strict(*node->node, name) && is_synced(*node->node) && !node->is_sharing(name); });
        if (!is_well) return "a node does not come to rest: " + text();
      }
    }
    for (std::size_t key = 0; key < kKeys; ++key) {
      is_outage_[key] = false;
      for (const auto& node : nodes_) {
        const bool is_heard = until([&] {
          node->heard[key].reset();
          check(*node, key, 0);
          return node->heard[key].has_value();
        });
        if (!is_heard) return "Redis is not asked: " + text();
        node->alone[key] = 0;
        node->most_alone[key] = part(*node, key);
      }
      if (std::string why = note_used(key, *nodes_[0]->heard[key]); !why.empty()) return why;
    }
    return broken_bound();
  }
  std::string drain() {
    last_ = "at the end";
    for (std::size_t key = 0; key < kKeys; ++key) {
      for (std::int64_t i = 0; i < 2 * limit_.capacity; ++i) {
        check(*nodes_[static_cast<std::size_t>(i) % kNodes], key, 1);
      }
    }
    return broken_bound();
  }

  struct Reservation {
    SeamNode* node;
    std::vector<std::size_t> keys;
    std::string id;
    std::int64_t cost;
  };

  Servers& servers_;
  const std::uint64_t seed_;
  std::array<std::string, kKeys> names_;
  std::array<bool, kKeys> is_outage_{};
  std::int64_t parts_ = 0;  // of the server that is unavailable
  std::vector<Reservation> open_;
};

void run_seeds(std::uint64_t first, std::uint64_t count, int rounds) {
  const Seeds seeds = seeds_or_given(first, count);
  auto cluster = RedisCluster::start({"--cluster-require-full-coverage", "no", "--appendonly", "yes"});
  ASSERT_TRUE(cluster) << cluster.error().message;
  Servers servers(**cluster);
  for (std::uint64_t seed = seeds.first; seed < seeds.first + seeds.count; ++seed) {
    World world(servers, seed);
    const std::string why = world.run(rounds);
    std::cout << "WEIR_SEED=" << seed << ": " << world.text() << "\n";
    ASSERT_EQ(why, "") << "WEIR_SEED=" << seed;
  }
}

TEST(FleetSeamCluster, AdmitsNoMoreThanTheBoundOfWhatHasHappened) { run_seeds(3, 2, 1); }

TEST(FleetSeamClusterLong, AdmitsNoMoreThanTheBoundOfWhatHasHappened) { run_seeds(100, 60, 4); }

}  // namespace
}  // namespace weir::test
