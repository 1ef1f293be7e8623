// How whoever asks waits for the answer: a fiber of a loop by that loop's own lane, anybody else by a thread that
// drives a lane for all of them.
//
//   Question question{.what = ..., .charges = charges, .decisions = room};
//   ways.run({&question, 1});                       // returns when it is answered, or has failed
//
// A loop has a LoopWay: it watches descriptor(), calls turn() when that is readable, and flush() once a turn. Tested by
// tests/fleet_nodes_test.cc and tests/server/fleet.sh.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "fiber.h"
#include "fleet/lane.h"
#include "server/descriptor.h"

namespace weir {

// What is asked, and room for the answer; all of it stays until it is answered.
struct Question {
  ScriptRequest::What what = ScriptRequest::What::charge;
  std::span<const Charge> charges{};  // of one subject, in a cluster; each key once
  std::string_view id{};
  Micros lasts{0};
  std::int64_t charged_us = 0;
  std::span<Decision> decisions{};
  std::span<std::int64_t> reserved{};
  bool is_tied = false;  // in the same call as the next one, right before it

  Ask::State state = Ask::State::failed;
  ScriptRequest::Ruling ruling = ScriptRequest::Ruling::denied;
  bool is_in_doubt = false;        // it failed, but the server may have executed it
  std::shared_ptr<Doubt> doubt{};  // of that, if more will be known: whoever asked says what was decided instead
  SharedTicket shared{};           // of a write-back
  std::int64_t decided_us = 0;
  std::string error{};
};

// Something else that answers questions, on a clock of its own: a scripted Redis of a test. The store has no thread
// then; the test does what its keeper would.
class Transport {
 public:
  virtual ~Transport() = default;
  virtual void run(std::span<Question> questions) = 0;
  virtual bool is_away() const = 0;
  virtual Micros now() const = 0;
};

// Of a loop and its thread.
class LoopWay {
 public:
  // Fibers of that thread; both outlive it.
  LoopWay(const redis::Target& target, LaneOptions options, Fibers& fibers);
  ~LoopWay();
  LoopWay(const LoopWay&) = delete;
  LoopWay& operator=(const LoopWay&) = delete;

  // Readable when there is something to be done, also because time has passed; it stays the same.
  int descriptor() const { return epoll_.get(); }
  void flush();
  // Fibers whose answers have come go on within it.
  void turn();
  // All that wait go on, with failures; what is asked from now on fails at once.
  void close();
  Lane& lane() { return lane_; }

  // Nobody would be asked.
  bool is_away() const { return lane_.is_away(); }

  // The one of this thread, if the caller is on a fiber of its.
  static LoopWay* here();
  void run(std::span<Question> questions);

 private:
  class Waiting;
  void resume_ready();
  void set_timer();

  Descriptor epoll_, timer_;
  Micros set_for_ = Micros::max();  // when the timer goes off
  Lane lane_;
  Fibers& fibers_;
  std::vector<Fiber*> ready_;
};

// What else a thread's lane is for; called on its thread.
class Housekeeping {
 public:
  virtual void begin(Lane& lane) = 0;  // before it is driven
  // In every turn; when it wants one, though nothing happens.
  virtual Micros turn(Lane& lane, Micros now) = 0;
  virtual void end(Lane& lane, Micros now) = 0;

 protected:
  ~Housekeeping() = default;
};

// A thread of its own, for those without a loop.
class ThreadWay {
 public:
  using Done = std::function<void()>;
  ThreadWay(const redis::Target& target, LaneOptions options, Housekeeping& keeping);
  ~ThreadWay();
  ThreadWay(const ThreadWay&) = delete;
  ThreadWay& operator=(const ThreadWay&) = delete;

  // Makes a turn, soon.
  void wake();
  // Ends its thread, and with it all questions. Nothing may be asked from then on.
  void end();
  // Nobody would be asked.
  bool is_away() const { return lane_.is_away(); }
  // Blocks. Not from its own thread.
  void run(std::span<Question> questions);
  // Returns at once; `done` is called on its thread when all are answered.
  void start(std::span<Question> questions, Done done);

 private:
  struct Group;
  void work();
  void take_posted(Micros now);

  Housekeeping& keeping_;
  Lane lane_;
  Descriptor wake_;
  std::mutex mutex_;  // guards posted_ and is_ending_
  std::vector<std::unique_ptr<Group>> posted_;
  bool is_ending_ = false;
  std::vector<std::unique_ptr<Group>> under_way_;
  std::thread thread_;
};

}  // namespace weir
