// Reads /proc. See machine.h.
#include "kit/machine.h"

#include <sched.h>
#include <sys/times.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <sstream>

namespace weir::bench {
namespace {

// The rest of the first line that begins with `name`.
std::string field(const char* path, const std::string& name) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.compare(0, name.size(), name) != 0) continue;
    const std::size_t at = line.find_first_not_of(" \t:", name.size());
    return at == line.npos ? "" : line.substr(at);
  }
  return "";
}

double percent(std::uint64_t part, std::uint64_t all) {
  return all == 0 ? 0 : 100.0 * static_cast<double>(part) / static_cast<double>(all);
}

}  // namespace

int cores() { return static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)); }

void pin_to_cores(int begin, int end) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (int core = begin; core < end; ++core) CPU_SET(static_cast<std::size_t>(core), &set);
  (void)sched_setaffinity(0, sizeof set, &set);
}

std::string describe_machine() {
  utsname system{};
  uname(&system);
  std::string model = field("/proc/cpuinfo", "model name");
  if (model.empty()) model = "CPU part " + field("/proc/cpuinfo", "CPU part");  // on aarch64
  const double gib = std::atof(field("/proc/meminfo", "MemTotal").c_str()) / (1 << 20);
  std::string load;
  std::getline(std::ifstream("/proc/loadavg"), load);
  char text[512];
  std::snprintf(text, sizeof text, "%s, family/model %s/%s, %s, %d cores, %.0f GiB, Linux %s; load %s", model.c_str(),
                field("/proc/cpuinfo", "cpu family").c_str(), field("/proc/cpuinfo", "model\t").c_str(), system.machine,
                cores(), gib, system.release, load.substr(0, load.find(' ')).c_str());
  return text;
}

CpuTimes cpu_times() {
  CpuTimes times;
  std::istringstream line(field("/proc/stat", "cpu "));
  std::uint64_t ticks = 0;
  for (int i = 0; i < 8 && line >> ticks; ++i) {  // user nice system idle iowait irq softirq steal
    times.all += ticks;
    if (i == 3 || i == 4) times.idle += ticks;
    if (i == 7) times.steal = ticks;
  }
  tms own{};  // in the same ticks
  ::times(&own);
  times.own = static_cast<std::uint64_t>(own.tms_utime + own.tms_stime + own.tms_cutime + own.tms_cstime);
  return times;
}

Disturbance disturbance(const CpuTimes& from, const CpuTimes& to) {
  const std::uint64_t all = to.all - from.all, steal = to.steal - from.steal;
  const std::uint64_t known = to.idle - from.idle + steal + to.own - from.own;
  return {percent(steal, all), percent(all > known ? all - known : 0, all)};
}

std::uint64_t resident_bytes() {
  return std::strtoull(field("/proc/self/smaps_rollup", "Rss").c_str(), nullptr, 10) * 1024;
}

double measure_in_child(const std::function<double()>& work) {
  int ends[2];
  if (pipe(ends) != 0) return -1;
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    const double figure = work();
    const bool sent = write(ends[1], &figure, sizeof figure) == sizeof figure;
    std::fflush(nullptr);
    _exit(sent ? 0 : 1);
  }
  close(ends[1]);
  double figure = -1;
  if (child < 0 || read(ends[0], &figure, sizeof figure) != sizeof figure) figure = -1;
  close(ends[0]);
  if (child > 0) waitpid(child, nullptr, 0);
  return figure;
}

}  // namespace weir::bench
