// Builds a tree with JsonReader. See json_value.h.
#include "protocol/json_value.h"

#include <charconv>

#include "protocol/json_reader.h"

namespace weir {
namespace {

bool read(JsonReader& reader, JsonValue& value, std::size_t depth);

bool read_items(JsonReader& reader, JsonValue& value, std::size_t depth) {
  value.kind = JsonValue::Kind::array;
  for (bool is_first = true; reader.next_element(is_first);) {
    if (!read(reader, value.items.emplace_back(), depth)) return false;
  }
  return !reader.is_broken();
}

bool read_members(JsonReader& reader, JsonValue& value, std::size_t depth) {
  value.kind = JsonValue::Kind::object;
  std::string_view name;
  for (bool is_first = true; reader.next_member(name, is_first);) {
    auto& member = value.members.emplace_back(std::string(name), JsonValue{});
    if (!read(reader, member.second, depth)) return false;
  }
  return !reader.is_broken();
}

bool read(JsonReader& reader, JsonValue& value, std::size_t depth) {
  if (depth == 0) return false;
  std::string_view text;
  switch (reader.next()) {
    case '{':
      reader.take('{');
      return read_members(reader, value, depth - 1);
    case '[':
      reader.take('[');
      return read_items(reader, value, depth - 1);
    case '"':
      value.kind = JsonValue::Kind::text;
      if (!reader.read_text(text)) return false;
      value.text = text;
      return true;
    case 't':
    case 'f':
      value.kind = JsonValue::Kind::boolean;
      value.is_true = reader.next() == 't';
      return reader.skip_value();
    case 'n':
      return reader.skip_value();
    default:
      break;
  }
  value.kind = JsonValue::Kind::number;
  if (!reader.read_number(text)) return false;
  value.text = text;
  return true;
}

template <class T>
T number_of(const JsonValue& value) {
  T number{};
  if (value.kind == JsonValue::Kind::number) {
    std::from_chars(value.text.data(), value.text.data() + value.text.size(), number);
  }
  return number;
}

}  // namespace

const JsonValue& JsonValue::at(std::string_view name) const {
  static const JsonValue kNull;
  for (const auto& [known, value] : members) {
    if (known == name) return value;
  }
  return kNull;
}

double JsonValue::number() const { return number_of<double>(*this); }
std::int64_t JsonValue::whole() const { return number_of<std::int64_t>(*this); }

Result<JsonValue> parse_json(std::string_view text) {
  JsonTexts texts;
  JsonReader reader(text, texts);
  JsonValue value;
  if (read(reader, value, kJsonDepthMax) && reader.at_end()) return value;
  const std::string_view why = reader.is_broken() ? reader.why() : "text follows the value, or nesting is too deep";
  return fail(ErrorCode::invalid_argument, "invalid JSON: " + std::string(why));
}

}  // namespace weir
