// The scenario files, random traces and three nodes under load, on a real Redis whose clock the test sets: every node
// of a fleet answers as the oracle does, to the microsecond.
//
// preload/redis_clock.cc replaces gettimeofday() of the server, so keys expire by that clock, too. Nodes cache denials
// by the clock of the machine, so they cache none here; fleet_nodes_test.cc tests that.

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "fleet/redis_script.h"
#include "fleet_node.h"
#include "read_file.h"
#include "redis_server.h"
#include "scenario.h"
#include "seed.h"
#include "settlement.h"
#include "store_fixture.h"
#include "trace.h"
#include "weir/limiter.h"

namespace weir::test {
namespace {

constexpr std::size_t kNodes = 3;

// A time that another process reads, in a file.
class SharedTime {
 public:
  SharedTime() {
    const int file = ::mkstemp(path_.data());
    EXPECT_EQ(::ftruncate(file, sizeof(std::int64_t)), 0);
    void* const map = ::mmap(nullptr, sizeof(std::int64_t), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    EXPECT_NE(map, MAP_FAILED);
    ::close(file);
    now_us_ = static_cast<std::int64_t*>(map);
    set(kNow);
  }
  ~SharedTime() {
    ::munmap(now_us_, sizeof(std::int64_t));
    ::unlink(path_.c_str());
  }
  SharedTime(const SharedTime&) = delete;
  SharedTime& operator=(const SharedTime&) = delete;

  void set(std::int64_t now_us) { __atomic_store_n(now_us_, now_us, __ATOMIC_RELEASE); }
  const std::string& path() const { return path_; }

 private:
  std::string path_ = "/tmp/weir-clock-XXXXXX";
  std::int64_t* now_us_ = nullptr;
};

std::unique_ptr<Node> make_node(const std::string& url) {
  fleet::FleetStoreOptions options = with_deadline(Micros{20'000'000});  // machines that run tests are busy
  options.remembers_denials = false;
  // The clock jumps, so another node may look as if it were cut off from Redis. Nodes take no account of others here.
  options.membership.believed = Micros{1'000};
  return std::make_unique<Node>(url, options, 1'000);
}

class FleetByClock : public ::testing::Test {
 protected:
  void SetUp() override {
    auto server =
        RedisServer::start({.environment = {"LD_PRELOAD=" WEIR_REDIS_CLOCK, "WEIR_REDIS_CLOCK=" + time_.path()}});
    ASSERT_TRUE(server) << server.error().message;
    server_ = *std::move(server);
    const std::string info = call_redis(server_->port(), {"INFO", "server"}).text;
    if (info.find("valkey_version") != info.npos) GTEST_SKIP() << "the clock of Valkey moves between two calls";
    ASSERT_EQ(call_redis(server_->port(), {"TIME"}).items.at(1).text, std::to_string(kNow % 1'000'000))
        << "this redis-server does not use the clock of the test";
    for (auto& node : nodes_) node = make_node("redis://" + server_->address());
    for (auto& node : nodes_) ASSERT_TRUE(until([&] { return is_strict(*node); }));
    settle(kNow);
  }

  // Sets the clock, and waits until every node has an answer with the new time.
  void settle(std::int64_t now_us) {
    time_.set(now_us);
    const Limit limit = limit_of("1/s burst 1000000", Algorithm::token_bucket);
    const Charge peek{"warm", &limit, 0};
    for (auto& node : nodes_) {
      ASSERT_TRUE(until([&] {
        const auto verdict = node->limiter->check_all({&peek, 1});
        return verdict && verdict->decisions[0].decided_by == DecidedBy::strict;
      }));
    }
  }

  SharedTime time_;
  std::unique_ptr<RedisServer> server_;
  std::array<std::unique_ptr<Node>, kNodes> nodes_;

 public:
  // The nodes by turns.
  Limiter& at(std::int64_t now_us) {
    time_.set(now_us);
    return *nodes_[turn_++ % kNodes]->limiter;
  }
  static Decision strict(const Result<Decision>& decision) {
    if (!decision || decision->decided_by != DecidedBy::strict) return {.limit = -1};
    Decision out = *decision;
    out.decided_by = DecidedBy::here;  // as in answers of the oracle
    return out;
  }
  // A request that only a store can make, without a node.
  void run(fleet::ScriptRequest& request, std::int64_t now_us) {
    time_.set(now_us);
    fleet::ScriptCall call("weir:");
    ASSERT_TRUE(call.add(request));
    std::vector<std::string> words{"EVAL", std::string(fleet::redis_script())};
    for (const std::string_view word : call.words(0, now_us)) words.emplace_back(word);
    const resp::Value reply = RedisClient(server_->port()).call(words);
    std::vector<std::int64_t> numbers;
    for (const resp::Value& item : reply.items) numbers.push_back(item.integer);
    const auto read = call.read(numbers);
    ASSERT_TRUE(read) << reply.text;
  }
  std::string next_key() { return "key " + std::to_string(++keys_); }

 private:
  std::size_t turn_ = 0, keys_ = 0;
};

// One key, as the tests of engines know it.
class FleetEngine final : public Engine {
 public:
  FleetEngine(FleetByClock& fleet, const Limit& limit) : fleet_(fleet), key_(fleet.next_key()), limit_(limit) {}
  std::string_view name() const override { return "fleet"; }
  std::unique_ptr<Engine> clone() const override { return nullptr; }
  void change(const Limit& limit) override { limit_ = limit; }
  Decision check(std::int64_t now, std::int64_t cost) override {
    const Charge charge{key_, &limit_, cost};
    const auto verdict = fleet_.at(now).check_all({&charge, 1});
    return verdict ? FleetByClock::strict(verdict->decisions[0]) : Decision{.limit = -1};
  }
  Decision refund(std::int64_t now, std::int64_t cost, std::int64_t at) override {
    const Charge charge{key_, &limit_, cost};
    fleet::ScriptRequest request{.what = fleet::ScriptRequest::What::undo, .charges = {&charge, 1}, .charged_us = at};
    fleet_.run(request, now);
    Decision decision = check(now, 0);
    decision.allowed = true;
    decision.retry_after = Micros{0};
    return decision;
  }
  Decision acquire(std::int64_t now, std::string_view id, std::int64_t cost) override {
    Limiter& node = fleet_.at(now);
    return FleetByClock::strict(cost == 0 ? node.peek(key_, limit_) : node.acquire(key_, id, limit_, cost));
  }
  bool release(std::int64_t now, std::string_view id) override {
    const auto held = fleet_.at(now).release(key_, id);
    return held && *held;
  }

 private:
  FleetByClock& fleet_;
  const std::string key_;
  Limit limit_;
};

// The same, as scenarios know it.
class FleetPlayer final : public scenario::Engine {
 public:
  FleetPlayer(FleetByClock& fleet, const Quota& quota) : engine_(fleet, compile(quota).value()) {}
  Result<Decision> check(std::int64_t now, std::int64_t cost) override { return engine_.check(now, cost); }
  Result<Decision> acquire(std::int64_t now, std::string_view id, std::int64_t cost) override {
    return engine_.acquire(now, id, cost);
  }
  Result<bool> release(std::int64_t now, std::string_view id) override { return engine_.release(now, id); }
  Result<void> change(const Quota& quota) override {
    auto limit = compile(quota);
    if (!limit) return fail(limit.error());
    engine_.change(*limit);
    return {};
  }

 private:
  FleetEngine engine_;
};

TEST_F(FleetByClock, PlaysEveryScenario) {
  std::size_t played = 0;
  for (const auto& entry : std::filesystem::directory_iterator(WEIR_SOURCE_DIR "/tests/scenarios")) {
    const auto scenarios = scenario::parse_scenarios(read_file(entry.path()), entry.path().filename().string());
    ASSERT_TRUE(scenarios) << scenarios.error().message;
    for (const scenario::Scenario& one : *scenarios) {
      const auto first = std::ranges::find_if(one.lines, [](const auto& line) { return line.now_us > 0; });
      ASSERT_NO_FATAL_FAILURE(settle(first == one.lines.end() ? 0 : first->now_us));
      FleetPlayer player(*this, one.quota);
      for (const scenario::Failure& failure : scenario::play(one, player)) ADD_FAILURE() << failure.message;
      ++played;
    }
  }
  EXPECT_GT(played, 50u);
}

// Load on all nodes at once, three times what the limit admits, and the same load on one limiter of this process.
class FleetUnderLoad : public FleetByClock {
 protected:
  void go_to(std::int64_t now_us) {
    time_.set(now_us);
    clock_->set(Micros{now_us});
  }
  // Runs `work` for each node, and returns all results in the order of their size.
  std::vector<std::int64_t> on_nodes(
      const std::function<void(std::size_t, Limiter&, std::vector<std::int64_t>&)>& work) {
    std::array<std::vector<std::int64_t>, kNodes> told;
    on_threads(kNodes, [&](std::size_t i) { work(i, *nodes_[i]->limiter, told[i]); });
    return sorted(told);
  }
  std::vector<std::int64_t> on_one(const std::function<void(std::size_t, Limiter&, std::vector<std::int64_t>&)>& work) {
    std::array<std::vector<std::int64_t>, kNodes> told;
    for (std::size_t i = 0; i < kNodes; ++i) work(i, one_, told[i]);
    return sorted(told);
  }
  static std::vector<std::int64_t> sorted(const std::array<std::vector<std::int64_t>, kNodes>& told) {
    std::vector<std::int64_t> all;
    for (const auto& some : told) all.insert(all.end(), some.begin(), some.end());
    std::ranges::sort(all);
    return all;
  }
  // The delay of an admitted request; -1: denied; -2: Redis did not decide it.
  static std::int64_t word_for(const Result<Decision>& decision) {
    if (!decision || (decision->decided_by != DecidedBy::strict && decision->decided_by != DecidedBy::here)) return -2;
    return decision->allowed ? decision->delay.count() : -1;
  }

  const std::shared_ptr<ManualClock> clock_ = std::make_shared<ManualClock>(Micros{kNow});
  Limiter one_{LimiterOptions{.clock = clock_, .keys = 1'000}};
};

TEST_F(FleetUnderLoad, AdmitsWhatOneLimiterDoes) {
  for (const Algorithm algorithm : kChecked) {
    const Limit limit = limit_of("30/minute", algorithm);
    const Charge charge{"load", &limit};
    std::int64_t admitted = 0;
    for (std::int64_t step = 0; step < 15; ++step) {  // more than two windows, three times the rate
      go_to(kNow + step * 10'000'000 + step * step * 1'234);
      const auto work = [&](std::size_t, Limiter& limiter, std::vector<std::int64_t>& told) {
        for (int i = 0; i < 5; ++i) {
          const auto verdict = limiter.check_all({&charge, 1});
          told.push_back(verdict ? word_for(verdict->decisions[0]) : -2);
        }
      };
      const auto by_fleet = on_nodes(work), by_one = on_one(work);
      ASSERT_EQ(by_fleet, by_one) << weir::to_string(algorithm) << ", step " << step;
      admitted += std::ranges::count_if(by_fleet, [](std::int64_t word) { return word >= 0; });
    }
    EXPECT_GT(admitted, 60) << weir::to_string(algorithm);
    EXPECT_LT(admitted, 150) << weir::to_string(algorithm);
    ASSERT_NO_FATAL_FAILURE(settle(kNow));
  }
}

TEST_F(FleetUnderLoad, ReservesWhatOneLimiterDoesAndSettlesElsewhere) {
  for (const Algorithm algorithm : {Algorithm::fixed_window, Algorithm::sliding_log, Algorithm::token_bucket}) {
    const Limit limit = limit_of("30/minute", algorithm);
    for (std::int64_t step = 0; step < 8; ++step) {
      go_to(kNow + step * 10'000'000);
      const Charge most{"reserved", &limit, 3}, actual{"reserved", &limit, 1};
      const auto id = [&](std::size_t node, int i) {
        return std::string(weir::to_string(algorithm)) + std::to_string(step) + "-" + std::to_string(node) + "-" +
               std::to_string(i);
      };
      const auto reserve = [&](std::size_t node, Limiter& limiter, std::vector<std::int64_t>& told) {
        for (int i = 0; i < 5; ++i) {
          const auto reserved = limiter.reserve({&most, 1}, {.id = id(node, i)});
          told.push_back(reserved ? word_for(reserved->verdict.decisions[0]) : -2);
        }
      };
      const auto settle_next = [&](std::size_t node, Limiter& limiter, std::vector<std::int64_t>& told) {
        for (int i = 0; i < 5; ++i) {
          const auto settled = limiter.commit(id((node + 1) % kNodes, i), {&actual, 1});
          told.push_back(settled ? 1 : 0);
        }
      };
      ASSERT_EQ(on_nodes(reserve), on_one(reserve)) << weir::to_string(algorithm) << ", step " << step;
      ASSERT_EQ(on_nodes(settle_next), on_one(settle_next)) << weir::to_string(algorithm) << ", step " << step;
      const Charge peek{"reserved", &limit, 0};
      const auto left = nodes_[0]->limiter->check_all({&peek, 1}), expected = one_.check_all({&peek, 1});
      ASSERT_TRUE(left && expected);
      ASSERT_EQ(strict(left->decisions[0]), expected->decisions[0]) << weir::to_string(algorithm) << ", step " << step;
    }
    ASSERT_NO_FATAL_FAILURE(settle(kNow));
  }
}

TEST_F(FleetUnderLoad, HoldsAsManyPermitsInFlightAsOneLimiterDoes) {
  const Limit limit = compile("20 concurrent for 30s").value();
  for (std::int64_t step = 0; step < 9; ++step) {
    go_to(kNow + step * 11'000'000);
    const auto id = [&](std::size_t node, int i) {
      return std::to_string(step) + "-" + std::to_string(node) + "-" + std::to_string(i);
    };
    const auto acquire = [&](std::size_t node, Limiter& limiter, std::vector<std::int64_t>& told) {
      for (int i = 0; i < 20; ++i) told.push_back(word_for(limiter.acquire("held", id(node, i), limit)));
    };
    // Each node releases the ids of the next node. In every second step none does, and the permits expire.
    const auto release_all = [&](std::size_t node, Limiter& limiter, std::vector<std::int64_t>& told) {
      std::int64_t count = 0;
      for (int i = 0; i < 20; ++i) count += limiter.release("held", id((node + 1) % kNodes, i)).value() ? 1 : 0;
      told.push_back(count);
    };
    ASSERT_EQ(on_nodes(acquire), on_one(acquire)) << "step " << step;
    if (step % 2 == 1) continue;
    const auto by_fleet = on_nodes(release_all), by_one = on_one(release_all);
    ASSERT_EQ(by_fleet[0] + by_fleet[1] + by_fleet[2], by_one[0] + by_one[1] + by_one[2]) << "step " << step;
    ASSERT_EQ(strict(nodes_[1]->limiter->peek("held", limit)).remaining, one_.peek("held", limit)->remaining);
  }
}

// Random traces through the whole path: limiter, store, connection and script.
class FleetTraces : public FleetByClock {
 protected:
  void play(std::uint64_t traces, std::size_t ops) {
    const std::uint64_t seed = base_seed();
    for (std::uint64_t i = 0; i < traces; ++i) {
      const Algorithm algorithm = kAlgorithms[i % std::size(kAlgorithms)];
      const bool is_of_calendar = algorithm == Algorithm::fixed_window && i % 2 == 1;
      const Trace trace = is_of_calendar ? random_calendar_trace(seed + i, ops, Time::forward)
                                         : random_trace(algorithm, seed + i, ops, Time::forward);
      ASSERT_NO_FATAL_FAILURE(settle(trace.ops.front().now));
      FleetEngine engine(*this, trace.limits.front());
      const auto wrong = replay(trace, engine);
      ASSERT_FALSE(wrong) << *wrong;
    }
  }
};

TEST_F(FleetTraces, AnswersLikeTheOracle) { play(70, 200); }

// A key that any node reserves from and any node settles.
class FleetReserver final : public Reserver {
 public:
  explicit FleetReserver(FleetByClock& fleet) : fleet_(fleet), key_(fleet.next_key()) {}
  Decision charge(const Limit& limit, std::int64_t cost, std::int64_t now) override {
    return first(fleet_.at(now).check_all(one(limit, cost)));
  }
  Decision overdraw(const Limit& limit, std::int64_t cost, std::int64_t now) override {
    return first(fleet_.at(now).overdraw(one(limit, cost)));
  }
  Decision reserve(const Limit& limit, std::string_view id, std::int64_t cost, std::int64_t now) override {
    const auto reserved = fleet_.at(now).reserve(one(limit, cost), {.id = std::string(id), .lasts = Micros{kDay}});
    EXPECT_TRUE(reserved) << reserved.error().message;
    return reserved ? FleetByClock::strict(reserved->verdict.decisions[0]) : Decision{.limit = -1};
  }
  Decision commit(const Limit& limit, std::string_view id, std::int64_t actual, std::int64_t now) override {
    return first(fleet_.at(now).commit(id, one(limit, actual)));
  }

 private:
  static constexpr std::int64_t kDay = 86'400'000'000;
  std::span<const Charge> one(const Limit& limit, std::int64_t cost) {
    charge_ = {.key = key_, .limit = &limit, .cost = cost};
    return {&charge_, 1};
  }
  static Decision first(const Result<Verdict>& verdict) {
    EXPECT_TRUE(verdict) << verdict.error().message;
    return verdict ? FleetByClock::strict(verdict->decisions[0]) : Decision{.limit = -1};
  }

  FleetByClock& fleet_;
  const std::string key_;
  Charge charge_{};
};

// Nine reservations of 100, one every other minute, all cancelled in one microsecond. They once admitted 400 here.
TEST_F(FleetTraces, ASettlementAdmitsTheLimitOnce) {
  for (const Algorithm algorithm : kChecked) {
    const Limit limit = limit_of("100/minute", algorithm);
    FleetReserver key(*this);
    for (std::int64_t i = 0; i < 9; ++i) {
      ASSERT_TRUE(key.reserve(limit, std::to_string(i), 100, kNow + i * 120'000'000).allowed)
          << weir::to_string(algorithm);
    }
    const std::int64_t now = kNow + 9 * 120'000'000;
    std::int64_t admitted = 0;
    for (int i = -1; i < 9; ++i) {
      if (i >= 0) key.commit(limit, std::to_string(i), 0, now);
      while (admitted < 1'000 && key.charge(limit, 10, now).allowed) admitted += 10;
    }
    EXPECT_EQ(admitted, 100) << weir::to_string(algorithm);
  }
}

TEST_F(FleetTraces, ASettlementNeverLeavesLessUsedThanTheHistoryWithoutIt) {
  const std::uint64_t seed = base_seed();
  for (std::uint64_t i = 0; i < 60; ++i) {
    const auto wrong = play_settlements(kChecked[i % std::size(kChecked)], seed + i,
                                        [&] { return std::make_unique<FleetReserver>(*this); });
    ASSERT_FALSE(wrong) << *wrong;
  }
}

class FleetTracesLong : public FleetTraces {};
TEST_F(FleetTracesLong, AnswersLikeTheOracleOnAMillionRequests) { play(200, 5'000); }

}  // namespace
}  // namespace weir::test
