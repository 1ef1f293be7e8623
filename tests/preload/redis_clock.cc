// The clock of a real redis-server, set by a test. This library is loaded into the server before the C library, and
// returns the time from a file, in microseconds since 1970. So Redis decides, and expires keys, by the test's clock.
//
// WEIR_REDIS_CLOCK names the file; its first eight bytes may change at any time. Used by tests/fleet_scenario_test.cc.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/time.h>

#include <cstdint>
#include <cstdlib>

namespace {

std::int64_t read_clock() {
  static const std::int64_t* const clock = [] {
    const char* const path = std::getenv("WEIR_REDIS_CLOCK");
    const int file = path == nullptr ? -1 : ::open(path, O_RDONLY | O_CLOEXEC);
    void* const map = file < 0 ? MAP_FAILED : ::mmap(nullptr, sizeof(std::int64_t), PROT_READ, MAP_SHARED, file, 0);
    if (map == MAP_FAILED) std::abort();
    return static_cast<const std::int64_t*>(map);
  }();
  return __atomic_load_n(clock, __ATOMIC_ACQUIRE);
}

}  // namespace

extern "C" int gettimeofday(timeval* __restrict time, void* __restrict) noexcept {
  const std::int64_t now_us = read_clock();
  time->tv_sec = now_us / 1'000'000;
  time->tv_usec = now_us % 1'000'000;
  return 0;
}
