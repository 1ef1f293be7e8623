// What a decision costs: each algorithm's arithmetic, and a check through the library, beside what the machine gives
// for nothing (one compare-and-swap) and beside what people write first (a map under a mutex).
//
// Alternates all contestants in one process and prints medians; only the ratios mean anything on a shared machine.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "algorithm/cell.h"
#include "weir/limiter.h"

namespace {

using namespace weir;

constexpr int kRounds = 7;
constexpr int kChecks = 200'000;
constexpr std::size_t kKeys = 2'000;

struct Contestant {
  std::string name;
  std::function<void()> round;  // kChecks decisions
  std::vector<double> ns{};
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

double time_round(const std::function<void()>& round) {
  const auto begin = std::chrono::steady_clock::now();
  round();
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin).count() / kChecks;
}

std::vector<std::string> make_keys() {
  std::vector<std::string> keys;
  for (std::size_t i = 0; i < kKeys; ++i)
    keys.push_back("tenant-0000000000000000/user:" + std::to_string(1'000'000 + i));
  return keys;
}

Contestant compare_and_swap() {
  return {"one compare-and-swap", [word = std::make_shared<std::atomic<std::uint64_t>>(0)] {
            for (int i = 0; i < kChecks; ++i) {
              std::uint64_t old = word->load(std::memory_order_relaxed);
              while (!word->compare_exchange_weak(old, old + 1)) {
              }
            }
          }};
}

Contestant mutexed_map(const std::vector<std::string>& keys) {
  struct Shared {
    std::mutex mutex;
    std::unordered_map<std::string, double> tokens;
  };
  return {"a map under a mutex", [&keys, shared = std::make_shared<Shared>()] {
            for (int i = 0; i < kChecks; ++i) {
              const std::lock_guard lock(shared->mutex);
              shared->tokens[keys[static_cast<std::size_t>(i) % kKeys]] += 1;
            }
          }};
}

Contestant arithmetic(Algorithm algorithm) {
  const Limit limit = compile("1000/s", algorithm).value();
  return {"arithmetic, " + std::string(to_string(algorithm)),
          [limit, cell = std::make_shared<Cell>(limit), now = std::int64_t{1'794'701'843'991'953}]() mutable {
            for (int i = 0; i < kChecks; ++i) {
              now += 500;
              cell->prepare(limit, now);
              const auto outcome = cell->decide(now, 1);
              if (outcome.decision.allowed) cell->commit(outcome.next);
            }
          }};
}

Contestant library(const std::vector<std::string>& keys, Algorithm algorithm) {
  const Limit limit = compile("1000000/s", algorithm).value();
  return {"library, " + std::string(to_string(algorithm)), [&keys, limit, limiter = std::make_shared<Limiter>()] {
            for (int i = 0; i < kChecks; ++i) {
              if (!limiter->check(keys[static_cast<std::size_t>(i) % kKeys], limit)) std::abort();
            }
          }};
}

}  // namespace

int main() {
  const std::vector<std::string> keys = make_keys();
  std::vector<Contestant> contestants{compare_and_swap(), mutexed_map(keys)};
  for (const Algorithm algorithm : kAlgorithms) {
    if (algorithm != Algorithm::concurrency) contestants.push_back(arithmetic(algorithm));
  }
  for (const Algorithm algorithm : {Algorithm::sliding_window, Algorithm::token_bucket}) {
    contestants.push_back(library(keys, algorithm));
  }
  for (int round = 0; round < kRounds; ++round) {
    for (Contestant& contestant : contestants) contestant.ns.push_back(time_round(contestant.round));
  }
  const double unit = median(contestants[0].ns), map = median(contestants[1].ns);
  std::printf("%-32s %10s %10s %10s\n", "", "ns", "of a CAS", "of a map");
  for (const Contestant& contestant : contestants) {
    const double ns = median(contestant.ns);
    std::printf("%-32s %10.1f %10.2f %10.2f\n", contestant.name.c_str(), ns, ns / unit, ns / map);
  }
}
