// The parsed tree of a config text, YAML or JSON. yaml.cc builds it; a Reader (reader.h) interprets it.
//
// A config may come from an untrusted source, so parsing is bounded: bytes, brackets, depth, aliases and nodes.
// Duplicate keys are errors. Aliases are copied, so a node is a plain value. Pure; any thread may call it. Tested by
// yaml_test.cc and fuzz/yaml_config.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weir/policy.h"

namespace weir {

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

// Where the text comes from. A text that Weir printed itself has no bound on bytes, values and brackets: a policy
// that was read within the bounds may print longer than it was written, and runtime changes make it longer still.
enum class TextFrom : std::uint8_t { outside, ourselves };

// read_yaml()
//
// Parses a text that is one document, and appends its errors to `problems`. A text with errors may give a partial
// tree.
Node read_yaml(std::string_view text, std::vector<TextProblem>& problems, TextFrom from = TextFrom::outside);

}  // namespace weir
