// Fuzzes the readings of paths: whatever the target, they hold what each of the well-known servers of
// tests/path_readers.h reads, and are those of the slow reader of tests/slow_path.h.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "path_readers.h"
#include "policy/path_readings.h"
#include "slow_path.h"
#include "weir/result.h"

using namespace weir;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view target(reinterpret_cast<const char*>(data), size);
  if (target.empty()) return 0;
  std::string scratch;
  const std::string_view normal = normal_path(target, PathCase::folded, scratch);
  std::vector<PathReading> readings;
  if (!find_readings(target, normal, PathCase::folded, readings)) {
    readings = {{std::string(normal), query_of(target)}};
  }
  if (const auto slow = test::slow_readings(target, false)) {
    WEIR_ASSERT(slow->size() > kPathReadingsMax ? readings.empty() : slow->size() == readings.size());
    for (std::size_t i = 0; i < readings.size(); ++i) {
      WEIR_ASSERT(readings[i].path == (*slow)[i].path && readings[i].query == (*slow)[i].query);
    }
  }
  if (readings.empty()) return 0;
  WEIR_ASSERT(normal == readings[0].path);
  for (const test::NamedReader& reader : test::kPathReaders) {
    const auto path = reader.read(target);
    const bool is_held = !path || std::ranges::find(readings, *path, &PathReading::path) != readings.end();
    if (!is_held) std::fprintf(stderr, "%s reads %s\n", reader.name, path->c_str());
    WEIR_ASSERT(is_held);
  }
  return 0;
}
