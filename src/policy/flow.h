// Prints config values as YAML in flow style: scalars, lists and maps, as the examples in the docs are written.
//
// Texts are quoted only where YAML needs it, and what is printed parses back to the same text. Pure; any thread may
// call it. Tested by yaml_test.cc and tests/policy_text_test.cc.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace weir {

// Whether a text can stand unquoted, wherever it appears.
inline bool is_plain_text(std::string_view text) {
  if (text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL") return false;
  const auto is_safe = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
           c == '/';
  };
  if (!is_safe(text.front())) return false;
  bool was_blank = false;
  for (const char c : text) {
    const bool is_blank = c == ' ';
    if (is_blank && was_blank) return false;
    if (!is_safe(c) && !is_blank && c != '-' && c != '%' && c != '+' && c != '*') return false;
    was_blank = is_blank;
  }
  return !was_blank;
}

// flow_text()
//
// Prints a scalar. Everything except plain words is quoted as in JSON. YAML would also allow header:x-org unquoted,
// but lists are easier to read when they are quoted consistently.
inline std::string flow_text(std::string_view text) {
  constexpr std::string_view kHex = "0123456789abcdef";
  if (is_plain_text(text)) return std::string(text);
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += {'\\', c};
    } else if (byte < 0x20 || byte == 0x7f) {
      out += {'\\', 'x', kHex[byte >> 4], kHex[byte & 15]};
    } else {
      out += c;
    }
  }
  return out + '"';
}

// Prints a list. A single element is printed without brackets.
inline std::string flow_list(const std::vector<std::string>& texts) {
  if (texts.size() == 1) return flow_text(texts[0]);
  std::string out = "[";
  for (const std::string& text : texts) out.append(out.size() > 1 ? ", " : "").append(flow_text(text));
  return out + ']';
}

// Prints `{a: b, c: d}` from members that already read `key: value`.
inline std::string flow_map(const std::vector<std::string>& members) {
  std::string out = "{";
  for (const std::string& member : members) out.append(out.size() > 1 ? ", " : "").append(member);
  return out + '}';
}

}  // namespace weir
