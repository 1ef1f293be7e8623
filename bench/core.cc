// The memory and the speed of the store, beside a compare-and-swap, which it cannot do without, and beside a map under
// a mutex, which people write first.
//
// All contestants take turns in one process, and the report has medians. On a shared machine only the ratios mean
// anything. A missed bar is printed and is not an error, because a noisy machine is not a bug. The files of bench/core/
// say how each part measures.
#include "core/parts.h"
#include "kit/parts.h"

namespace {

using namespace weir::bench;

constexpr Part<Scale> kParts[] = {{"memory", measure_memory},         {"hot", measure_hot},
                                  {"one", measure_one_key},           {"cold", measure_cold},
                                  {"new_limits", measure_new_limits}, {"steps", measure_steps}};
constexpr Scale kQuick{.keys = 1'000'000, .cold_checks = 200'000, .hot_checks = 500'000, .rounds = 5};

}  // namespace

int main(int count, char** words) {
  return run_parts<Scale>(count, words, kParts, kQuick,
                          "The machine was busy: the two threads hardly ran at the same time, so their figures mean "
                          "nothing; the others mean "
                          "little.");
}
