// The read buffer of a turn: one piece of memory for all connections of a loop.
//
// Input stays here until the turn is over, so that checks may point into it. Then the buffer is reused. An idle
// connection takes no memory. One thread. Tested through tests/server/*.sh.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

namespace weir {

class Room {
 public:
  static constexpr std::size_t kRead = std::size_t{64} << 10;  // the most that one read returns
  static constexpr std::size_t kSize = std::size_t{2} << 20;

  // Call it only while is_low() is false.
  std::span<char> next() { return {bytes_.get() + used_, kRead}; }
  void keep(std::size_t size) { used_ += size; }
  bool is_low() const { return kSize - used_ < kRead; }
  void clear() { used_ = 0; }

 private:
  std::unique_ptr<char[]> bytes_ = std::make_unique_for_overwrite<char[]>(kSize);  // the kernel adds pages on use
  std::size_t used_ = 0;
};

}  // namespace weir
