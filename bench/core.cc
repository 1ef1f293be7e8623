// The store beside what the machine gives for nothing and what people write first: memory of a key, speed of a check.
//
// All contestants take turns in one process and medians count; only the ratios mean anything on a shared machine. A
// missed bar is printed and is not an error, for a noisy machine is not a bug. What is measured how: bench/core/.
#include "core/parts.h"
#include "kit/parts.h"

namespace {

using namespace weir::bench;

constexpr Part<Scale> kParts[] = {{"memory", measure_memory},
                                  {"hot", measure_hot},
                                  {"one", measure_one_key},
                                  {"cold", measure_cold},
                                  {"new_limits", measure_new_limits}};
constexpr Scale kQuick{.keys = 1'000'000, .cold_checks = 200'000, .hot_checks = 500'000, .rounds = 5};

}  // namespace

int main(int count, char** words) {
  return run_parts<Scale>(
      count, words, kParts, kQuick,
      "The machine was busy: two threads hardly met, so their figures mean nothing; the rest means little.");
}
