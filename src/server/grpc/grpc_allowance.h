// Bounds how many frames that ask for nothing a client may send, so that no client keeps a loop busy with them.
//
// The allowance is a number per second, of which ten seconds' worth accumulate. Each answered call adds a few, since
// it needs window updates and small pieces of data. A client that exceeds it gets ENHANCE_YOUR_CALM, and its
// connection ends. Nothing here reads a clock; one thread. Tested by grpc_allowance_test.cc.
#pragma once

#include <algorithm>
#include <cstdint>

#include "weir/clock.h"

namespace weir {

class GrpcAllowance {
 public:
  static constexpr std::uint64_t kSecondsSaved = 10;
  static constexpr std::uint64_t kFramesOfCall = 8;

  explicit GrpcAllowance(std::uint64_t per_second) : per_second_(per_second), left_(most()) {}

  void earn(std::uint64_t calls) { left_ = std::min(left_ + calls * kFramesOfCall, most()); }

  // False if fewer are left.
  bool spend(std::uint64_t frames, Micros now) {
    if (frames == 0) return true;
    if (left_ < frames) refill(now);
    if (left_ < frames) return false;
    left_ -= frames;
    return true;
  }

 private:
  std::uint64_t most() const { return kSecondsSaved * per_second_; }

  void refill(Micros now) {
    const auto seconds = static_cast<std::uint64_t>(std::max<std::int64_t>((now - filled_).count(), 0) / 1'000'000);
    if (seconds == 0) return;
    filled_ = now;
    left_ = std::min(left_ + std::min(seconds, kSecondsSaved) * per_second_, most());
  }

  std::uint64_t per_second_;
  std::uint64_t left_;
  Micros filled_{0};
};

}  // namespace weir
