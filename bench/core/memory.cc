// The memory that a live key takes: the resident bytes of a process before and after it fills a store. Each store has
// its own process.
//
// The clock stands still meanwhile, so that every key stays live. The figures called "the literature" are what texts on
// rate limiting compute for 100,000 users at 100 requests a minute, and for ten million keys in Redis.
#include <cstdio>
#include <string>

#include "core/parts.h"
#include "core/subject.h"
#include "kit/machine.h"
#include "weir/quota.h"

namespace weir::bench {
namespace {

constexpr std::int64_t kNow_us = 1'794'701'843'991'953;

// The bytes of a store for `keys` keys after `times` checks of each; negative if the process failed.
double store_bytes(Algorithm algorithm, std::size_t keys, std::size_t times) {
  const std::size_t log_bytes = times == 1 ? 0 : keys * times * 32;  // more than enough; only used pages are resident
  return measure_in_child([=] {
    const std::uint64_t before = resident_bytes();
    const auto clock = std::make_shared<ManualClock>(Micros{kNow_us});
    Subject subject({.keys = keys, .log_bytes = log_bytes}, value_or_die(compile("100/min", algorithm)), clock);
    ColdKeys source(keys, 0);
    std::size_t allowed = 0;
    for (std::size_t round = 0; round < times; ++round) {
      const auto now = kNow_us + static_cast<std::int64_t>(round);  // a log has an entry for each time
      clock->set(Micros{now});
      for (std::size_t first = 0; first < keys; first += kBatch) {
        allowed += subject.check_many(source.from(first).keys, now);
      }
    }
    if (allowed != keys * times || subject.store().size() < keys) {
      std::fprintf(stderr, "%s: %zu of %zu checks allowed, %zu of %zu keys in the store\n",
                   std::string(to_string(algorithm)).c_str(), allowed, keys * times, subject.store().size(), keys);
    }
    return static_cast<double>(resident_bytes() - before);
  });
}

std::string title(Algorithm algorithm) {
  std::string name(to_string(algorithm));
  for (char& c : name) c = c == '_' ? ' ' : c;
  return name;
}

struct Computed {
  Algorithm algorithm;
  double megabytes;  // for 100,000 users at 100 a minute
};
constexpr Computed kLiterature[] = {
    {Algorithm::fixed_window, 5.6}, {Algorithm::sliding_log, 160},  {Algorithm::sliding_window, 11.2},
    {Algorithm::token_bucket, 8.4}, {Algorithm::leaky_bucket, 8.4}, {Algorithm::leaky_meter, 8.4},
};

}  // namespace

void measure_memory(Report& report, const Scale& scale) {
  const auto keys = static_cast<double>(scale.keys);
  const std::string millions = std::to_string(scale.keys / 1'000'000) + " million keys";
  report.begin("Resident memory at 100/min");
  double most = 0;
  for (const Algorithm algorithm : kAlgorithms) {
    if (algorithm == Algorithm::sliding_log || algorithm == Algorithm::concurrency) continue;
    const double bytes = store_bytes(algorithm, scale.keys, 1);
    most = std::max(most, bytes);
    report.add({millions + ", " + title(algorithm), bytes / keys, "B/key", {}, at_most(24)});
  }
  report.add(
      {millions + ", the largest of these", most / 1e6, "MB", Rival{"the literature", 820.0 * keys / 1e7}, at_most(1)});
  for (const auto& [algorithm, megabytes] : kLiterature) {
    const std::size_t times = algorithm == Algorithm::sliding_log ? 100 : 1;
    report.add({"100,000 users, " + title(algorithm), store_bytes(algorithm, 100'000, times) / 1e6, "MB",
                Rival{"the literature", megabytes}, at_most(1)});
  }
}

}  // namespace weir::bench
