// Real processes on real state files: helpers for tests that kill, stop and fork.
//
// A child runs a function and leaves by _exit(), so nothing of the test framework runs twice. It reports through memory
// that it shares with its parent. faults_of() needs a table that no process uses. Not for several threads at once,
// except Shared and Gate. Used by process_test.cc, kill_test.cc and others.
#pragma once

#include <sys/mman.h>
#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <new>
#include <string>
#include <utility>

#include "base/folder_fixture.h"
#include "table/layout.h"
#include "weir/clock.h"

namespace weir::test {

// Values that are all zero at first, in memory that children share with their parent.
template <class T>
class Shared {
 public:
  explicit Shared(std::size_t count = 1) : bytes_(count * sizeof(T)) {
    void* memory = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    values_ = static_cast<T*>(memory);
  }
  ~Shared() { ::munmap(values_, bytes_); }
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;
  T& operator[](std::size_t i) const { return values_[i]; }
  T& operator*() const { return values_[0]; }
  T* operator->() const { return values_; }

 private:
  std::size_t bytes_;
  T* values_;
};

// A barrier: pass(n) returns when n threads or processes have called it.
class Gate {
 public:
  void pass(int count);

 private:
  std::atomic<int> there_{0};
};

// A clock that processes share: it counts what they add to a number in shared memory.
class SharedClock final : public Clock {
 public:
  static constexpr std::int64_t kStart =
      692 * std::int64_t{2'592'000'000'000} + 1'000;  // a window of 30 days has just begun
  explicit SharedClock(const std::atomic<std::int64_t>& time) : time_(time) {}
  Micros now() const override { return Micros{kStart + time_.load(std::memory_order_relaxed)}; }

 private:
  const std::atomic<std::int64_t>& time_;
};

// A child. One that still runs when its object ends is killed.
class Process {
 public:
  // work() returns whether all went well.
  explicit Process(const std::function<bool()>& work);
  Process(Process&& other) noexcept
      : pid_(std::exchange(other.pid_, 0)), failed_(other.failed_), stopped_(other.stopped_) {}
  Process& operator=(Process&&) = delete;
  ~Process();

  void kill();
  // Returns when the child is stopped; false if it has ended.
  bool stop();
  void go_on();

  // What the child does now. Once seen as stopped, it counts as stopped until go_on(). Does not wait.
  enum class State : std::uint8_t { running, stopped, ended };
  State look();

  bool join();  // waits for the end; false if the child failed by itself

 private:
  void note(int status);

  pid_t pid_ = 0;  // 0: ended
  bool failed_ = false, stopped_ = false;
};

// wait_until()
//
// Checks a condition every millisecond, for a minute at most. So a test that waits for a child fails if the child makes
// no progress, and does not hang.
bool wait_until(const std::function<bool()>& is_so);

// faults_of()
//
// The errors of a table that no process uses: words that are still held, blocks with two owners or none. Empty if there
// are none. A block may also belong to the pending unit of a participant, unless all participants were recovered.
enum class Rest : std::uint8_t { somebody_may_have_died, all_recovered };
std::string faults_of(const table::Region& region, Rest rest);

}  // namespace weir::test
