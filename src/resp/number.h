// The decimal integers of RESP: an optional minus, no plus, no leading zeros, no spaces, 64 bits.
//
// As strict as Redis itself, so that a length has only one spelling. Pure; any thread. Tested by request_test.cc.
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>

namespace weir::resp {

inline std::optional<std::int64_t> parse_integer(std::string_view text) {
  const bool negative = !text.empty() && text.front() == '-';
  const std::string_view digits = negative ? text.substr(1) : text;
  if (digits.empty() || digits.front() < '0' || digits.front() > '9') return std::nullopt;
  if (digits.front() == '0' && (digits.size() > 1 || negative)) return std::nullopt;
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace weir::resp
