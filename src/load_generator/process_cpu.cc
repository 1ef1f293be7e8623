// Reads processor time from /proc. See process_cpu.h.
#include "load_generator/process_cpu.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <system_error>

namespace weir::load_generator {
namespace {

// Sums the existing threads. Ended threads are missing, so this suits servers, whose threads stay.
std::int64_t by_schedstat(const std::string& folder) {
  std::int64_t sum = 0;
  std::error_code error;
  for (const auto& thread : std::filesystem::directory_iterator(folder + "/task", error)) {
    std::int64_t ns = 0;
    if (std::ifstream(thread.path() / "schedstat") >> ns) sum += ns;
  }
  return sum;
}

std::optional<std::int64_t> by_ticks(const std::string& folder) {
  std::string line;
  if (!std::getline(std::ifstream(folder + "/stat"), line)) return {};
  std::istringstream fields(line.substr(line.rfind(')') + 1));
  std::string word;
  std::int64_t ticks = 0;
  for (int i = 3; i <= 15 && fields >> word; ++i) {  // utime and stime are fields 14 and 15
    if (i >= 14) ticks += std::stoll(word);
  }
  return ticks * (1'000'000'000 / sysconf(_SC_CLK_TCK));
}

}  // namespace

std::optional<std::int64_t> process_cpu_ns(pid_t pid) {
  const std::string folder = "/proc/" + std::to_string(pid);
  const auto ticks = by_ticks(folder);
  if (!ticks) return {};
  const std::int64_t ns = by_schedstat(folder);
  return ns > 0 ? ns : *ticks;
}

}  // namespace weir::load_generator
