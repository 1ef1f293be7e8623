// The options that every bench has: a quick run, rows as JSON, one part only.
//
// Plain words, read once by main().
#pragma once

#include <cstdio>
#include <span>
#include <string>
#include <string_view>

namespace weir::bench {

struct Options {
  bool quick = false;
  std::string json;  // where to write the rows; empty: nowhere
  std::string only;  // the part to run; empty: all
};

// parse_options()
//
// False, with the usage on stderr, if a word is not known. `parts` are the names that --only may give.
inline bool parse_options(int count, char** words, std::span<const std::string_view> parts, Options& options) {
  bool good = true;
  for (int i = 1; i < count; ++i) {
    const std::string_view word = words[i];
    const bool has_value = i + 1 < count;
    if (word == "--quick") {
      options.quick = true;
    } else if (word == "--json" && has_value) {
      options.json = words[++i];
    } else if (word == "--only" && has_value) {
      options.only = words[++i];
    } else {
      good = false;
    }
  }
  bool found = options.only.empty();
  std::string names;
  for (const std::string_view part : parts) {
    found = found || part == options.only;
    names += (names.empty() ? "" : "|") + std::string(part);
  }
  if (good && found) return true;
  std::fputs("options: [--quick] [--json FILE]", stderr);
  std::fputs(names.empty() ? "\n" : (" [--only " + names + "]\n").c_str(), stderr);
  std::fputs("  --quick  smaller and shorter: to try out, not to quote\n  --json   also write the rows to FILE\n",
             stderr);
  if (!names.empty()) std::fputs("  --only   one part, such as for a profiler\n", stderr);
  return false;
}

}  // namespace weir::bench
