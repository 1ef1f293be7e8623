// Character classes that do not depend on the locale. A blank is a space or a tab.
//
// Pure; any thread. Tested through the parsers that use it, above all http1_test.cc.
#pragma once

#include <string_view>

namespace weir {

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
constexpr bool is_blank(char c) { return c == ' ' || c == '\t'; }

// The text without blanks at its ends.
constexpr std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

}  // namespace weir
