// The main program of a benchmark: it reads the options, runs the parts one after the other, and reports how busy the
// machine was.
//
// A Scale has the sizes of a benchmark; --quick selects the smaller one. If a part throws Missing, the report says why
// and the next part runs. main() calls run_parts() once.
#pragma once

#include <cstdio>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kit/machine.h"
#include "kit/process.h"
#include "kit/report.h"

namespace weir::bench {

template <class Scale>
struct Part {
  std::string_view name;
  void (*measure)(Report&, const Scale&);
};

struct Options {
  bool is_quick = false;
  std::string json{};  // the file to write the rows to; empty: none
  std::string only{};  // the part to run; empty: all
};

// Returns false, and prints the usage to stderr, if a word is unknown.
inline bool parse_options(int count, char** words, std::span<const std::string_view> parts, Options& options) {
  bool is_known = true;
  for (int i = 1; i < count; ++i) {
    const std::string_view word = words[i];
    const bool has_value = i + 1 < count;
    if (word == "--quick") {
      options.is_quick = true;
    } else if (word == "--json" && has_value) {
      options.json = words[++i];
    } else if (word == "--only" && has_value) {
      options.only = words[++i];
    } else {
      is_known = false;
    }
  }
  bool is_part = options.only.empty();
  std::string names;
  for (const std::string_view part : parts) {
    is_part = is_part || part == options.only;
    names += (names.empty() ? "" : "|") + std::string(part);
  }
  if (is_known && is_part) return true;
  std::fprintf(stderr,
               "options: [--quick] [--json FILE] [--only %s]\n"
               "  --quick  smaller and shorter: to try it out, not for figures to publish\n"
               "  --json   also write the rows to FILE\n"
               "  --only   run one part\n",
               names.c_str());
  return false;
}

// Returns the exit code. Prints `busy` at the end if other processes used much of the machine.
template <class Scale>
int run_parts(int count, char** words, std::span<const Part<Scale>> parts, const Scale& quick, const char* busy) {
  constexpr double kBusyPercent = 10;
  std::vector<std::string_view> names;
  for (const Part<Scale>& part : parts) names.push_back(part.name);
  Options options;
  if (!parse_options(count, words, names, options)) return 2;

  std::printf("%s\n", describe_machine().c_str());
  pin_to_cores(0, 1);
  const CpuTimes begin = cpu_times();
  Report report;
  for (const Part<Scale>& part : parts) {
    if (!options.only.empty() && options.only != part.name) continue;
    std::fprintf(stderr, "measuring: %s\n", std::string(part.name).c_str());
    try {
      part.measure(report, options.is_quick ? quick : Scale{});
    } catch (const Missing& missing) {
      report.begin("Skipped: " + missing.why);
    }
  }
  const Disturbance noise = disturbance(begin, cpu_times());
  report.begin("The machine during the run");
  report.add({"stolen by the host", noise.steal, "%"});
  report.add({"used by other processes", noise.others, "%"});
  report.print(stdout);
  if (noise.others + noise.steal > kBusyPercent) std::printf("\n%s\n", busy);
  return options.json.empty() || report.write_json(options.json) ? 0 : 1;
}

}  // namespace weir::bench
