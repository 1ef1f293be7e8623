// Fuzzes the readings of a path: they contain the path that each server of tests/path_readers.h reads from the target,
// and are equal to those of the slow, simple implementation in tests/slow_path.h.
#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz.h"
#include "path_readers.h"
#include "policy/path_readings.h"
#include "slow_path.h"

using namespace weir;

void fuzz(std::string_view target) {
  if (target.empty()) return;
  std::string scratch;
  const std::string_view normal = policy::normal_path(target, policy::PathCase::folded, scratch);
  std::vector<policy::PathReading> readings;
  if (!policy::find_readings(target, normal, policy::PathCase::folded, readings)) {
    readings = {{std::string(normal), policy::query_of(target)}};
  }
  if (const auto slow = test::slow_readings(target, false)) {
    WEIR_ASSERT(slow->size() > policy::kPathReadingsMax ? readings.empty() : slow->size() == readings.size());
    for (std::size_t i = 0; i < readings.size(); ++i) {
      WEIR_ASSERT(readings[i].path == (*slow)[i].path && readings[i].query == (*slow)[i].query);
    }
  }
  if (readings.empty()) return;
  WEIR_ASSERT(normal == readings[0].path);
  for (const test::NamedReader& reader : test::kPathReaders) {
    const auto path = reader.read(target);
    const bool is_held = !path || std::ranges::find(readings, *path, &policy::PathReading::path) != readings.end();
    if (!is_held) std::fprintf(stderr, "%s reads %s\n", reader.name, path->c_str());
    WEIR_ASSERT(is_held);
  }
}
