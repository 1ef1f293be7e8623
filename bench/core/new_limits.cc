// The first check with a limit that is new to the table: the table gives the limit a number, and converts the key to
// it.
//
// Ten keys take turns, as with clients that send limits in their requests (CL.THROTTLE). There are fewer limits than
// the table has numbers for, and each round has a new table.
#include <algorithm>
#include <string>
#include <vector>

#include "core/parts.h"
#include "core/subject.h"
#include "kit/machine.h"
#include "kit/rounds.h"

namespace weir::bench {
namespace {

constexpr std::size_t kLimits = 900, kKeys = 10;

double round_ns(const std::vector<Limit>& limits) {
  const auto clock = make_system_clock();
  const auto store = value_or_die(store::MemoryStore::open({.keys = 10'000}, clock));
  std::vector<std::string> keys;
  for (std::size_t i = 0; i < kKeys; ++i) keys.push_back("key " + std::to_string(i));
  const std::int64_t now = clock->now().count();
  return time_ns([&] {
           for (std::size_t i = 0; i < limits.size(); ++i) {
             value_or_die(store->check({keys[i % kKeys], &limits[i]}, now));
           }
         }) /
         static_cast<double>(limits.size());
}

}  // namespace

void measure_new_limits(Report& report, const Scale& scale) {
  std::vector<Limit> limits;
  for (std::size_t i = 0; i < kLimits; ++i) {
    limits.push_back(value_or_die(compile(std::to_string(100 + i) + "/hour", Algorithm::token_bucket)));
  }
  std::vector<double> times;
  for (int i = 0; i < scale.rounds; ++i) times.push_back(round_ns(limits));
  std::nth_element(times.begin(), times.begin() + scale.rounds / 2, times.end());
  report.begin("New limits: " + std::to_string(kLimits) + " on " + std::to_string(kKeys) + " keys");
  report.add({"first check under a new limit", times[static_cast<std::size_t>(scale.rounds) / 2], "ns"});
}

}  // namespace weir::bench
