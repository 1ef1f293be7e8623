// The replies that a busy client reads most, without an allocation: integers, alone or in arrays.
//
//     :3                     3
//     *2 :1 :2               1 2
//     *2 *2 :1 :2 *1 :3      1 2 3, one behind the other
//
// Whatever else a reply is, or one of more than 4,096 integers, is for the ReplyParser. Pure; any thread. Tested by
// integers_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace weir::resp {

inline constexpr std::size_t kIntegersMax = 4096;

struct IntegersReply {
  enum class Status : std::uint8_t { done, need_more, other };
  Status status = Status::need_more;
  std::size_t consumed = 0;  // done only
};

// They replace what was in the vector. `input` begins with the reply; it is read from the start each time.
IntegersReply read_integers(std::string_view input, std::vector<std::int64_t>& integers);

}  // namespace weir::resp
