// The paths that different servers read in one request target.
//
// `/health#/../api/login` is /health to nginx and /api/login to Go; `//x/api/login` is /api/login to Node's URL. A
// client can avoid a limit that follows one reading with a spelling that the server behind it reads differently. So
// rules are checked for every reading.
//
// A server reads a path in steps: it decodes %2f, merges slashes, follows `..`, cuts `;parameters`. Servers differ in
// the steps that they take and in their order. A gateway that rewrites the path takes some of these steps, and the
// server behind it takes others on what the gateway forwards. The readings of a target are therefore all results of any
// steps in any order, which covers a server behind any number of gateways. Pure; any thread. Tested by
// path_readings_test.cc, fuzz/path_readings.cc (against other implementations) and tests/server/path_readers.sh
// (against real gateways and servers).
#pragma once

#include <compare>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "policy/path.h"

namespace weir::policy {

struct PathReading {
  std::string path;        // as normal_path() returns it; a slash within a segment is %2f
  std::string_view query;  // a part of the target
  friend auto operator<=>(const PathReading&, const PathReading&) = default;
};
inline constexpr std::size_t kPathReadingsMax = 8;

// find_readings()
//
// Returns whether a target may have other readings than `normal`, its normal_path(). If so, `out` receives all
// distinct readings: the normal one first, the others in the order of their paths. `out` is empty if there are more
// than kPathReadingsMax, or if finding them exceeds the work bound, since any client may send such a target. Fast if
// `normal` is a part of the target.
bool find_readings(std::string_view target, std::string_view normal, PathCase letters, std::vector<PathReading>& out);

}  // namespace weir::policy
