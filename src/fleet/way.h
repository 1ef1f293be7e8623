// How a caller waits for Redis's answer. A fiber of a loop waits on that loop's own lane. Any other caller waits on a
// thread that drives one lane for all of them.
//
//   Question question{.what = ..., .charges = charges, .decisions = room};
//   ways.run({&question, 1});                       // returns when it is answered, or has failed
//
// A loop has a LoopWay: it watches descriptor(), calls turn() when that is readable, and flush() once per iteration.
// Tested by tests/fleet_nodes_test.cc and tests/server/fleet.sh.
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

#include "base/descriptor.h"
#include "base/fiber.h"
#include "fleet/lane.h"

namespace weir {

// A question, and buffers for its answer. All of it must stay valid until it is answered.
struct Question {
  ScriptRequest::What what = ScriptRequest::What::charge;
  std::span<const Charge> charges{};  // in a cluster, of one subject; each key once
  std::string_view id{};
  Micros lasts{0};
  std::int64_t charged_us = 0;
  std::span<Decision> decisions{};
  std::span<std::int64_t> reserved{};
  bool is_tied = false;  // in the same call as the next question, right before it

  Ask::State state = Ask::State::failed;
  ScriptRequest::Ruling ruling = ScriptRequest::Ruling::denied;
  bool is_in_doubt = false;        // it failed, but the server may have executed it
  std::shared_ptr<Doubt> doubt{};  // of that call, if its outcome may still become known; see Doubt::decide()
  SharedTicket shared{};           // of a write-back
  std::int64_t decided_us = 0;
  std::string error{};
};

// Another source of answers, with its own clock: a test's scripted Redis. The store then has no thread, and the test
// does the keeper's work.
class Transport {
 public:
  virtual ~Transport() = default;
  virtual void run(std::span<Question> questions) = 0;
  virtual bool is_away() const = 0;
  virtual Micros now() const = 0;
};

// The way of one loop, on that loop's thread.
class LoopWay {
 public:
  // `fibers` belong to that thread. `fibers` and the thread outlive this object.
  LoopWay(const redis::Target& target, LaneOptions options, Fibers& fibers);
  ~LoopWay();
  LoopWay(const LoopWay&) = delete;
  LoopWay& operator=(const LoopWay&) = delete;

  // Readable when there is work, including timers that have expired. The descriptor never changes.
  int descriptor() const { return epoll_.get(); }
  void flush();
  // Reads replies, and resumes the fibers whose answers have arrived.
  void turn();
  // All waiting fibers resume with failures. From now on every question fails immediately.
  void close();
  Lane& lane() { return lane_; }

  // Whether every question would fail immediately.
  bool is_away() const { return lane_.is_away(); }

  // The LoopWay of this thread, if the caller is on one of its fibers.
  static LoopWay* here();
  void run(std::span<Question> questions);

 private:
  class Waiting;
  void resume_ready();
  void set_timer();

  Descriptor epoll_, timer_;
  Micros set_for_ = Micros::max();  // when the timer expires
  Lane lane_;
  Fibers& fibers_;
  std::vector<Fiber*> ready_;
};

// The other work on a thread's lane; called on its thread.
class Housekeeping {
 public:
  virtual void begin(Lane& lane) = 0;  // before the thread starts
  // Called in every iteration. Returns when it must be called again, even if nothing happens.
  virtual Micros turn(Lane& lane, Micros now) = 0;
  virtual void end(Lane& lane, Micros now) = 0;

 protected:
  ~Housekeeping() = default;
};

// A thread with a lane, for callers without a loop.
class ThreadWay {
 public:
  using Done = std::function<void()>;
  ThreadWay(const redis::Target& target, LaneOptions options, Housekeeping& keeping);
  ~ThreadWay();
  ThreadWay(const ThreadWay&) = delete;
  ThreadWay& operator=(const ThreadWay&) = delete;

  // Wakes the thread for one iteration.
  void wake();
  // Ends the thread, and fails all questions. Ask nothing afterwards.
  void end();
  // Whether every question would fail immediately.
  bool is_away() const { return lane_.is_away(); }
  // Blocks. Not from the thread itself.
  void run(std::span<Question> questions);
  // Returns immediately. `done` is called on the thread when all are answered.
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
