// The zone files of this machine, for tests that compare them with the C library.
//
// For tests only. Needs the package tzdata. Used by tzif_test.cc and calendar_test.cc.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace weir::algorithm {

inline const std::filesystem::path kZoneFolder = "/usr/share/zoneinfo";

// The bytes of a zone's file.
inline std::string zone_bytes(const std::string& name) {
  std::ifstream in(kZoneFolder / name, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// All zones, sorted, without the copies of them that count leap seconds.
inline std::vector<std::string> zone_names() {
  std::vector<std::string> names;
  for (std::filesystem::recursive_directory_iterator entry(kZoneFolder), end; entry != end; ++entry) {
    const std::string name = entry->path().lexically_relative(kZoneFolder).string();
    if (name == "posix" || name == "right") entry.disable_recursion_pending();
    if (entry->is_regular_file() && zone_bytes(name).starts_with("TZif")) names.push_back(name);
  }
  std::ranges::sort(names);
  return names;
}

// Seconds of a UTC date since the epoch.
inline std::int64_t utc_seconds(int year, unsigned month, unsigned day, int hour = 0, int minute = 0, int second = 0) {
  const std::chrono::sys_days date{std::chrono::year{year} / std::chrono::month{month} / std::chrono::day{day}};
  return date.time_since_epoch().count() * 86'400 + hour * 3600 + minute * 60 + second;
}

// Sets the C library's zone while it lives. Tests run one at a time in their process.
class LibraryZone {
 public:
  explicit LibraryZone(const std::string& tz) {
    setenv("TZ", tz.c_str(), 1);
    tzset();
  }
  ~LibraryZone() {
    unsetenv("TZ");
    tzset();
  }
  static std::int64_t offset_at(std::int64_t utc_s) {
    const std::time_t t = utc_s;
    std::tm local{};
    localtime_r(&t, &local);
    return local.tm_gmtoff;
  }
};

}  // namespace weir::algorithm
