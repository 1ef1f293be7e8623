// A bench of several parts: reads its options, runs them one after the other, and tells how busy the machine was.
//
// A Scale is what a bench calls its sizes; --quick takes the smaller one. Call from main(), once.
#pragma once

#include <cstdio>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kit/machine.h"
#include "kit/options.h"
#include "kit/report.h"

namespace weir::bench {

template <class Scale>
struct Part {
  std::string_view name;
  void (*measure)(Report&, const Scale&);
};

inline constexpr double kBusy = 10;  // percent

// The exit code. `busy` is said if others had more than kBusy of the machine.
template <class Scale>
int run_parts(int count, char** words, std::span<const Part<Scale>> parts, const Scale& quick, const char* busy) {
  std::vector<std::string_view> names;
  for (const Part<Scale>& part : parts) names.push_back(part.name);
  Options options;
  if (!parse_options(count, words, names, options)) return 2;

  std::printf("%s\n", describe_machine().c_str());
  pin_to_core(0);
  const CpuTimes begin = cpu_times();
  Report report;
  for (const Part<Scale>& part : parts) {
    if (!options.only.empty() && options.only != part.name) continue;
    std::fprintf(stderr, "measuring: %s\n", std::string(part.name).c_str());
    part.measure(report, options.quick ? quick : Scale{});
  }
  const Disturbance noise = disturbance(begin, cpu_times());
  report.begin("The machine meanwhile");
  report.add({"stolen by the host", noise.steal, "%"});
  report.add({"used by others", noise.others, "%"});
  report.print(stdout);
  if (noise.others + noise.steal > kBusy) std::printf("\n%s\n", busy);
  return options.json.empty() || report.write_json(options.json) ? 0 : 1;
}

}  // namespace weir::bench
