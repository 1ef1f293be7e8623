// Parses the words and numbers of YAML 1.1 without regular expressions. See envoy_scalar.h.
#include "envoy/envoy_scalar.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string>
#include <string_view>

namespace weir {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Returns the number of leading digits.
std::size_t digits(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::find_if_not(text, is_digit) - text.begin());
}

bool is_signed(std::string_view text) { return text.starts_with('+') || text.starts_with('-'); }

std::string without_underscores(std::string_view text) {
  std::string out(text);
  std::erase(out, '_');
  return out;
}

// Removes the prefix that names the base of a number, and returns the base.
int take_base(std::string_view& text) {
  if (text.size() < 2 || text[0] != '0') return 10;
  const char mark = static_cast<char>(text[1] | 0x20);
  const int base = mark == 'x' ? 16 : mark == 'b' ? 2 : mark == 'o' ? 8 : 0;
  text.remove_prefix(base == 0 ? 1 : 2);
  return base == 0 ? 8 : base;
}

// 12, 12.5, .5, 12e3, 1.5e-3.
bool is_decimal(std::string_view text) {
  if (is_signed(text)) text.remove_prefix(1);
  const std::size_t whole = digits(text);
  text.remove_prefix(whole);
  if (text.starts_with('.')) {
    text.remove_prefix(1);
    const std::size_t part = digits(text);
    if (whole + part == 0) return false;
    text.remove_prefix(part);
  } else if (whole == 0) {
    return false;
  }
  if (text.empty()) return true;
  if (text[0] != 'e' && text[0] != 'E') return false;
  text.remove_prefix(1);
  if (is_signed(text)) text.remove_prefix(1);
  return !text.empty() && digits(text) == text.size();
}

bool is_plain_text(const Node& scalar) { return scalar.is_scalar() && scalar.is_plain && !scalar.is_null; }

template <std::size_t N>
bool is_one_of(std::string_view text, const std::array<std::string_view, N>& words) {
  return std::ranges::find(words, text) != words.end();
}

}  // namespace

std::optional<std::int64_t> envoy_whole(const Node& scalar) {
  if (!is_plain_text(scalar)) return {};
  const std::string plain = without_underscores(scalar.text);
  std::string_view text = plain;
  const bool is_negative = text.starts_with('-');
  if (is_signed(text)) text.remove_prefix(1);
  if (text.empty() || !is_digit(text[0])) return {};
  const int base = take_base(text);
  std::string number = is_negative ? "-" : "";
  number += text;
  std::int64_t value = 0;
  const char* end = number.data() + number.size();
  const auto [stop, error] = std::from_chars(number.data(), end, value, base);
  if (error != std::errc{} || stop != end || text.starts_with('-')) return {};
  return value;
}

std::optional<bool> envoy_boolean(const Node& scalar) {
  static constexpr std::array<std::string_view, 11> kTrue = {"y",    "Y",    "yes", "Yes", "YES", "true",
                                                             "True", "TRUE", "on",  "On",  "ON"};
  static constexpr std::array<std::string_view, 11> kFalse = {"n",     "N",     "no",  "No",  "NO", "false",
                                                              "False", "FALSE", "off", "Off", "OFF"};
  if (!is_plain_text(scalar)) return {};
  if (is_one_of(scalar.text, kTrue)) return true;
  if (is_one_of(scalar.text, kFalse)) return false;
  return {};
}

bool is_envoy_fraction(const Node& scalar) {
  static constexpr std::array<std::string_view, 6> kSpecial = {".inf", ".Inf", ".INF", ".nan", ".NaN", ".NAN"};
  if (!is_plain_text(scalar) || envoy_whole(scalar)) return false;
  std::string_view unsigned_text = scalar.text;
  if (is_signed(unsigned_text)) unsigned_text.remove_prefix(1);
  return is_one_of(unsigned_text, kSpecial) || is_decimal(without_underscores(scalar.text));
}

}  // namespace weir
