// Real processes on real state files: what the tests that kill, stop and fork share.
//
// A child runs a function and leaves by _exit(), so that nothing of the test framework runs twice; what it has to say
// goes through memory that is shared with its parent. The faults of a table are looked for while nobody works on it.
// Not for several threads at once, but for Shared and Gate. Used by process_test.cc, kill_test.cc and others.
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
#include <vector>

#include "table/layout.h"

namespace weir::test {

// A folder of its own, gone at the end.
class TempFolder {
 public:
  TempFolder();
  ~TempFolder();
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

// So many values, all zero, in memory that children share with their parent.
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

// All who work on something pass when all are there.
class Gate {
 public:
  void pass(int count);

 private:
  std::atomic<int> there_{0};
};

// A child. One that still runs when its object ends is killed.
class Process {
 public:
  // work() says whether all went well.
  explicit Process(const std::function<bool()>& work);
  Process(Process&& other) noexcept
      : pid_(std::exchange(other.pid_, 0)), failed_(other.failed_), stopped_(other.stopped_) {}
  Process& operator=(Process&&) = delete;
  ~Process();

  void kill();
  // Returns when the child stands still; false if it has ended.
  bool stop();
  void go_on();

  // What it does now; whoever is seen stopped counts as that until it is told to go on. Does not wait.
  enum class State : std::uint8_t { running, stopped, ended };
  State look();

  bool join();  // waits for the end; false if that was by its own failure

 private:
  void note(int status);

  pid_t pid_ = 0;  // 0: ended
  bool failed_ = false, stopped_ = false;
};

// wait_until()
//
// Looks again and again, with naps of a millisecond, for a minute at most: a bound for what should not take long, so
// that a test that waits for a child's progress fails instead of standing still.
bool wait_until(const std::function<bool()>& is_so);

// faults_of()
//
// What is wrong with a table on which nobody works: words that are still held, blocks that belong to two, or to nobody.
// Empty if all is well. Blocks may also belong to a participant's pending unit, unless all are at rest.
enum class Rest : std::uint8_t { somebody_may_have_died, all_recovered };
std::string faults_of(const table::Region& region, Rest rest);

}  // namespace weir::test
