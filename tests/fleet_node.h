// Nodes of a fleet in one process, and a tally of their answers. Most tests of fleets use them.
//
//   auto nodes = make_nodes(2, "redis://" + server->address(), with_deadline(kLong));
//   Tally tally;
//   ask_all(nodes, 40, "key", limit, tally);
//   Asking asking(nodes, [&](Node& node) { ask(node, "key", limit, tally); });
//
// An Asking has threads that ask until it is destroyed. Any thread may use a Node or a Tally.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "fleet/fleet_store.h"
#include "store_fixture.h"
#include "until.h"
#include "weir/limiter.h"

namespace weir::test {

inline constexpr Micros kLong{10'000'000};  // for tests whose subject is no deadline: a busy machine stalls for seconds

// One process of a fleet.
struct Node {
  explicit Node(const std::string& url, fleet::FleetStoreOptions options = {}, std::size_t keys = 10'000) {
    options.target = base::redis::parse_url(url).value();
    options.membership.beat = Micros{50'000};
    options.pipeline.client.on_event = [this](const redis::Event& event) {
      if (event.kind == redis::Event::Kind::connected) ++connected;
      if (event.kind == redis::Event::Kind::lost) ++lost;
    };
    store = std::make_shared<fleet::FleetStore>(options);
    limiter = std::make_unique<Limiter>(LimiterOptions{.keys = keys, .shared = store});
  }

  std::atomic<int> connected{0}, lost{0};
  std::shared_ptr<fleet::FleetStore> store;
  std::unique_ptr<Limiter> limiter;
};

// Redis has all charges of this node.
inline bool is_synced(Node& node) {
  fleet::FleetStore& store = *node.store;
  return store.handover().is_none_pending() && store.unsynced_charges().is_synced() && store.write_backs().is_empty();
}

// A node ends a connection that is silent for a second, as a server of a busy machine may be. Here it waits as long as
// its requests do.
inline fleet::FleetStoreOptions with_deadline(Micros deadline) {
  fleet::FleetStoreOptions options;
  options.pipeline.deadline = deadline;
  options.pipeline.client.silence = std::max(deadline, options.pipeline.client.silence);
  return options;
}
// For a test that pauses a server: its nodes notice that long before the deadline.
inline fleet::FleetStoreOptions with_pauses() {
  fleet::FleetStoreOptions options;
  options.pipeline.deadline = kLong;
  return options;
}

// Whether Redis decides the checks of this key now. It only peeks.
inline bool is_strict(Node& node, std::string_view key = "warm") {
  const auto seen = node.limiter->peek(key, limit_of("1000000/year", Algorithm::token_bucket));
  return seen && seen->decided_by == DecidedBy::strict;
}

// The permits of a key that are left, or used, by Redis's count. While Redis does not answer, the node would report
// what is left of its share.
inline std::int64_t left(Node& node, const std::string& key, const Limit& limit) {
  std::int64_t found = -1;
  EXPECT_TRUE(until([&] {
    const auto seen = node.limiter->peek(key, limit);
    if (seen && seen->decided_by == DecidedBy::strict) found = seen->remaining;
    return found >= 0;
  })) << "Redis does not answer";
  return found;
}
inline std::int64_t used(Node& node, const std::string& key, const Limit& limit) {
  return limit.capacity - left(node, key, limit);
}

using Nodes = std::vector<std::unique_ptr<Node>>;

inline Nodes make_nodes(std::size_t count, const std::string& url, const fleet::FleetStoreOptions& options) {
  Nodes nodes;
  for (std::size_t i = 0; i < count; ++i) nodes.push_back(std::make_unique<Node>(url, options));
  for (auto& node : nodes) {
    EXPECT_TRUE(until([&] { return is_strict(*node) && node->store->rank().nodes == count; })) << "a fleet comes up";
  }
  return nodes;
}

// Counts answers by how they were decided, and those that were allowed; also the time of the slowest.
class Tally {
 public:
  void note(const Decision& decision, Micros took) {
    const auto made = static_cast<std::size_t>(decision.decided_by);
    ++asked_[made];
    if (decision.allowed) ++admitted_[made];
    std::int64_t longest = longest_us_.load();
    while (took.count() > longest && !longest_us_.compare_exchange_weak(longest, took.count())) {
    }
  }
  void note_error(const std::string& text) {
    const std::lock_guard lock(mutex_);
    if (errors_++ == 0) error_ = text;
  }

  int asked(DecidedBy decided_by) const { return asked_[static_cast<std::size_t>(decided_by)]; }
  int admitted(DecidedBy decided_by) const { return admitted_[static_cast<std::size_t>(decided_by)]; }
  int asked() const { return sum(asked_); }
  int admitted() const { return sum(admitted_); }
  int errors() const { return errors_; }
  std::string error() const {
    const std::lock_guard lock(mutex_);
    return error_;
  }
  Micros longest() const { return Micros{longest_us_}; }
  std::string text() const {
    std::string out;
    for (std::size_t i = 0; i < kWays; ++i) {
      if (asked_[i] == 0) continue;
      out += std::string(weir::to_string(static_cast<DecidedBy>(i))) + " " + std::to_string(admitted_[i]) + " of " +
             std::to_string(asked_[i]) + ", ";
    }
    return out + "longest " + std::to_string(longest_us_ / 1'000) + " ms, errors " + std::to_string(errors_);
  }

 private:
  static constexpr std::size_t kWays = 7;
  using Counts = std::array<std::atomic<int>, kWays>;
  static int sum(const Counts& counts) {
    int all = 0;
    for (const auto& one : counts) all += one;
    return all;
  }
  Counts asked_{}, admitted_{};
  std::atomic<std::int64_t> longest_us_{0};
  std::atomic<int> errors_{0};
  mutable std::mutex mutex_;  // guards error_
  std::string error_;
};

// Sends one request, and notes its answer.
inline Result<Verdict> ask(Node& node, std::span<const Charge> charges, Tally& tally) {
  const Micros began = redis::steady_now();
  auto verdict = node.limiter->check_all(charges);
  if (!verdict) {
    tally.note_error(verdict.error().message);
    return verdict;
  }
  Decision all = verdict->binding_decision();
  all.allowed = verdict->allowed;
  tally.note(all, redis::steady_now() - began);
  return verdict;
}

inline bool ask(Node& node, std::string_view key, const Limit& limit, Tally& tally,
                Fallback fallback = Fallback::local) {
  const Charge charge{.key = key, .limit = &limit, .fallback = fallback};
  const auto verdict = ask(node, {&charge, 1}, tally);
  return verdict && verdict->allowed;
}

// Each node gets `rounds` requests, by turns.
inline void ask_all(Nodes& nodes, int rounds, std::string_view key, const Limit& limit, Tally& tally) {
  for (int i = 0; i < rounds; ++i) {
    for (auto& node : nodes) ask(*node, key, limit, tally);
  }
}

// Threads that ask, one for each node, until it is destroyed; each rests a moment after each request.
class Asking {
 public:
  using Work = std::function<void(Node&)>;
  Asking(Nodes& nodes, const Work& work) {
    for (auto& node : nodes) {
      threads_.emplace_back([this, &node = *node, work] {
        while (!is_over_) {
          work(node);
          std::this_thread::sleep_for(std::chrono::microseconds{300});
        }
      });
    }
  }
  ~Asking() {
    is_over_ = true;
    for (std::thread& thread : threads_) thread.join();
  }
  Asking(const Asking&) = delete;
  Asking& operator=(const Asking&) = delete;

 private:
  std::atomic<bool> is_over_{false};
  std::vector<std::thread> threads_;
};

// Prints a measured value, for people who read the log.
inline void tell(const std::string& what) {
  std::cout << "[ measured ] " << what << "\n";
  ::testing::Test::RecordProperty("measured", what);
}

}  // namespace weir::test
