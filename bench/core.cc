// The store beside what the machine gives for nothing and what people write first: memory of a key, speed of a check.
//
// All contestants take turns in one process and medians count; only the ratios mean anything on a shared machine. A
// missed bar is printed and is not an error, for a noisy machine is not a bug. What is measured how: bench/core/.
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "core/parts.h"
#include "kit/machine.h"
#include "kit/options.h"

namespace {

using namespace weir::bench;

struct Part {
  std::string_view name;
  void (*measure)(Report&, const Scale&);
};
constexpr Part kParts[] = {
    {"memory", measure_memory}, {"hot", measure_hot}, {"one", measure_one_key}, {"cold", measure_cold}};
constexpr Scale kQuick{.keys = 1'000'000, .cold_checks = 200'000, .hot_checks = 500'000, .rounds = 5};
constexpr double kBusy = 10;  // percent

}  // namespace

int main(int count, char** words) {
  std::vector<std::string_view> names;
  for (const Part& part : kParts) names.push_back(part.name);
  Options options;
  if (!parse_options(count, words, names, options)) return 2;

  std::printf("%s\n", describe_machine().c_str());
  pin_to_core(0);
  const CpuTimes begin = cpu_times();
  Report report;
  for (const Part& part : kParts) {
    if (!options.only.empty() && options.only != part.name) continue;
    std::fprintf(stderr, "measuring: %s\n", std::string(part.name).c_str());
    part.measure(report, options.quick ? kQuick : Scale{});
  }
  const Disturbance noise = disturbance(begin, cpu_times());
  report.begin("The machine meanwhile");
  report.add({"stolen by the host", noise.steal, "%"});
  report.add({"used by others", noise.others, "%"});
  report.print(stdout);
  if (noise.others + noise.steal > kBusy) {
    std::puts("\nThe machine was busy: two threads hardly met, so their figures mean nothing; the rest means little.");
  }
  return options.json.empty() || report.write_json(options.json) ? 0 : 1;
}
