// Where the bytes of a turn are read to: one piece of memory for all connections of a loop.
//
// What was read stays until the turn is over, so that checks may point into it; then the room is used again. An idle
// connection holds no memory. One thread. Tested through tests/server/*.sh.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

namespace weir {

class Room {
 public:
  static constexpr std::size_t kRead = std::size_t{64} << 10;  // what one reading may bring
  static constexpr std::size_t kSize = std::size_t{2} << 20;

  // Not before is_low() was asked.
  std::span<char> next() { return {bytes_.get() + used_, kRead}; }
  void keep(std::size_t size) { used_ += size; }
  bool is_low() const { return kSize - used_ < kRead; }
  void clear() { used_ = 0; }

 private:
  std::unique_ptr<char[]> bytes_ = std::make_unique_for_overwrite<char[]>(kSize);  // pages come as they are used
  std::size_t used_ = 0;
};

}  // namespace weir
