// A config text as a tree: what stands where. YAML or JSON, read by yaml.cc; what it means is policy_reader.cc's.
//
// Bounds are part of the reading, since a config may come from anywhere: bytes, brackets, depth, aliases, nodes, and no
// key twice. Aliases are copied, so a node is a value. Pure; any thread. Tested by yaml_test.cc and
// fuzz/yaml_config.cc.
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
  bool is_null = false;  // nothing at all, `~` or `null`
  Position at{};
  std::string text{};         // of a scalar
  std::vector<Node> items{};  // of a list; of a map, keys and values in turn

  bool is_scalar() const { return kind == Kind::scalar; }
  bool is_list() const { return kind == Kind::list; }
  bool is_map() const { return kind == Kind::map; }
};

// Something that is wrong with the text.
struct TextProblem {
  Position at;
  std::string message;
};

// Whose the text is. What this program has printed itself has no bound on its bytes, values and brackets: a policy that
// was read within the bounds may print longer than it was written, and longer still when its rules are turned.
enum class TextFrom : std::uint8_t { outside, ourselves };

// read_yaml()
//
// The one document of a text. Problems are added to those given; a tree that was read only in part is still a tree.
Node read_yaml(std::string_view text, std::vector<TextProblem>& problems, TextFrom from = TextFrom::outside);

}  // namespace weir
