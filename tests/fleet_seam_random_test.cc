// The seams of a fleet with a real Redis, mixed at random: after every step, all nodes together have admitted no more
// than docs/fleet.md, "What can be let through", states for what has happened so far.
//
// A seed is a history: checks, settlements and plain refunds under two versions of a limit, reservations, bursts from
// several threads; Redis stopped, killed and started again with its data, paused by CLIENT PAUSE; nodes cut off from
// it, nodes whose replies come late, nodes that are restarted, nodes with a table of one page and floods of new keys.
// The machine decides how it interleaves, so a seed repeats the history, not each moment. fleet_seam_model_test.cc has
// the same in virtual time. WEIR_SEED=n runs one history, WEIR_TRACE=1 prints its last round.

#include <array>
#include <cstdlib>
#include <mutex>

#include "fleet_faults.h"
#include "fleet_seam_bound.h"

namespace weir::test {
namespace {

constexpr std::size_t kKeys = 2;
constexpr Micros kDeadline{40'000};

// A node, and a proxy of its own before Redis.
struct SeamNode : Knowledge<kKeys> {
  SeamNode(std::uint16_t redis, bool is_narrow, bool has_one_page)
      : proxy(FaultProxy::start(redis).value()), keys(has_one_page ? 1 : 10'000) {
    if (is_narrow) options.pipeline.requests_max = 2;
    options.pipeline.deadline = kDeadline;
    options.membership.believed = Micros{2'000'000};  // nodes do not wait long for one that was restarted
    start();
  }
  void start() { node = std::make_unique<Node>("redis://" + proxy->address(), options, keys); }
  // Stops and starts again with its saved state, as a server with a state file does.
  void restart() {
    options.kept = node->store->close();
    node.reset();
    start();
  }
  bool is_sharing() const { return node->store->handover().is_on(); }
  bool is_synced() const { return test::is_synced(*node); }

  std::unique_ptr<FaultProxy> proxy;
  const std::size_t keys;
  fleet::FleetStoreOptions options;
  std::unique_ptr<Node> node;
  bool is_cut = false;
};

class World : public SeamBound<SeamNode, kKeys> {
 public:
  World(RedisServer& redis, std::uint64_t seed)
      : SeamBound(limit_of("60/year", algorithm_of(seed)), seed),
        lower_(limit_of("40/year", algorithm_of(seed))),
        redis_(redis),
        name_("s" + std::to_string(seed) + "/"),
        is_common_only_(seed % 2 == 1) {
    const auto count = static_cast<std::uint32_t>(1 + seed / 2 % 3);
    for (std::uint32_t i = 0; i < count; ++i) {
      const bool is_narrow = !is_common_only_ && draw(4) == 0;
      nodes_.push_back(std::make_unique<SeamNode>(redis_.port(), is_narrow, draw(2) == 0));
    }
    for (auto& node : nodes_) {
      EXPECT_TRUE(until([&] { return is_strict(*node->node) && node->node->store->rank().nodes == count; }));
    }
  }
  ~World() { clear_up(); }

  std::string run(int rounds) {
    for (int round = 0; round < rounds; ++round) {
      trace_.clear();
      for (std::int64_t i = 8 + draw(8); i > 0; --i) {
        step();
        if (std::string why = broken_bound(); !why.empty()) return "round " + std::to_string(round) + ": " + why;
      }
      if (std::string why = rest(); !why.empty()) return "round " + std::to_string(round) + ": " + why;
    }
    return drain();
  }
  std::string text() const override {
    const bool is_traced = std::getenv("WEIR_TRACE") != nullptr;
    return std::string(weir::to_string(limit_.algorithm)) + ", " + std::to_string(nodes_.size()) + " nodes, " +
           tally_.text() + (is_traced ? trace_ : "") + sums();
  }

 private:
  std::string name(std::size_t key) const {
    return name_ + std::to_string(key) + "." + std::to_string(generation_[key]);
  }
  std::int64_t count() const { return static_cast<std::int64_t>(nodes_.size()); }
  const Limit& some_limit() { return draw(4) == 0 ? lower_ : limit_; }
  SeamNode& some_node() { return *nodes_[static_cast<std::size_t>(draw(count()))]; }

  // This node's part of what it last heard was left, rounded up; of as many nodes as it last heard of, which are fewer
  // while one is restarted.
  std::int64_t part(const SeamNode& node, std::size_t key) const {
    const std::int64_t left = limit_.capacity - std::min(limit_.capacity, node.heard[key].value_or(0));
    const std::int64_t nodes = std::min<std::int64_t>(count(), node.node->store->rank().nodes);
    return (left + nodes - 1) / nodes;
  }
  // What a node admits by itself, others may admit once more in Redis; a single node that knows the key knows of both.
  void decides_alone(SeamNode& node, std::size_t key) {
    if (count() == 1 && (node.heard[key] || !was_restarted_)) return;
    node.alone[key] = std::max(node.alone[key], part(node, key));
  }
  // From now on Redis has permits again that nodes do not know of.
  void begin_again(std::size_t key) {
    for (const auto& node : nodes_) once_more_[key] += std::exchange(node->alone[key], 0);
  }
  void note(SeamNode& node, std::size_t key, const Decision& decision, std::int64_t admitted) {
    net_[key] += admitted;
    trace_ += "\n  " + last_ + " key " + std::to_string(key) + " admitted " + std::to_string(admitted) + " made " +
              std::string(weir::to_string(decision.decided_by)) + " left " + std::to_string(decision.remaining) +
              " of " + std::to_string(decision.limit) + " net " + std::to_string(net_[key]) +
              (node.is_sharing() ? " sharing" : "") + (node.is_synced() ? "" : " unsynced") +
              (is_outage_ ? " outage" : "");
    if (decision.decided_by == DecidedBy::strict && decision.limit == limit_.capacity) {
      node.heard[key] = limit_.capacity - decision.remaining;
    } else if (admitted > 0 && decision.decided_by == DecidedBy::local && !is_outage_) {
      decides_alone(node, key);
    }
    if (admitted > 0 && decision.decided_by == DecidedBy::local && decision.limit == lower_.capacity)
      may_lack_[key] = true;
  }

  void check(SeamNode& node, std::size_t key, std::int64_t cost, const Limit& limit) {
    const std::string text = name(key);
    const Charge charge{.key = text, .limit = &limit, .cost = cost};
    const auto verdict = ask(*node.node, {&charge, 1}, tally_);
    ASSERT_TRUE(verdict) << verdict.error().message;
    note(node, key, verdict->decisions[0], verdict->allowed ? cost : 0);
  }
  void burst(SeamNode& node, std::size_t key) {
    const std::string text = name(key);
    Tally tally;
    on_threads(4, [&](int) {
      for (int k = 0; k < 3; ++k) ask(*node.node, text, limit_, tally);
    });
    EXPECT_EQ(tally.errors(), 0) << tally.error();
    net_[key] += tally.admitted();
    trace_ += "\n  burst: " + tally.text() + " net " + std::to_string(net_[key]);
    if (tally.admitted(DecidedBy::local) > 0 && !is_outage_) decides_alone(node, key);
  }
  void reserve(std::size_t place) {
    SeamNode& node = *nodes_[place];
    const auto key = static_cast<std::size_t>(draw(kKeys));
    Reservation made{place, key, name(key) + "#" + std::to_string(next_id_++), 1 + draw(5)};
    const std::string text = name(key);
    const Charge charge{.key = text, .limit = &limit_, .cost = made.cost};
    const auto reserved = node.node->limiter->reserve({&charge, 1}, {.id = made.id});
    if (!reserved || !reserved->verdict.allowed) return;
    note(node, key, reserved->verdict.decisions[0], made.cost);
    open_.push_back(std::move(made));
  }
  void commit() {
    if (open_.empty()) return;
    const auto which = static_cast<std::size_t>(draw(static_cast<std::int64_t>(open_.size())));
    const Reservation made = open_[which];
    const std::int64_t used = draw(made.cost + 1);
    const std::string text = name(made.key);
    const Charge charge{.key = text, .limit = &some_limit(), .cost = used};
    SeamNode& node = *nodes_[made.node];
    const auto verdict = node.node->limiter->commit(made.id, {&charge, 1});
    may_lack_[made.key] = true;
    begin_again(made.key);
    node.heard[made.key] = 0;  // it knows more, but the test does not
    open_.erase(open_.begin() + static_cast<std::ptrdiff_t>(which));
    if (!verdict) {  // Redis may have refunded it, and the answer was late
      once_more_[made.key] += made.cost - used;
      return;
    }
    net_[made.key] -= made.cost - used;
    trace_ += "\n  commit " + std::to_string(used) + " of " + std::to_string(made.cost) + " by " +
              std::string(weir::to_string(verdict->decisions[0].decided_by)) + " net " + std::to_string(net_[made.key]);
    check(node, made.key, 0, limit_);
  }

  // A plain refund. If its reply is late, Redis may have refunded it, too.
  void refund(SeamNode& node, std::size_t key) {
    const std::int64_t cost = 1 + draw(2);
    begin_again(key);
    check(node, key, -cost, some_limit());
    net_[key] = std::max<std::int64_t>(0, net_[key]);
    once_more_[key] += cost;
    may_lack_[key] = true;
    node.heard[key] = 0;  // it knows more, but the test does not
    check(node, key, 0, limit_);
  }

  // Redis is unavailable for all: together they have what each last heard was left, in parts.
  void begin_outage() {
    for (std::size_t key = 0; key < kKeys; ++key) {
      parts_[key] = 0;
      for (const auto& node : nodes_) {
        if (node->is_sharing()) {
          decides_alone(*node, key);  // its share has begun before
        } else {
          parts_[key] += part(*node, key);
        }
      }
      const bool is_known = count() == 1 && (nodes_[0]->heard[key] || !was_restarted_);
      const std::int64_t left = std::max<std::int64_t>(0, limit_.capacity - net_[key]);
      if (!is_known) once_more_[key] += std::max<std::int64_t>(0, parts_[key] - left);
    }
    is_outage_ = true;
  }
  // A node that did not notice asks Redis before that has the charges of the others.
  void end_outage() {
    const bool have_all_noticed = std::ranges::all_of(nodes_, [](const auto& one) { return one->is_sharing(); });
    if (have_all_noticed || count() == 1) return;
    for (std::size_t key = 0; key < kKeys; ++key) once_more_[key] += parts_[key];
  }
  void some_checks(int most) {
    const std::int64_t many = draw(most + 1);
    for (std::int64_t i = 0; i < many; ++i) {
      check(some_node(), static_cast<std::size_t>(draw(kKeys)), 1 + draw(3), limit_);
    }
  }
  // More new keys than fit the one page that counts the shares.
  void flood(SeamNode& node) {
    trace_ += "\n  flood";
    for (int i = 0; i < 500; ++i) {
      const std::string text = name_ + "new" + std::to_string(next_id_++);
      const Charge charge{.key = text, .limit = &limit_, .cost = 1 + draw(limit_.capacity / count())};
      EXPECT_TRUE(node.node->limiter->check_all({&charge, 1}));
    }
  }
  void outage(std::int64_t kind) {
    trace_ += "\n  outage " + std::to_string(kind);
    begin_outage();
    if (kind == 0) {
      redis_.pause();
    } else if (kind == 1) {
      redis_.kill();
    } else {
      for (const auto& node : nodes_) node->proxy->set({.is_refusing = true});
      for (const auto& node : nodes_) node->proxy->cut();
    }
    some_checks(12);
    if (draw(3) == 0) restart(some_node());
    SeamNode& flooded = some_node();
    if (flooded.keys == 1) flood(flooded);
    some_checks(6);
    trace_ += "\n  back";
    end_outage();
    if (kind == 0) {
      redis_.resume();
    } else if (kind == 1) {
      const auto back = redis_.restart();
      EXPECT_TRUE(back) << back.error().message;
    } else {
      for (const auto& node : nodes_) {
        if (!node->is_cut) node->proxy->set({});
      }
    }
  }
  // Afterwards the node has its unsynced charges and the number of nodes, but not the answers of Redis.
  void restart(SeamNode& node) {
    trace_ += "\n  restart";
    for (std::size_t key = 0; key < kKeys; ++key) {
      once_more_[key] += std::exchange(node.alone[key], 0);
      node.heard[key].reset();
      if (is_outage_) once_more_[key] += part(node, key);
    }
    was_restarted_ = true;
    node.restart();
  }
  void cut(SeamNode& node) {
    node.is_cut = true;
    node.proxy->set({.is_refusing = true});
    node.proxy->cut();
  }
  void mend() {
    for (const auto& node : nodes_) {
      node->is_cut = false;
      node->proxy->set({});
    }
  }

  void step() {
    SeamNode& node = some_node();
    const auto key = static_cast<std::size_t>(draw(kKeys));
    const std::int64_t what = is_common_only_ && draw(2) == 0 ? 93 : draw(is_common_only_ ? 79 : 100);
    last_ = "step " + std::to_string(what);
    if (what < 55) {
      check(node, key, 1 + draw(3), limit_);
    } else if (what < 60) {
      check(node, key, 1, lower_);
    } else if (what < 68) {
      burst(node, key);
    } else if (what < 74) {
      reserve(static_cast<std::size_t>(draw(count())));
    } else if (what < 78) {
      commit();
    } else if (what < 79) {
      refund(node, key);
    } else if (what < 83) {  // late replies
      node.proxy->set({.replies = {.delay = kDeadline + Micros{draw(20'000)}}});
      for (int i = 0; i < 3; ++i) check(node, key, 1, limit_);
      node.proxy->set({.is_refusing = node.is_cut});
    } else if (what < 86) {
      call_redis(redis_.port(), {"CLIENT", "PAUSE", std::to_string(50 + draw(150))});
      some_checks(6);
    } else if (what < 89) {
      cut(node);
    } else if (what < 92) {
      mend();
    } else if (what < 95) {
      outage(draw(3));
    } else if (what < 96) {
      restart(node);
    } else {
      std::this_thread::sleep_for(std::chrono::milliseconds{draw(200)});
    }
    const bool is_over = std::ranges::all_of(
        nodes_, [](const auto& one) { return !one->is_sharing() && one->is_synced() && !one->is_cut; });
    if (is_over) is_outage_ = false;
  }

  void clear_up() {
    mend();
    redis_.resume();
  }
  // No fault any more: Redis gets every charge and decides alone. What it lacks was admitted beyond the limit.
  std::string rest() {
    clear_up();
    for (const auto& node : nodes_) {
      if (!until([&] { return is_strict(*node->node) && node->is_synced() && !node->is_sharing(); })) {
        fleet::FleetStore& store = *node->node->store;
        return std::string("a node does not come to rest:") + (is_strict(*node->node) ? "" : " it is not strict,") +
               (node->is_sharing() ? " it is sharing," : "") +
               (store.handover().is_none_pending() ? "" : " a check is pending,") +
               (store.unsynced_charges().is_empty() ? "" : " charges wait,") +
               (store.unsynced_charges().is_synced() ? "" : " charges are in flight or in doubt,") +
               (store.write_backs().is_empty() ? "" : " batches wait,") + " " + text();
      }
    }
    is_outage_ = false;
    last_ = "at rest";
    for (std::size_t key = 0; key < kKeys; ++key) {
      for (const auto& node : nodes_) {
        node->heard[key].reset();
        check(*node, key, 0, limit_);
        if (!node->heard[key]) return broken_bound();  // a call was late: next time
      }
      const std::int64_t used = *nodes_[0]->heard[key];
      if (std::string why = note_used(key, used); !why.empty()) return why;
      for (const auto& node : nodes_) node->alone[key] = 0;
      if (used > limit_.capacity - 5 && draw(2) == 0) begin_key(key);
    }
    return broken_bound();
  }
  // Another key in its place.
  void begin_key(std::size_t key) {
    ++generation_[key];
    net_[key] = once_more_[key] = 0;
    may_lack_[key] = false;
    std::erase_if(open_, [&](const Reservation& one) { return one.key == key; });
    for (const auto& node : nodes_) {
      node->heard[key].reset();
      if (draw(2) == 0) check(*node, key, 0, limit_);
    }
  }
  std::string drain() {
    last_ = "at the end";
    for (std::size_t key = 0; key < kKeys; ++key) {
      for (std::int64_t i = 0; i < 2 * limit_.capacity; ++i) {
        check(*nodes_[static_cast<std::size_t>(i % count())], key, 1, limit_);
      }
    }
    return broken_bound();
  }

  struct Reservation {
    std::size_t node, key;
    std::string id;
    std::int64_t cost;
  };

  static Algorithm algorithm_of(std::uint64_t seed) {
    constexpr std::array kSome = {Algorithm::fixed_window, Algorithm::token_bucket, Algorithm::sliding_log,
                                  Algorithm::sliding_window};
    return kSome[(seed + seed / 6) % kSome.size()];
  }

  const Limit lower_;  // another version of limit_
  RedisServer& redis_;
  const std::string name_;
  const bool is_common_only_;  // Redis is unavailable for all nodes or for none
  std::array<std::int64_t, kKeys> parts_{}, generation_{};
  std::vector<Reservation> open_;
  bool is_outage_ = false, was_restarted_ = false;
  std::string trace_;  // of this round
};

// Histories mostly wait, so several run at the same time, each with its own Redis, which keeps its data.
void run_seeds(std::uint64_t first, std::uint64_t count, int rounds) {
  constexpr std::uint64_t kBeside = 4;
  const Seeds seeds = seeds_or_given(first, count);
  std::mutex mutex;  // guards the output
  on_threads(static_cast<int>(std::min(seeds.count, kBeside)), [&](std::size_t thread) {
    auto redis = RedisServer::start({.settings = {"--appendonly", "yes", "--appendfsync", "always"}});
    ASSERT_TRUE(redis) << redis.error().message;
    for (std::uint64_t seed = seeds.first + thread; seed < seeds.first + seeds.count; seed += kBeside) {
      World world(**redis, seed);
      const std::string why = world.run(rounds);
      const std::lock_guard lock(mutex);
      EXPECT_EQ(why, "") << "WEIR_SEED=" << seed;
      std::cout << "WEIR_SEED=" << seed << ": " << world.text() << "\n";
    }
  });
}

TEST(FleetSeamRandom, AdmitsNoMoreThanTheBoundOfWhatHasHappened) { run_seeds(1, 4, 3); }

TEST(FleetSeamRandomLong, AdmitsNoMoreThanTheBoundOfWhatHasHappened) { run_seeds(100, 200, 8); }

}  // namespace
}  // namespace weir::test
