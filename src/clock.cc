// The only place that asks the system what time it is. See weir/clock.h.

#include "weir/clock.h"

#include <ctime>

namespace weir {
namespace {

std::int64_t read_us(clockid_t id) {
  timespec t{};
  clock_gettime(id, &t);
  return std::int64_t{t.tv_sec} * 1'000'000 + t.tv_nsec / 1'000;
}

class SystemClock final : public Clock {
 public:
  SystemClock() : offset_us_(read_us(CLOCK_REALTIME) - read_us(CLOCK_BOOTTIME)) {}
  Micros now() const override { return Micros{read_us(CLOCK_BOOTTIME) + offset_us_}; }

 private:
  const std::int64_t offset_us_;
};

}  // namespace

std::shared_ptr<const Clock> make_system_clock() { return std::make_shared<SystemClock>(); }

}  // namespace weir
