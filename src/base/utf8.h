// Validates UTF-8 (no overlong forms, no surrogates, nothing beyond U+10FFFF), and finds characters that are unsafe
// to display.
//
// Pure; any thread may call it. Tested by problem_test.cc, json_reader_test.cc, log_line_test.cc and
// sqlite_source_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "weir/result.h"

namespace weir::base {

// Returns the length of the first character of `text`; 0 if it is invalid.
inline std::size_t utf8_length(std::string_view text) {
  WEIR_ASSERT(!text.empty());
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned first = byte(0);
  const std::size_t length = first < 0x80 ? 1 : first < 0xC2 ? 0 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  if (length == 0 || first > 0xF4 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  if (first == 0xE0 && byte(1) < 0xA0) return 0;
  if (first == 0xED && byte(1) > 0x9F) return 0;
  if (first == 0xF0 && byte(1) < 0x90) return 0;
  if (first == 0xF4 && byte(1) > 0x8F) return 0;
  return length;
}

inline bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

// Returns the code of a character that utf8_length() has accepted.
inline std::uint32_t utf8_code(std::string_view character) {
  const auto first = static_cast<unsigned char>(character[0]);
  std::uint32_t code = character.size() == 1 ? first : first & (0xFFU >> (character.size() + 1));
  for (const char c : character.substr(1)) code = code << 6 | (static_cast<unsigned char>(c) & 0x3FU);
  return code;
}

// Invisible characters that affect the text around them: they can start a new line, reorder the letters, or make a
// text look like another. They are escaped when text from outside is displayed.
inline bool is_unseen(std::uint32_t code) {
  const auto is_in = [code](std::uint32_t first, std::uint32_t last) { return code >= first && code <= last; };
  return code < 0x20 || is_in(0x7F, 0x9F) ||  // control characters, including the 8-bit C1 ones
         is_in(0x2028, 0x2029) ||             // line and paragraph separator
         is_in(0x202A, 0x202E) || is_in(0x2066, 0x206F) || is_in(0x200E, 0x200F) || code == 0x061C ||  // direction
         is_in(0x200B, 0x200D) || is_in(0x2060, 0x2065) || code == 0xFEFF || code == 0x180E ||         // no width
         is_in(0xFFF9, 0xFFFB) || is_in(0xE0000, 0xE007F);  // annotations and tags
}

inline void append_utf8(std::string& out, std::uint32_t code) {
  WEIR_ASSERT(code <= 0x10FFFF);
  WEIR_ASSERT(code < 0xD800 || code > 0xDFFF);  // no surrogate
  const auto byte = [&](std::uint32_t value) { out.push_back(static_cast<char>(value)); };
  if (code < 0x80) {
    byte(code);
  } else if (code < 0x800) {
    byte(0xC0 | (code >> 6));
    byte(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    byte(0xE0 | (code >> 12));
    byte(0x80 | ((code >> 6) & 0x3F));
    byte(0x80 | (code & 0x3F));
  } else {
    byte(0xF0 | (code >> 18));
    byte(0x80 | ((code >> 12) & 0x3F));
    byte(0x80 | ((code >> 6) & 0x3F));
    byte(0x80 | (code & 0x3F));
  }
}

}  // namespace weir::base
