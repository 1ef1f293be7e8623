// Reads process statistics from /proc. See process_stats.h.
#include "server/observe/process_stats.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace weir::server::observe {
namespace {

std::string read_all(const char* path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// The boot time of the machine, in seconds since the epoch.
std::int64_t boot_time() {
  const std::string text = read_all("/proc/stat");
  constexpr std::string_view kName = "\nbtime ";
  const std::size_t at = text.find(kName);
  std::int64_t seconds = 0;
  if (at != text.npos) std::from_chars(text.data() + at + kName.size(), text.data() + text.size(), seconds);
  return seconds;
}

// New kernels report the number as the folder's size; with older ones, count the entries.
std::uint64_t open_descriptors() {
  struct stat about {};
  if (stat("/proc/self/fd", &about) == 0 && about.st_size > 0) return static_cast<std::uint64_t>(about.st_size);
  std::error_code error;
  std::uint64_t count = 0;
  for (std::filesystem::directory_iterator at("/proc/self/fd", error), end; !error && at != end; at.increment(error)) {
    ++count;
  }
  return count;
}

}  // namespace

std::optional<ProcessStats> read_process_stat(std::string_view line, std::int64_t ticks_per_second,
                                              std::uint64_t page_bytes) {
  // The name may contain any character; it ends at the last bracket. The fields after it are numbered from 3.
  const std::size_t name_end = line.rfind(')');
  if (name_end == line.npos || ticks_per_second <= 0) return {};
  line.remove_prefix(name_end + 1);
  std::array<std::int64_t, 25> fields{};
  for (std::size_t field = 3; field < fields.size(); ++field) {
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    const std::size_t end = std::min(line.find(' '), line.size());
    if (end == 0) return {};
    std::from_chars(line.data(), line.data() + end, fields[field]);
    line.remove_prefix(end);
  }
  const auto time = [&](std::int64_t ticks) { return Micros{ticks * 1'000'000 / ticks_per_second}; };
  const auto whole = [](std::int64_t n) { return static_cast<std::uint64_t>(n < 0 ? 0 : n); };
  return ProcessStats{.cpu = time(fields[14] + fields[15]),
                      .started = time(fields[22]),
                      .resident_bytes = whole(fields[24]) * page_bytes,
                      .virtual_bytes = whole(fields[23]),
                      .threads = whole(fields[20])};
}

ProcessStats process_stats() {
  const auto page_bytes = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  ProcessStats stats =
      read_process_stat(read_all("/proc/self/stat"), sysconf(_SC_CLK_TCK), page_bytes).value_or(ProcessStats{});
  static const std::int64_t booted = boot_time();
  stats.started += Micros{booted * 1'000'000};
  stats.open_fds = open_descriptors();
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) stats.max_fds = limit.rlim_cur;
  return stats;
}

}  // namespace weir::server::observe
