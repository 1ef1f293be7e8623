// How a caller waits for Redis's answer. A fiber of a loop waits on that loop's own pipeline. Any other caller waits on
// a thread that drives one pipeline for all of them.
//
//   ScriptRequest request{.what = ..., .charges = charges, .decisions = decisions};
//   waiter.run({&request, 1});                      // returns when it is answered, or has failed
//
// A loop has a FiberWaiter: it watches descriptor(), calls turn() when that is readable, and flush() once per
// iteration. Tested by tests/fleet_nodes_test.cc and tests/server/fleet.sh.
#pragma once

#include <span>
#include <thread>
#include <vector>

#include "base/descriptor.h"
#include "base/fiber.h"
#include "base/mutex.h"
#include "fleet/script_pipeline.h"

namespace weir::fleet {

class BackgroundWork;

// Another source of results, with its own clock: a test's scripted Redis. The store then has no thread, and the test
// does the background work.
class Transport {
 public:
  virtual ~Transport() = default;
  virtual void run(std::span<ScriptRequest> requests) = 0;
  virtual bool is_down() const = 0;
  virtual Micros now() const = 0;
};

// How the fibers of one loop wait, on that loop's thread.
class FiberWaiter {
 public:
  // `fibers` belong to that thread. `fibers` and the thread outlive this object.
  FiberWaiter(const base::redis::Target& target, PipelineOptions options, base::Fibers& fibers);
  ~FiberWaiter();

  // Readable when there is work, including timers that have expired. The descriptor never changes.
  int descriptor() const { return epoll_.get(); }
  void flush();
  // Reads replies, and resumes the fibers whose answers have arrived.
  void turn();
  // All waiting fibers resume with failures. From now on every request fails immediately.
  void close();
  ScriptPipeline& pipeline() { return pipeline_; }

  // Whether every request would fail immediately.
  bool is_down() const { return pipeline_.is_down(); }

  // The FiberWaiter of this thread, if the caller is on one of its fibers.
  static FiberWaiter* here();
  void run(std::span<ScriptRequest> requests);

 private:
  class Waiting;
  void resume_ready();
  void set_timer();

  base::Descriptor epoll_, timer_;
  Micros set_for_ = Micros::max();  // when the timer expires
  ScriptPipeline pipeline_;
  base::Fibers& fibers_;
  std::vector<base::Fiber*> ready_;
};

// A thread with a pipeline, for callers without a loop.
class ThreadWaiter {
 public:
  // `background` also uses the pipeline, on that thread.
  ThreadWaiter(const base::redis::Target& target, PipelineOptions options, BackgroundWork& background);
  ~ThreadWaiter();  // ends the thread, and fails all requests

  // Wakes the thread for one iteration.
  void wake();
  // Whether every request would fail immediately.
  bool is_down() const { return pipeline_.is_down(); }
  // Blocks.
  void run(std::span<ScriptRequest> requests);

 private:
  struct Group;
  void work();
  void take_posted(Micros now);

  BackgroundWork& background_;
  ScriptPipeline pipeline_;
  base::Descriptor wake_;
  base::Mutex mutex_;
  std::vector<Group*> posted_ GUARDED_BY(mutex_);
  bool is_ending_ GUARDED_BY(mutex_) = false;
  std::vector<Group*> in_flight_;
  std::thread thread_;
};

}  // namespace weir::fleet
