// Participants as fibers of one thread, with a switch at every access to shared memory.
//
// So an interleaving is a list of numbers: it can be drawn at random, enumerated and repeated. A test can also kill a
// fiber: its stack is unwound, and it does not touch the table again, as after SIGKILL. One thread; one schedule at a
// time. Tested by all of schedule_test.cc: see tests/mutants/table.txt.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>

namespace weir::test {

// While it exists, the table gives out only the given number of limit numbers.
class FewLimits {
 public:
  explicit FewLimits(unsigned count);
  ~FewLimits();
  FewLimits(const FewLimits&) = delete;
  FewLimits& operator=(const FewLimits&) = delete;
};

// An operation that does not end, in a fiber or in the test itself.
struct NeverEnds : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class Schedule {
 public:
  static constexpr std::size_t kFibers = 4;
  struct Fiber;

  Schedule();
  ~Schedule();
  Schedule(const Schedule&) = delete;
  Schedule& operator=(const Schedule&) = delete;

  // Before a new history: kills what is left.
  void reset(unsigned solo_tries);

  void start(std::size_t fiber, std::function<void()> work);
  bool is_over(std::size_t fiber) const;

  // run()
  //
  // Runs one fiber for `accesses` accesses, or fewer if it ends. Returns how many it made.
  std::uint64_t run(std::size_t fiber, std::uint64_t accesses);
  void run_to_end(std::size_t fiber) { run(fiber, ~std::uint64_t{0}); }

  void kill(std::size_t fiber);

  // The number of accesses so far: a clock for histories. Each call is a moment of its own.
  std::uint64_t moment();

  // Whether a fiber was given up because its operation did not end.
  bool has_stuck() const;

  // While it exists, no fiber is switched: for long work that is not under test.
  class Pause {
   public:
    Pause();
    ~Pause();
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;
  };

 private:
  std::array<std::unique_ptr<Fiber>, kFibers> fibers_;
};

}  // namespace weir::test
