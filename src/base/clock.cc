// The only file that reads the system's clocks or waits for them. See weir/clock.h.

#include "weir/clock.h"

#include <algorithm>
#include <cstdio>
#include <ctime>

#include "base/text.h"

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

// The values in a state file may be damaged. So it computes without overflow and clamps the sum to a valid time.
class SharedClock final : public Clock {
 public:
  SharedClock(const std::int64_t& offset_us, std::int64_t& latest_us) : offset_us_(offset_us), latest_us_(latest_us) {}
  Micros now() const override {
    const auto offset = static_cast<std::uint64_t>(__atomic_load_n(&offset_us_, __ATOMIC_RELAXED));
    const auto sum = static_cast<std::int64_t>(static_cast<std::uint64_t>(read_us(CLOCK_BOOTTIME)) + offset);
    const std::int64_t time = std::clamp<std::int64_t>(sum, 0, kTimeEnd - 1);
    if (std::int64_t latest = __atomic_load_n(&latest_us_, __ATOMIC_RELAXED); is_far_behind(latest, time)) {
      // If another thread or process has stored a time first, that one is good enough.
      __atomic_compare_exchange_n(&latest_us_, &latest, time, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    }
    return Micros{time};
  }

 private:
  static bool is_far_behind(std::int64_t latest, std::int64_t time) { return latest < time - 1'000'000; }
  const std::int64_t& offset_us_;
  std::int64_t& latest_us_;
};

std::array<std::uint64_t, 2> read_boot_id() {
  std::array<std::uint64_t, 2> id{};
  std::FILE* file = std::fopen("/proc/sys/kernel/random/boot_id", "re");
  if (file == nullptr) return id;
  std::size_t digits = 0;
  for (int c = std::fgetc(file); c != EOF && digits < 32; c = std::fgetc(file)) {
    const int digit = base::hex_digit(static_cast<char>(c));
    if (digit < 0) continue;  // it has dashes
    id[digits / 16] = id[digits / 16] << 4 | static_cast<std::uint64_t>(digit);
    ++digits;
  }
  std::fclose(file);
  return id;
}

constexpr Micros kNapMax{1'000'000};

}  // namespace

void Sleeper::wake() {
  // Notifies under the lock: the woken thread may destroy the sleeper at once.
  const std::lock_guard lock(mutex_);
  woken_ = true;
  changed_.notify_one();
}

void Clock::sleep(Sleeper& sleeper, Micros until) const {
  std::unique_lock lock(sleeper.mutex_);
  const auto is_woken = [&] { return sleeper.woken_; };
  if (until == Micros::max()) {
    sleeper.changed_.wait(lock, is_woken);
  } else if (const Micros left = until - now(); left > Micros{0}) {
    sleeper.changed_.wait_for(lock, std::min(left, kNapMax), is_woken);
  }
  sleeper.woken_ = false;
}

// The sleeper enters the list before it reads the time, and the time changes before wake_all() walks the list. So one
// of the two sees the other.
void ManualClock::sleep(Sleeper& sleeper, Micros until) const {
  {
    const std::lock_guard lock(sleepers_mutex_);
    sleeper.next_ = sleepers_;
    sleepers_ = &sleeper;
  }
  {
    std::unique_lock lock(sleeper.mutex_);
    sleeper.changed_.wait(lock, [&] { return sleeper.woken_ || now() >= until; });
    sleeper.woken_ = false;
  }
  const std::lock_guard lock(sleepers_mutex_);
  Sleeper** place = &sleepers_;
  while (*place != &sleeper) place = &(*place)->next_;
  *place = sleeper.next_;
}

void ManualClock::set(Micros now) {
  now_us_.store(now.count(), std::memory_order_relaxed);
  wake_all();
}

void ManualClock::advance(Micros by) {
  now_us_.fetch_add(by.count(), std::memory_order_relaxed);
  wake_all();
}

void ManualClock::wake_all() {
  const std::lock_guard lock(sleepers_mutex_);
  for (Sleeper* sleeper = sleepers_; sleeper != nullptr; sleeper = sleeper->next_) sleeper->wake();
}

std::shared_ptr<const Clock> make_system_clock() { return std::make_shared<SystemClock>(); }

ClockReading read_clocks() { return {read_boot_id(), read_us(CLOCK_REALTIME), read_us(CLOCK_BOOTTIME)}; }

std::chrono::nanoseconds read_stopwatch() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return std::chrono::seconds{t.tv_sec} + std::chrono::nanoseconds{t.tv_nsec};
}

std::shared_ptr<const Clock> make_shared_clock(const std::int64_t& offset_us, std::int64_t& latest_us) {
  return std::make_shared<SharedClock>(offset_us, latest_us);
}

}  // namespace weir
