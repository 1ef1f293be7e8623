// A fleet at twice the load that its Redis can answer: a client that stays below half of its limit is seldom denied.
//
// Redis is the script, in Lua, and takes a fixed virtual time for each request, so the test counts and measures
// nothing. Checks are fibers that wait for their answers, so many are in flight at once. As a pipeline does, a node
// does not send a request that would wait for half of its deadline; its background work writes unsynced charges back
// and rests as long as each batch took.

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <memory>
#include <queue>
#include <random>
#include <string>
#include <vector>

#include "base/fiber.h"
#include "fleet/fleet_store.h"
#include "fleet/redis_script.h"
#include "lua_redis.h"
#include "store_fixture.h"

namespace weir::test {
namespace {

using What = fleet::ScriptRequest::What;
using State = fleet::ScriptRequest::State;

constexpr Micros kService{100};          // for one charge
constexpr Micros kHopeless{15'000 / 2};  // half of a deadline

// Virtual time, Redis, and the fibers that wait for either.
class Redis {
 public:
  explicit Redis(base::Fibers& fibers) : fibers_(fibers) {}

  Micros now() const { return now_; }
  bool is_crowded() const { return free_at_ - now_ >= kHopeless; }
  std::uint64_t answered() const { return answered_; }

  // Called on a fiber. Returns when Redis has answered.
  void ask(std::span<fleet::ScriptRequest> requests) {
    Micros took{0};
    for (const fleet::ScriptRequest& request : requests) took += kService * static_cast<int>(request.charges.size());
    free_at_ = std::max(free_at_, now_) + took;
    calls_.push_back({fibers_.current(), requests, free_at_});
    fibers_.suspend();
  }
  void sleep(Micros until) {
    sleepers_.push({until, fibers_.current()});
    fibers_.suspend();
  }
  void advance(Micros until) {
    while (true) {
      const Micros call = calls_.empty() ? Micros::max() : calls_.front().done_at;
      const Micros wake = sleepers_.empty() ? Micros::max() : sleepers_.top().first;
      if (std::min(call, wake) > until) break;
      now_ = std::max(now_, std::min(call, wake));
      if (wake < call) {
        base::Fiber* const fiber = sleepers_.top().second;
        sleepers_.pop();
        fibers_.resume(fiber);
      } else {
        const Call done = calls_.front();
        calls_.pop_front();
        execute(done.requests);
        fibers_.resume(done.fiber);
      }
    }
    now_ = until;
  }

 private:
  struct Call {
    base::Fiber* fiber;
    std::span<fleet::ScriptRequest> requests;
    Micros done_at;
  };
  void execute(std::span<fleet::ScriptRequest> requests) {
    fleet::ScriptCall call("weir:");
    for (fleet::ScriptRequest& request : requests) ASSERT_TRUE(call.add(request));
    const auto read = lua_.call(database_, kNow + now_.count(), call);
    ASSERT_TRUE(read) << read.error().message;
    for (fleet::ScriptRequest& request : requests) {
      request.state = State::answered;
      request.decided_us = call.now_us();
      if (request.what == What::charge) ++answered_;
    }
  }

  base::Fibers& fibers_;
  LuaRedis lua_{fleet::redis_script()};
  LuaDatabase database_;
  Micros now_{1'000'000'000}, free_at_{0};
  std::deque<Call> calls_;
  using Sleeper = std::pair<Micros, base::Fiber*>;
  std::priority_queue<Sleeper, std::vector<Sleeper>, std::greater<>> sleepers_;
  std::uint64_t answered_ = 0;
};

struct Line final : fleet::Transport {
  explicit Line(Redis& its) : redis(its) {}
  void run(std::span<fleet::ScriptRequest> requests) override {
    for (fleet::ScriptRequest& request : requests) request.state = State::failed;
    if (!redis.is_crowded()) redis.ask(requests);
  }
  bool is_down() const override { return false; }
  Micros now() const override { return redis.now(); }
  Redis& redis;
};

class Overload {
 public:
  explicit Overload(std::uint32_t nodes, std::size_t memory_keys = 65'536) : nodes_(nodes) {
    for (std::uint32_t i = 0; i < nodes; ++i) {
      Node& node = nodes_[i];
      node.here = store::MemoryStore::open({.keys = 10'000}, clock_).value();
      node.store = std::make_unique<fleet::FleetStore>(
          fleet::FleetStoreOptions{.memory_keys = memory_keys, .transport = std::make_shared<Line>(redis_)});
      node.store->use(*node.here);
      node.store->fallback_store().set_rank({i, nodes});
      fibers_.start([this, &node] { keep(node); });
    }
  }
  ~Overload() {
    is_over_ = true;
    redis_.advance(redis_.now() + Micros{60'000'000});
    EXPECT_EQ(fibers_.in_flight(), 0u);
  }

  struct Client {
    std::int64_t asked = 0, denied = 0, admitted = 0;
  };
  // Checks that come twice as fast as Redis can answer them. Each polite client asks for less than half of its limit in
  // all; the greedy ones ask as often as all others together.
  void offer(std::size_t polite, std::size_t greedy, std::uint64_t seed) {
    std::mt19937_64 dice(seed);
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < polite; ++i) order.insert(order.end(), kLimit / 2 - 1, i);
    if (greedy > 0) {
      for (std::size_t i = order.size(); i > 0; --i) order.push_back(polite + i % greedy);
    }
    std::shuffle(order.begin(), order.end(), dice);
    clients.assign(polite + greedy, {});
    for (const std::size_t client : order) {
      redis_.advance(redis_.now() + kService / 2);
      clock_->set(Micros{kNow} + redis_.now());
      const auto node = static_cast<std::uint32_t>(dice() % nodes_.size());
      ASSERT_TRUE(fibers_.start([this, client = static_cast<std::uint32_t>(client), node] { check(client, node); }));
      ++offered;
    }
    redis_.advance(redis_.now() + Micros{100'000});
  }

  std::uint64_t answered() const { return redis_.answered(); }
  std::vector<Client> clients;
  std::uint64_t offered = 0;
  static constexpr std::size_t kLimit = 100;

 private:
  struct Node {
    std::unique_ptr<store::MemoryStore> here;
    std::unique_ptr<fleet::FleetStore> store;
  };

  void check(std::size_t client, std::size_t node) {
    const std::string key = "client " + std::to_string(client);
    const auto decision = nodes_[node].store->check({.key = key, .limit = &limit_});
    ASSERT_TRUE(decision) << decision.error().message;
    ++clients[client].asked;
    ++(decision->allowed ? clients[client].admitted : clients[client].denied);
  }
  void keep(Node& node) {
    constexpr std::size_t kBatchMax = 100;
    while (!is_over_) {
      auto batch = node.store->write_backs().take(kBatchMax, redis_.now());
      const Micros began = redis_.now();
      if (batch) {
        std::vector<Decision> decisions(batch->charges.size());
        fleet::ScriptRequest request = batch->request(decisions);
        redis_.ask({&request, 1});
        node.store->write_backs().finish(*std::move(batch), fleet::WriteBacks::reply_to(request), redis_.now());
      }
      redis_.sleep(redis_.now() + std::max(Micros{1'000}, redis_.now() - began));
    }
  }

  const Limit limit_ = limit_of(std::to_string(kLimit) + "/year", Algorithm::fixed_window);
  base::Fibers fibers_{base::FiberOptions{.most = 4'096}};
  Redis redis_{fibers_};
  std::shared_ptr<ManualClock> clock_ = std::make_shared<ManualClock>(Micros{kNow});
  std::vector<Node> nodes_;
  bool is_over_ = false;
};

TEST(FleetOverload, ClientsBelowHalfOfTheirLimitAreSeldomDenied) {
  for (const std::uint32_t nodes : {1u, 3u}) {
    for (const std::size_t greedy : {0u, 5u}) {
      constexpr std::size_t kPolite = 100;
      SCOPED_TRACE(std::to_string(nodes) + " nodes, " + std::to_string(greedy) + " greedy clients");
      Overload overload(nodes);
      overload.offer(kPolite, greedy, 1 + nodes + greedy);
      std::int64_t asked = 0, denied = 0;
      for (std::size_t i = 0; i < kPolite; ++i) {
        asked += overload.clients[i].asked;
        denied += overload.clients[i].denied;
      }
      std::cout << nodes << " nodes, " << greedy << " greedy: " << overload.answered() << " of " << overload.offered
                << " checks answered by Redis; polite clients denied " << denied << " of " << asked << "\n";
      EXPECT_EQ(asked, static_cast<std::int64_t>(kPolite * (Overload::kLimit / 2 - 1)));
      EXPECT_LE(denied * 100, asked * 5);
      if (greedy == 0) {
        EXPECT_LE(overload.answered() * 100, overload.offered * 55) << "Redis has twice as much to do as it can";
      }
      for (std::size_t i = kPolite; i < kPolite + greedy; ++i) {
        const std::int64_t bound = static_cast<std::int64_t>(Overload::kLimit) * (nodes == 1 ? 1 : 2);
        EXPECT_LE(overload.clients[i].admitted, bound);
        EXPECT_GE(overload.clients[i].admitted, static_cast<std::int64_t>(Overload::kLimit));
      }
    }
  }
}

// The node remembers fewer keys than there are clients, so it decides by what evicted records had used.
TEST(FleetOverload, ForgottenClientsBelowHalfOfTheirLimitAreSeldomDenied) {
  constexpr std::size_t kPolite = 700;
  Overload overload(1, 512);
  overload.offer(kPolite, 0, 1);
  std::int64_t asked = 0, denied = 0;
  for (const Overload::Client& client : overload.clients) {
    asked += client.asked;
    denied += client.denied;
  }
  std::cout << "polite clients denied " << denied << " of " << asked << "\n";
  EXPECT_LE(denied * 100, asked * 5);
}

}  // namespace
}  // namespace weir::test
