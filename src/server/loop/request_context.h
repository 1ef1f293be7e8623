// The state of a request in flight: a turn of its own, and the buffers of its protocol.
//
// Without fibers a loop works on one request at a time, and all requests share one context. With fibers several are
// in flight at once, and each has its own. A session uses the context of its fiber while the fiber runs, and the
// listener's own (home()) at other times. Contexts are pooled. Belongs to one loop and its thread. Tested by
// fiber_session_test.cc.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/loop/fiber_task.h"
#include "server/loop/turn.h"

namespace weir::server::loop {

enum class GiveUp : std::uint8_t;  // session.h

class RequestContext {
 public:
  explicit RequestContext(Limiter& limiter, Gate* counting = nullptr) : turn(limiter, counting) {}
  RequestContext(const RequestContext&) = delete;
  RequestContext& operator=(const RequestContext&) = delete;
  virtual ~RequestContext() = default;

  // Writes the last answer to a client whose session cannot be used, because its request is in flight.
  virtual void write_last_words(GiveUp why, std::string& output) = 0;

  Turn turn;
};

// What happens to a request when no fiber is free.
enum class WithoutFiber : std::uint8_t {
  shed,  // answered without a decision, as under overload
  wait,  // until another request has ended
};

class ContextPool {
 public:
  using Make = std::function<std::unique_ptr<RequestContext>()>;

  // `with` must outlive it.
  ContextPool(FiberTasks& with, Make make, WithoutFiber then)
      : tasks(with), without_fiber(then), make_(std::move(make)), home_(make_()) {
    free_.reserve(kKept);
  }
  ContextPool(const ContextPool&) = delete;
  ContextPool& operator=(const ContextPool&) = delete;

  RequestContext& home() { return *home_; }

  std::unique_ptr<RequestContext> take() {
    if (free_.empty()) return make_();
    std::unique_ptr<RequestContext> context = std::move(free_.back());
    free_.pop_back();
    return context;
  }
  void give(std::unique_ptr<RequestContext> context) noexcept {
    WEIR_ASSERT(context != nullptr);
    if (free_.size() < kKept) free_.push_back(std::move(context));
  }

  FiberTasks& tasks;
  const WithoutFiber without_fiber;

 private:
  static constexpr std::size_t kKept = 256;

  Make make_;
  std::unique_ptr<RequestContext> home_;
  std::vector<std::unique_ptr<RequestContext>> free_;
};

}  // namespace weir::server::loop
