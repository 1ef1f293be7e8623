// The scanning of texts, numbers and escapes. See json_reader.h.
#include "protocol/json_reader.h"

#include <array>
#include <charconv>
#include <utility>

#include "base/characters.h"
#include "base/nearest.h"
#include "base/utf8.h"

namespace weir {
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
  const std::size_t begin = at_;
  while (skip_plain()) {
    const char c = input_[at_];
    if (c == '"') {
      text = input_.substr(begin, at_++ - begin);
      return true;
    }
    if (c == '\\') return read_escaped(begin, text);
    if (static_cast<unsigned char>(c) < 0x20) return broken("a string has a control character");
    const std::size_t length = utf8_length(input_.substr(at_));
    if (length == 0) return broken("a string is not UTF-8");
    at_ += length;
  }
  return broken("a string does not end");
}

bool JsonReader::read_escaped(std::size_t begin, std::string_view& text) {
  std::string& out = texts_.emplace_back(input_.substr(begin, at_ - begin));
  while (at_ < input_.size()) {
    const char c = input_[at_];
    if (c == '"') {
      ++at_;
      text = out;
      return true;
    }
    if (c == '\\') {
      if (!read_escape(out)) return false;
      continue;
    }
    if (static_cast<unsigned char>(c) < 0x20) return broken("a string has a control character");
    const std::size_t length = utf8_length(input_.substr(at_));
    if (length == 0) return broken("a string is not UTF-8");
    out.append(input_.substr(at_, length));
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
    append_utf8(out, *code);
    return true;
  }
  if (*code > 0xDBFF || input_.substr(at_, 2) != "\\u") return broken("a UTF-16 surrogate has no pair");
  at_ += 2;
  const auto low = read_hex();
  if (!low || *low < 0xDC00 || *low > 0xDFFF) return broken("a UTF-16 surrogate has no pair");
  append_utf8(out, 0x10000 + ((*code - 0xD800) << 10) + (*low - 0xDC00));
  return true;
}

bool JsonReader::skip_digits() {
  const std::size_t begin = at_;
  while (at_ < input_.size() && is_digit(input_[at_])) ++at_;
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
  if (at_ < input_.size() && lower(input_[at_]) == 'e') {
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
    const bool is_sound = c == '"'                  ? read_text(text)
                          : c == '-' || is_digit(c) ? read_number(text)
                          : c == 't'                ? skip_word("true")
                          : c == 'f'                ? skip_word("false")
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
      return read_text(text) ? "the string " + in_quotes(text) : std::string();
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

std::optional<std::int64_t> whole_number(std::string_view number) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
  if (error != std::errc{} || end != number.data() + number.size()) return std::nullopt;
  return value;
}

}  // namespace weir
