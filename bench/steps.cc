// What a decision costs: each algorithm's arithmetic, and a check through the library, beside what the machine gives
// for nothing (one compare-and-swap) and beside what people write first (a map under a mutex).
//
// All take turns in one process and medians count; only the ratios mean anything on a shared machine.
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "algorithm/cell.h"
#include "kit/machine.h"
#include "kit/options.h"
#include "kit/report.h"
#include "kit/rounds.h"
#include "weir/limiter.h"

namespace {

using namespace weir;
using namespace weir::bench;

constexpr std::size_t kChecks = 200'000;  // of a round
constexpr std::size_t kKeys = 2'000;

std::vector<std::string> make_keys() {
  std::vector<std::string> keys;
  for (std::size_t i = 0; i < kKeys; ++i)
    keys.push_back("tenant-0000000000000000/user:" + std::to_string(1'000'000 + i));
  return keys;
}

Contestant compare_and_swap() {
  return {"one compare-and-swap", kChecks, [word = std::make_shared<std::atomic<std::uint64_t>>(0)] {
            for (std::size_t i = 0; i < kChecks; ++i) {
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
  return {"a map under a mutex", kChecks, [&keys, shared = std::make_shared<Shared>()] {
            for (std::size_t i = 0; i < kChecks; ++i) {
              const std::lock_guard lock(shared->mutex);
              shared->tokens[keys[i % kKeys]] += 1;
            }
          }};
}

Contestant arithmetic(Algorithm algorithm) {
  const Limit limit = compile("1000/s", algorithm).value();
  return {"arithmetic, " + std::string(to_string(algorithm)), kChecks,
          [limit, cell = std::make_shared<Cell>(limit), now = std::int64_t{1'794'701'843'991'953}]() mutable {
            for (std::size_t i = 0; i < kChecks; ++i) {
              now += 500;
              cell->prepare(limit, now);
              const auto outcome = cell->decide(limit, now, 1);
              if (outcome.decision.allowed) cell->commit(limit, outcome);
            }
          }};
}

Contestant library(const std::vector<std::string>& keys, Algorithm algorithm) {
  const Limit limit = compile("1000000/s", algorithm).value();
  return {"library, " + std::string(to_string(algorithm)), kChecks,
          [&keys, limit, limiter = std::make_shared<Limiter>()] {
            for (std::size_t i = 0; i < kChecks; ++i) {
              if (!limiter->check(keys[i % kKeys], limit)) std::abort();
            }
          }};
}

}  // namespace

int main(int count, char** words) {
  Options options;
  if (!parse_options(count, words, {}, options)) return 2;
  const std::vector<std::string> keys = make_keys();
  std::deque<Contestant> contestants;
  contestants.push_back(compare_and_swap());
  contestants.push_back(mutexed_map(keys));
  for (const Algorithm algorithm : kAlgorithms) {
    if (algorithm != Algorithm::concurrency) contestants.push_back(arithmetic(algorithm));
  }
  for (const Algorithm algorithm : {Algorithm::sliding_window, Algorithm::token_bucket}) {
    contestants.push_back(library(keys, algorithm));
  }
  std::vector<Contestant*> all;
  for (Contestant& contestant : contestants) all.push_back(&contestant);
  alternate(all, options.quick ? 5 : 15);

  std::printf("%s\n", describe_machine().c_str());
  Report report;
  report.begin("Nanoseconds of a decision");
  for (const Contestant* rival : {all[0], all[1]}) {
    for (const Contestant* contestant : all) {
      if (contestant == rival) continue;
      report.add({contestant->name(), contestant->figure(), "ns", Rival{rival->name(), rival->figure()}});
    }
  }
  report.print(stdout);
  return options.json.empty() || report.write_json(options.json) ? 0 : 1;
}
