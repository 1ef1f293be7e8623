// The scanning of texts, numbers and escapes. See json_reader.h.
#include "protocol/json_reader.h"

#include <array>
#include <charconv>
#include <utility>

#include "base/nearest.h"
#include "base/text.h"
#include "base/utf8.h"

namespace weir::protocol {
namespace {

// Characters that need no special handling in a text: ASCII except quotes, backslashes and control characters.
constexpr std::array<bool, 256> kPlain = [] {
  std::array<bool, 256> table{};
  for (unsigned c = 0x20; c < 0x80; ++c) table[c] = c != '"' && c != '\\';
  return table;
}();

}  // namespace

bool JsonReader::broken(std::string_view why) {
  if (why_.empty()) why_ = why;
  return false;
}

char JsonReader::next() {
  while (at_ < input_.size()) {
    const char c = input_[at_];
    if (c != ' ' && c != '\t' && c != '\n' && c != '\r') return c;
    ++at_;
  }
  return 0;
}

bool JsonReader::take(char c) {
  if (at_ < input_.size() && input_[at_] == c) {
    ++at_;
    return true;
  }
  if (next() != c || at_ == input_.size()) return false;
  ++at_;
  return true;
}

bool JsonReader::skip_plain() {
  const char* at = input_.data() + at_;
  const char* const end = input_.data() + input_.size();
  while (at < end && kPlain[static_cast<unsigned char>(*at)]) ++at;
  at_ = static_cast<std::size_t>(at - input_.data());
  return at < end;
}

bool JsonReader::read_text(std::string_view& text) {
  if (!take('"')) return broken("expected a string in double quotes");
  std::size_t begin = at_;     // of the part that is not in `out`
  std::string* out = nullptr;  // only if there are escapes
  while (skip_plain()) {
    const char c = input_[at_];
    if (c == '"') {
      text = input_.substr(begin, at_++ - begin);
      if (out != nullptr) text = out->append(text);
      return true;
    }
    if (c == '\\') {
      if (out == nullptr) out = &texts_.emplace_back();
      out->append(input_.substr(begin, at_ - begin));
      if (!read_escape(*out)) return false;
      begin = at_;
      continue;
    }
    if (static_cast<unsigned char>(c) < 0x20) return broken("a string has a control character");
    const std::size_t length = base::utf8_length(input_.substr(at_));
    if (length == 0) return broken("a string is not UTF-8");
    at_ += length;
  }
  return broken("a string does not end");
}

bool JsonReader::read_escape(std::string& out) {
  constexpr std::string_view kNames = "\"\\/bfnrt", kMeant = "\"\\/\b\f\n\r\t";
  if (++at_ == input_.size()) return broken("a string does not end");
  const char c = input_[at_++];
  if (c == 'u') return read_unicode(out);
  const std::size_t place = kNames.find(c);
  if (place == kNames.npos) return broken("a string has an unknown escape");
  out.push_back(kMeant[place]);
  return true;
}

std::optional<std::uint32_t> JsonReader::read_hex() {
  const std::string_view digits = input_.substr(at_, 4);
  std::uint32_t code = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), code, 16);
  if (error != std::errc{} || end != digits.data() + 4) return std::nullopt;
  at_ += 4;
  return code;
}

bool JsonReader::read_unicode(std::string& out) {
  const auto code = read_hex();
  if (!code) return broken("\\u must be followed by four hexadecimal digits");
  if (*code < 0xD800 || *code > 0xDFFF) {
    base::append_utf8(out, *code);
    return true;
  }
  if (*code > 0xDBFF || input_.substr(at_, 2) != "\\u") return broken("a UTF-16 surrogate has no pair");
  at_ += 2;
  const auto low = read_hex();
  if (!low || *low < 0xDC00 || *low > 0xDFFF) return broken("a UTF-16 surrogate has no pair");
  base::append_utf8(out, 0x10000 + ((*code - 0xD800) << 10) + (*low - 0xDC00));
  return true;
}

bool JsonReader::skip_digits() {
  const std::size_t begin = at_;
  while (at_ < input_.size() && base::is_digit(input_[at_])) ++at_;
  return at_ > begin || broken("a number has no digits");
}

bool JsonReader::read_number(std::string_view& text) {
  next();
  const std::size_t begin = at_;
  if (at_ < input_.size() && input_[at_] == '-') ++at_;
  const bool leads_with_zero = at_ < input_.size() && input_[at_] == '0';
  const std::size_t digits = at_;
  if (!skip_digits()) return false;
  if (leads_with_zero && at_ > digits + 1) return broken("a number has a leading zero");
  if (at_ < input_.size() && input_[at_] == '.') {
    ++at_;
    if (!skip_digits()) return false;
  }
  if (at_ < input_.size() && base::lower(input_[at_]) == 'e') {
    ++at_;
    if (at_ < input_.size() && (input_[at_] == '+' || input_[at_] == '-')) ++at_;
    if (!skip_digits()) return false;
  }
  text = input_.substr(begin, at_ - begin);
  return true;
}

bool JsonReader::skip_word(std::string_view word) {
  if (input_.substr(at_, word.size()) != word) return broken("expected a value");
  at_ += word.size();
  return true;
}

bool JsonReader::next_member(std::string_view& name, bool& is_first) {
  const bool was_first = std::exchange(is_first, false);
  if (take('}')) return false;
  if (!was_first && !take(',')) return broken("expected a comma or }");
  if (!read_text(name)) return false;
  return take(':') || broken("expected a colon");
}

bool JsonReader::next_element(bool& is_first) {
  const bool was_first = std::exchange(is_first, false);
  if (take(']')) return false;
  if (was_first || take(',')) return true;
  return broken("expected a comma or ]");
}

// Avoids recursion: `open` stores the open brackets.
bool JsonReader::skip_value() {
  std::array<char, kJsonDepthMax> open;
  std::size_t depth = 0;
  bool is_first = true;
  while (true) {
    std::string_view text;
    if (depth > 0) {
      const bool goes_on = open[depth - 1] == '{' ? next_member(text, is_first) : next_element(is_first);
      if (is_broken()) return false;
      if (!goes_on) {
        if (--depth == 0) return true;
        continue;
      }
    }
    const char c = next();
    if (c == '{' || c == '[') {
      if (depth == kJsonDepthMax) return broken("nesting is too deep");
      open[depth++] = c;
      ++at_;
      is_first = true;
      continue;
    }
    const bool is_sound = c == '"'                        ? read_text(text)
                          : c == '-' || base::is_digit(c) ? read_number(text)
                          : c == 't'                      ? skip_word("true")
                          : c == 'f'                      ? skip_word("false")
                                                          : skip_word("null");
    if (!is_sound) return false;
    if (depth == 0) return true;
  }
}

std::string JsonReader::found() {
  const char c = next();
  std::string_view text;
  switch (c) {
    case '{':
      return "an object";
    case '[':
      return "an array";
    case '"':
      return read_text(text) ? "the string " + base::in_quotes(text) : std::string();
    case 't':
      return skip_word("true") ? "true" : std::string();
    case 'f':
      return skip_word("false") ? "false" : std::string();
    case 'n':
      return skip_word("null") ? "null" : std::string();
    default:
      break;
  }
  return read_number(text) ? "the number " + std::string(text.substr(0, 40)) : std::string();
}

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

}  // namespace weir::protocol
