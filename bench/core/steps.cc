// The steps of a decision: the arithmetic of each algorithm without a store, and a check through the library. Each is
// compared with one compare-and-swap, and with a map under a mutex.
//
// All keys are in the processor's cache, so the figures are those of the instructions.
#include <atomic>
#include <cstdlib>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "algorithm/cell.h"
#include "core/comparators.h"
#include "core/contest.h"
#include "core/parts.h"
#include "core/subject.h"
#include "kit/rounds.h"
#include "weir/limiter.h"

namespace weir::bench {
namespace {

constexpr std::size_t kKeys = 2'000;

Contestant arithmetic(Algorithm algorithm, std::size_t checks) {
  const Limit limit = value_or_die(compile("1000/s", algorithm));
  return {"arithmetic, " + std::string(to_string(algorithm)), checks,
          [=, cell = std::make_shared<algorithm::Cell>(limit), now = std::int64_t{1'794'701'843'991'953}]() mutable {
            for (std::size_t i = 0; i < checks; ++i) {
              now += 500;
              cell->prepare(limit, now);
              const auto outcome = cell->decide(limit, now, 1);
              if (outcome.decision.allowed) cell->commit(limit, outcome);
            }
          }};
}

}  // namespace

void measure_steps(Report& report, const Scale& scale) {
  const std::size_t checks = scale.hot_checks / 10;
  std::vector<std::string> keys;
  for (std::size_t i = 0; i < kKeys; ++i) {
    keys.push_back("tenant-0000000000000000/user:" + std::to_string(1'000'000 + i));
  }
  std::atomic<std::uint64_t> word{0};
  MutexedMap map;
  const auto clock = make_system_clock();
  const Limit window = value_or_die(compile("1000000/s", Algorithm::sliding_window));
  const Limit bucket = value_or_die(compile("1000000/s", Algorithm::token_bucket));

  std::deque<Contestant> contestants;
  contestants.emplace_back("one compare-and-swap", checks, [&] {
    for (std::size_t i = 0; i < checks; ++i) {
      std::uint64_t old = word.load(std::memory_order_relaxed);
      while (!word.compare_exchange_weak(old, old + 1)) {
      }
    }
  });
  contestants.emplace_back("a map under a mutex", checks, [&] {
    for (std::size_t i = 0; i < checks; ++i) map.check(keys[i % kKeys], bucket, clock->now().count());
  });
  for (const Algorithm algorithm : kAlgorithms) {
    if (algorithm != Algorithm::concurrency) contestants.push_back(arithmetic(algorithm, checks));
  }
  for (const Limit* const limit : {&window, &bucket}) {
    contestants.emplace_back("library, " + std::string(to_string(limit->algorithm)), checks,
                             [&, limit, limiter = std::make_shared<Limiter>()] {
                               for (std::size_t i = 0; i < checks; ++i) {
                                 if (!limiter->check(keys[i % kKeys], *limit)) std::abort();
                               }
                             });
  }
  std::vector<Contestant*> all;
  for (Contestant& contestant : contestants) all.push_back(&contestant);
  alternate(all, scale.rounds);

  report.begin("Nanoseconds per decision");
  for (const Contestant* rival : {all[0], all[1]}) {
    for (const Contestant* contestant : all) {
      if (contestant != rival) report.add(cost_row(*contestant, *rival, {}));
    }
  }
}

}  // namespace weir::bench
