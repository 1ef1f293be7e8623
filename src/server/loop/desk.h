// The state of a request in flight: a turn of its own, and the buffers of its protocol.
//
// Without fibers a loop works on one request at a time, and all requests share one state (HttpService, RespService).
// With fibers several are in flight at once, so each has a Desk. A session uses the desk of its fiber while the fiber
// runs, and the listener's own (home()) at other times. Desks are pooled. Belongs to one loop and its thread. Tested
// by fiber_session_test.cc.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/loop/errand.h"
#include "server/loop/turn.h"

namespace weir {

enum class GiveUp : std::uint8_t;  // session.h

class Desk {
 public:
  explicit Desk(Limiter& limiter, Gate* counting = nullptr) : turn(limiter, counting) {}
  Desk(const Desk&) = delete;
  Desk& operator=(const Desk&) = delete;
  virtual ~Desk() = default;

  // Call it before reuse. It copies the settings that have changed at the loop's own desk since then.
  virtual void renew() = 0;
  // Writes the last answer to a client whose session cannot be used, because its request is in flight.
  virtual void write_last_words(GiveUp why, std::string& output) = 0;

  Turn turn;
};

// What happens to a request when no fiber is free.
enum class WithoutFiber : std::uint8_t {
  shed,  // answered without a decision, as under overload
  wait,  // until another request has ended
};

class Desks {
 public:
  using Make = std::function<std::unique_ptr<Desk>()>;

  // `with` must outlive it.
  Desks(Errands& with, Make make, WithoutFiber then)
      : errands(with), without_fiber(then), make_(std::move(make)), home_(make_()) {
    free_.reserve(kKept);
  }
  Desks(const Desks&) = delete;
  Desks& operator=(const Desks&) = delete;

  Desk& home() { return *home_; }

  std::unique_ptr<Desk> take() {
    if (free_.empty()) return make_();
    std::unique_ptr<Desk> desk = std::move(free_.back());
    free_.pop_back();
    desk->renew();
    return desk;
  }
  void give(std::unique_ptr<Desk> desk) noexcept {
    if (free_.size() < kKept) free_.push_back(std::move(desk));
  }
  std::size_t kept() const { return free_.size(); }

  Errands& errands;
  const WithoutFiber without_fiber;

 private:
  static constexpr std::size_t kKept = 256;

  Make make_;
  std::unique_ptr<Desk> home_;
  std::vector<std::unique_ptr<Desk>> free_;
};

}  // namespace weir
