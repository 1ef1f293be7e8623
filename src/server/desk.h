// What a request is worked on with while it is under way: a turn of its own, and the room that its protocol needs.
//
// Without fibers one request of a loop is worked on at a time, and all share one room (HttpService, RespService). On
// fibers several are under way at once, so each has a desk. A session sits at the desk of its fiber while that runs,
// and at the door's own (home()) when nothing is under way. Desks are kept to be used again. Belongs to one loop and
// its thread. Tested by fiber_session_test.cc.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/errand.h"
#include "server/turn.h"

namespace weir {

enum class GiveUp : std::uint8_t;  // session.h

class Desk {
 public:
  explicit Desk(Limiter& limiter, Gate* counting = nullptr) : turn(limiter, counting) {}
  Desk(const Desk&) = delete;
  Desk& operator=(const Desk&) = delete;
  virtual ~Desk() = default;

  // Before it is used again: what was changed since at the loop's own room holds here, too.
  virtual void renew() = 0;
  // What is told to a client whose session cannot be asked, since it is under way.
  virtual void write_last_words(GiveUp why, std::string& output) = 0;

  Turn turn;
};

// What becomes of a request for which there is no fiber.
enum class WithoutFiber : std::uint8_t {
  shed,  // it is answered without a decision, as if the loop had no time
  wait,  // until another one has ended
};

class Desks {
 public:
  using Make = std::function<std::unique_ptr<Desk>()>;

  // The errands outlive it.
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
