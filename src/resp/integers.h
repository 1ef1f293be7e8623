// A fast path for the replies that a busy client reads most: integers, alone or in arrays. It does not allocate once
// `integers` is large enough.
//
//     :3                     3
//     *2 :1 :2               1 2
//     *2 *2 :1 :2 *1 :3      1 2 3, flattened
//
// All other replies, and those of more than 4,096 integers, need the ReplyParser. Pure; any thread. Tested by
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

// Replaces the contents of `integers`. `input` begins with the reply and is read from the start each time.
IntegersReply read_integers(std::string_view input, std::vector<std::int64_t>& integers);

}  // namespace weir::resp
