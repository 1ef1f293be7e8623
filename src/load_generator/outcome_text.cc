// Prints the results of a run as text and as JSON. See load.h.
//
// The text has three significant digits and a suitable unit; the JSON has nanoseconds. Tested by
// outcome_text_test.cc.
#include <array>
#include <cstdio>
#include <string_view>

#include "base/nearest.h"
#include "load_generator/load.h"

namespace weir::load_generator {
namespace {

struct Percentile {
  std::string_view name;
  std::uint32_t per_100k;
};
constexpr std::array<Percentile, 4> kPercentiles = {
    {{"p50", 50'000}, {"p90", 90'000}, {"p99", 99'000}, {"p99.9", 99'900}}};

template <class... Values>
std::string print(const char* format, Values... values) {
  char text[256];
  std::snprintf(text, sizeof text, format, values...);
  return text;
}

std::string duration(double ns) {
  if (ns < 1e3) return print("%.0f ns", ns);
  if (ns < 1e6) return print("%.3g us", ns / 1e3);
  if (ns < 1e9) return print("%.3g ms", ns / 1e6);
  return print("%.3g s", ns / 1e9);
}

std::string count(double value) {
  if (value < 1e3) return print("%.0f", value);
  if (value < 1e6) return print("%.3gk", value / 1e3);
  if (value < 1e9) return print("%.3gM", value / 1e6);
  return print("%.3gG", value / 1e9);
}

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) > 0x7e ? '?' : c;
  }
  return out + '"';
}

unsigned long long whole(std::uint64_t value) { return value; }

}  // namespace

std::string to_text(const Outcome& outcome) {
  std::string text = print("checks   %s/s: %llu in %.2f s", count(outcome.checks_per_second()).c_str(),
                           whole(outcome.checks), outcome.seconds);
  text += print("; denied %llu, errors %llu", whole(outcome.denied), whole(outcome.errors));
  if (outcome.unanswered > 0) text += print(", unanswered %llu", whole(outcome.unanswered));
  text += "\ntime    ";
  for (const auto& [name, part] : kPercentiles) {
    text += ' ' + std::string(name) + ' ' + duration(static_cast<double>(outcome.times.percentile(part))) + ',';
  }
  text += " max " + duration(static_cast<double>(outcome.times.max())) + "\n";
  text += print("bytes    %s/s out, %s/s in\n", count(static_cast<double>(outcome.bytes_out) / outcome.seconds).c_str(),
                count(static_cast<double>(outcome.bytes_in) / outcome.seconds).c_str());
  text += print("cores    generator %.2f", outcome.generator_cores);
  if (const auto ns = outcome.server_ns_per_check()) {
    text += print(", server %.2f: ", *outcome.server_cores) + duration(*ns) + " a check";
  }
  text += '\n';
  if (outcome.errors > 0) text += "first error: " + base::in_quotes(outcome.first_error, kErrorTextMax) + "\n";
  return text;
}

std::string to_json(const Outcome& outcome) {
  std::string text = print("{\"checks\": %llu, \"seconds\": %.6f, \"checks_per_second\": %.1f", whole(outcome.checks),
                           outcome.seconds, outcome.checks_per_second());
  text += print(", \"denied\": %llu, \"errors\": %llu, \"unanswered\": %llu", whole(outcome.denied),
                whole(outcome.errors), whole(outcome.unanswered));
  for (const auto& [name, part] : kPercentiles) {
    text += ", \"" + std::string(name) + "_ns\": " + std::to_string(outcome.times.percentile(part));
  }
  text += ", \"max_ns\": " + std::to_string(outcome.times.max());
  text += print(", \"bytes_out\": %llu, \"bytes_in\": %llu", whole(outcome.bytes_out), whole(outcome.bytes_in));
  text += print(", \"generator_cores\": %.3f", outcome.generator_cores);
  const auto ns = outcome.server_ns_per_check();
  text += ", \"server_cores\": " + (outcome.server_cores ? print("%.3f", *outcome.server_cores) : "null");
  text += ", \"server_ns_per_check\": " + (ns ? print("%.1f", *ns) : "null");
  text += ", \"first_error\": " + (outcome.errors > 0 ? quoted(outcome.first_error) : "null");
  return text + "}\n";
}

}  // namespace weir::load_generator
