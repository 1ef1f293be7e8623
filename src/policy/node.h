// The parsed tree of a config text, YAML or JSON, and the same tree printed. yaml.cc builds it; a Reader (reader.h)
// interprets it.
//
// A config may come from an untrusted source, so parsing is bounded: bytes, brackets, depth, aliases and nodes.
// Duplicate keys are errors. Aliases are copied, so a node is a plain value. Values are printed in flow style, as the
// examples in the docs are written. Texts are quoted only where YAML needs it, and what is printed parses back to the
// same text. Pure; any thread may call it. Tested by yaml_test.cc, tests/policy_text_test.cc and fuzz/yaml_config.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"
#include "weir/policy.h"

namespace weir::policy {

inline constexpr std::size_t kDepthMax = 32;
inline constexpr std::size_t kAliasesMax = 64;
inline constexpr std::size_t kNodesMax = 250'000;

struct Node {
  enum class Kind : std::uint8_t { scalar, list, map };
  Kind kind = Kind::scalar;
  bool is_plain = true;  // a scalar without quotes
  bool is_null = false;  // empty, `~` or `null`
  Position at{};
  std::string text{};         // of a scalar
  std::vector<Node> items{};  // of a list; for a map, keys and values alternate

  bool is_scalar() const { return kind == Kind::scalar; }
  bool is_list() const { return kind == Kind::list; }
  bool is_map() const { return kind == Kind::map; }
};

// An error in the text.
struct TextProblem {
  Position at;
  std::string message;
};

// read_yaml()
//
// Parses a text that is one document, and appends its errors to `problems`. A text with errors may give a partial
// tree.
Node read_yaml(std::string_view text, std::vector<TextProblem>& problems);

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
  if (is_plain_text(text)) return std::string(text);
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += {'\\', c};
    } else if (byte < 0x20 || byte == 0x7f) {
      base::append_hex(out.append("\\x"), c);
    } else {
      out += c;
    }
  }
  return out + '"';
}

inline Node text_node(std::string_view text) { return {.text = std::string(text)}; }

// A list of texts. A single one is not put in a list.
inline Node list_node(const std::vector<std::string>& texts) {
  if (texts.size() == 1) return text_node(texts[0]);
  Node out{.kind = Node::Kind::list};
  for (const std::string& text : texts) out.items.push_back(text_node(text));
  return out;
}

// Prints trees, each on one line, and gives every node its position in the text, as if it had been read from there.
struct FlowText {
  std::string text{};
  std::int32_t line = 1;
  std::size_t line_begin = 0;

  void end_line() {
    text += '\n';
    ++line;
    line_begin = text.size();
  }
  void add(Node& node) {
    node.at = {line, static_cast<std::int32_t>(text.size() - line_begin) + 1};
    node.is_plain = is_plain_text(node.text);
    if (node.is_scalar()) {
      text += flow_text(node.text);
      return;
    }
    text += node.is_map() ? '{' : '[';
    for (std::size_t i = 0; i < node.items.size(); ++i) {
      if (i > 0) text += node.is_map() && i % 2 == 1 ? ": " : ", ";
      add(node.items[i]);
    }
    text += node.is_map() ? '}' : ']';
  }
};

inline std::string flow(Node node) {
  FlowText out;
  out.add(node);
  return std::move(out.text);
}

}  // namespace weir::policy
