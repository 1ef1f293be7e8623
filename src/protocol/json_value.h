// JSON as a tree, for code that reads responses of our own server. Requests are parsed without a tree.
//
//   auto answer = weir::parse_json(body);
//   if (answer) use(answer->at("config").at("file").text);
//
// A missing member reads as null, whose text is empty and whose number is 0. Depth is bounded as in json_reader.h.
// Plain values; any thread may use them. Tested by json_value_test.cc.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/result.h"

namespace weir {

struct JsonValue {
  enum class Kind : std::uint8_t { null, boolean, number, text, array, object };

  Kind kind = Kind::null;
  bool is_true = false;
  std::string text{};  // of a text; of a number, its digits as sent
  std::vector<JsonValue> items{};
  std::vector<std::pair<std::string, JsonValue>> members{};

  // Returns the first member of that name.
  const JsonValue& at(std::string_view name) const;
  double number() const;
  std::int64_t whole() const;
};

Result<JsonValue> parse_json(std::string_view text);

}  // namespace weir
