// The same answers through every listener: scenario files and random traces, the library against HTTP, RESP and gRPC.
//
// The library is called directly, each listener by bytes. All use one clock, and each has its own limiter. What a
// protocol rounds is rounded before the comparison; everything else must be equal. A random trace prints its seed.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <iterator>
#include <vector>

#include "engine.h"
#include "listeners/listener.h"
#include "protocol/request_error.h"
#include "read_file.h"
#include "sanitized.h"
#include "scenario.h"
#include "seed.h"
#include "trace.h"
#include "weir/limiter.h"

namespace weir {
namespace {

using test::Listener;

std::vector<std::unique_ptr<Listener>> all_listeners(const std::shared_ptr<const Clock>& clock) {
  std::vector<std::unique_ptr<Listener>> listeners;
  listeners.push_back(test::http_listener(clock));
  listeners.push_back(test::resp_listener(clock));
  listeners.push_back(test::grpc_listener(clock));
  return listeners;
}

// Sends the same requests to the library and to all listeners, and keeps the first difference.
class SideBySide {
 public:
  void change(const Quota& quota) {
    auto limit = compile(quota);
    ASSERT_TRUE(limit) << limit.error().message;
    limit_ = *std::move(limit);
    for (const auto& listener : listeners_) {
      if (listener->has(quota.algorithm)) listener->change(quota);
    }
  }

  void check(std::int64_t now_us, std::int64_t cost) {
    // A cost that no client can write exactly is refused by every listener before anything is charged.
    if (protocol::refuse_cost(cost)) return;
    clock_->set(Micros{now_us});
    compare(library_.check("k", limit_, cost), cost, [&](Listener& listener) { return listener.check(cost); });
  }

  void acquire(std::int64_t now_us, std::string_view id, std::int64_t cost) {
    if (cost < 0 || protocol::refuse_cost(cost)) return;
    clock_->set(Micros{now_us});
    const auto decision = cost == 0 ? library_.peek("k", limit_) : library_.acquire("k", id, limit_, cost);
    if (cost == 0) return;  // what is only looked at has no id, and no listener
    compare(decision, cost, [&](Listener& listener) { return listener.acquire(id, cost); });
  }

  void release(std::int64_t now_us, std::string_view id) {
    clock_->set(Micros{now_us});
    const auto held = library_.release("k", id);
    for (const auto& listener : listeners_) {
      if (!difference.empty() || !listener->has(limit_.algorithm)) continue;
      const auto found = listener->release(id);
      if (!found || *found != *held) difference = std::string(listener->name()) + ": a release is answered otherwise";
    }
    ++asked;
  }

  std::string difference{};
  std::size_t asked = 0;

 private:
  void compare(const Result<Decision>& decision, std::int64_t cost,
               const std::function<Result<Decision>(Listener&)>& ask) {
    ++asked;
    for (const auto& listener : listeners_) {
      if (!difference.empty() || !listener->has(limit_.algorithm)) continue;
      const auto found = ask(*listener);
      if (found.has_value() != decision.has_value()) {
        difference = std::string(listener->name()) + ": " +
                     (found ? "answers what the library refuses: " + decision.error().message
                            : "refuses: " + found.error().message);
      } else if (found && *found != listener->as_answered(*decision, cost)) {
        difference = std::string(listener->name()) + ", cost " + std::to_string(cost) +
                     "\n  library: " + scenario::to_string(listener->as_answered(*decision, cost)) +
                     "\n  listener:    " + scenario::to_string(*found);
      }
    }
  }

  std::shared_ptr<ManualClock> clock_ = std::make_shared<ManualClock>();
  Limiter library_{test::options_of(clock_)};
  std::vector<std::unique_ptr<Listener>> listeners_ = all_listeners(clock_);
  Limit limit_;
};

void play(const scenario::Scenario& scenario, SideBySide& all) {
  all.change(scenario.quota);
  for (const scenario::Line& line : scenario.lines) {
    switch (line.action) {
      case scenario::Action::change:
        all.change(line.quota);
        break;
      case scenario::Action::acquire:
        all.acquire(line.now_us, line.id, line.cost);
        break;
      case scenario::Action::release:
        all.release(line.now_us, line.id);
        break;
      case scenario::Action::check:
        for (std::int64_t i = 0; i < line.requests; ++i) all.check(line.now_us, line.cost);
        break;
    }
    ASSERT_EQ(all.difference, "") << scenario.file << ":" << line.number << ": " << line.text;
  }
}

TEST(Listeners, PlayEveryScenarioAsTheLibraryDoes) {
  std::size_t cases = 0;
  for (const auto& entry : std::filesystem::directory_iterator(WEIR_SOURCE_DIR "/tests/scenarios")) {
    const auto scenarios = scenario::parse_scenarios(test::read_file(entry.path()), entry.path().filename().string());
    ASSERT_TRUE(scenarios) << scenarios.error().message;
    for (const scenario::Scenario& scenario : *scenarios) {
      SideBySide all;
      play(scenario, all);
      if (testing::Test::HasFatalFailure()) return;
      ++cases;
    }
  }
  EXPECT_GT(cases, 50U);
}

// The limit as a quota that a text can express: its period is at least a millisecond.
Quota quota_of(const Limit& limit) {
  Quota quota{
      .algorithm = limit.algorithm, .permits = limit.permits, .period = std::max(kPeriodMin, Micros{limit.period_us})};
  const bool is_bucket = limit.algorithm == Algorithm::token_bucket || limit.algorithm == Algorithm::leaky_bucket ||
                         limit.algorithm == Algorithm::leaky_meter;
  if (is_bucket) quota.burst = limit.capacity;
  if (compile(quota)) return quota;
  return {.algorithm = limit.algorithm, .permits = 10, .period = Micros{60'000'000}};
}

void replay(Algorithm algorithm, std::uint64_t seed, std::size_t ops) {
  const test::Trace trace = test::random_requests(algorithm, seed, ops);
  SideBySide all;
  all.change(quota_of(trace.limits.front()));
  for (const test::Op& op : trace.ops) {
    switch (op.kind) {
      case test::Op::Kind::change:
        all.change(quota_of(trace.limits[op.limit]));
        break;
      case test::Op::Kind::acquire:
        all.acquire(op.now, op.id, op.cost);
        break;
      case test::Op::Kind::release:
        all.release(op.now, op.id);
        break;
      case test::Op::Kind::check:
        all.check(op.now, op.cost);
        break;
      case test::Op::Kind::refund:  // only settlements refund as of an earlier time
        break;
    }
    ASSERT_EQ(all.difference, "") << to_string(algorithm) << ", seed " << seed << ", at " << op.now;
  }
}

void replay_traces(std::size_t traces, std::size_t ops) {
  const std::uint64_t seed = test::base_seed();
  for (std::size_t i = 0; i < traces; ++i) {
    const Algorithm algorithm = kAlgorithms[i % std::size(kAlgorithms)];
    replay(algorithm, seed + i, ops);
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST(Listeners, AnswerRandomTracesAsTheLibraryDoes) { replay_traces(test::kIsSanitized ? 14 : 70, 1'000); }

TEST(LongListeners, AnswerManyRandomTracesAsTheLibraryDoes) { replay_traces(200, 5'000); }

}  // namespace
}  // namespace weir
