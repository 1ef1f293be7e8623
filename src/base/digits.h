// Writes integers as decimal digits, and short texts around them, without temporary strings.
//
// Pure; any thread may call it. Tested by headers_test.cc and problem_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace weir {

// Writes characters one after the other into a buffer that the caller knows to be large enough.
class Pen {
 public:
  explicit Pen(char* at) : at_(at) {}

  void put(std::string_view text) {
    std::memcpy(at_, text.data(), text.size());
    at_ += text.size();
  }
  // Writes at most 20 characters.
  void put_digits(std::int64_t value) {
    std::uint64_t rest = static_cast<std::uint64_t>(value);
    if (value < 0) {
      *at_++ = '-';
      rest = 0 - rest;
    }
    char* end = at_ + digits_of(rest);
    at_ = end;
    do {
      *--end = static_cast<char>('0' + rest % 10);
      rest /= 10;
    } while (rest > 0);
  }
  char* at() const { return at_; }

 private:
  static std::size_t digits_of(std::uint64_t value) {
    std::size_t digits = 1;
    for (; value >= 10'000; value /= 10'000) digits += 4;
    return digits + (value >= 1000 ? 3 : value >= 100 ? 2 : value >= 10 ? 1 : 0);
  }

  char* at_;
};

inline void append_digits(std::string& out, std::int64_t value) {
  char digits[20];
  Pen pen(digits);
  pen.put_digits(value);
  out.append(digits, static_cast<std::size_t>(pen.at() - digits));
}

}  // namespace weir
