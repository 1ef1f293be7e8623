// Paths as servers read them, computed the slow and obvious way: every step of every server, tried on every result. The
// reference for src/policy/path.h and path_readings.h, of which it uses nothing. Any thread.
#pragma once

#include <compare>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weir::test {

struct SlowReading {
  std::string path, query;
  friend auto operator<=>(const SlowReading&, const SlowReading&) = default;
};

// The one reading that normal_path() and query_of() have.
SlowReading slow_read(std::string_view target, bool case_matters);

// Every different reading, slow_read()'s first and the others sorted; some 9 of them if there are more than 8. Nothing
// if finding them takes longer than the bound of Weir allows.
std::optional<std::vector<SlowReading>> slow_readings(std::string_view target, bool case_matters);

}  // namespace weir::test
