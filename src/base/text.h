// Small helpers for texts: character classes that do not depend on the locale, counts with their noun, integers as
// decimal digits without temporary strings, and the memory of buffers.
//
// Pure; any thread may call it. Tested by text_test.cc, headers_test.cc, problem_test.cc, http1_test.cc and
// cli/table_text_test.cc.
#pragma once

#include <charconv>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace weir::base {

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
// A blank is a space or a tab.
constexpr bool is_blank(char c) { return c == ' ' || c == '\t'; }

constexpr char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }
// Of ASCII, either case.
constexpr bool is_letter_or_digit(char c) { return is_digit(c) || (lower(c) >= 'a' && lower(c) <= 'z'); }

// The value of a hexadecimal digit of either case; -1 if it is none.
constexpr int hex_digit(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

// The byte that the first two characters stand for as hexadecimal digits.
constexpr std::optional<char> hex_byte(std::string_view text) {
  const int high = text.size() < 2 ? -1 : hex_digit(text[0]), low = high < 0 ? -1 : hex_digit(text[1]);
  if (low < 0) return std::nullopt;
  return static_cast<char>(high * 16 + low);
}

inline constexpr std::string_view kHexDigits = "0123456789abcdef";

inline void append_hex(std::string& out, char byte) {
  const auto bits = static_cast<unsigned char>(byte);
  out += {kHexDigits[bits >> 4], kHexDigits[bits & 15]};
}

// The text with a % and two capital hexadecimal digits for each byte that is not plain.
template <class IsPlain>
std::string percent_encoded(std::string_view text, IsPlain is_plain) {
  constexpr std::string_view kCapitals = "0123456789ABCDEF";
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    const auto bits = static_cast<unsigned char>(c);
    if (is_plain(c)) {
      out += c;
    } else {
      out += {'%', kCapitals[bits >> 4], kCapitals[bits & 15]};
    }
  }
  return out;
}

// Returns nothing if a % is not followed by two hexadecimal digits.
inline std::optional<std::string> percent_decoded(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = text[i] == '%' ? hex_byte(text.substr(i + 1)) : std::optional(text[i]);
    if (!byte) return std::nullopt;
    if (text[i] == '%') i += 2;
    out += *byte;
  }
  return out;
}

// The number that the whole text is, as std::from_chars() reads it.
template <class Number, class... Base>
std::optional<Number> to_number(std::string_view text, Base... base) {
  Number value{};
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value, base...);
  if (error != std::errc{} || stop != end) return std::nullopt;
  return value;
}

// The text without blanks at its ends.
constexpr std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

// Empties the text and frees its memory. An assignment of an empty text would keep the memory.
inline void free_memory(std::string& text) { std::string().swap(text); }

// Empties the text. Frees its memory, too, if that has capacity for more than `kept` bytes.
inline void empty_out(std::string& text, std::size_t kept) {
  text.clear();
  if (text.capacity() > kept) free_memory(text);
}

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

// A number with its noun, for people: `1 rule`, `2 rules`.
inline std::string counted(std::string_view number, std::string_view noun) {
  return std::string(number) + ' ' + std::string(noun) + (number == "1" ? "" : "s");
}
inline std::string counted(std::integral auto number, std::string_view noun) {
  return counted(std::string_view(std::to_string(number)), noun);
}

// Appends a text with its length in front, so that different lists of texts never give the same result.
inline void append_sized(std::string& out, std::string_view text) {
  out.append(std::to_string(text.size())).append(":").append(text);
}

}  // namespace weir::base
