// Text and JSON. See log_line.h.
#include "log_line.h"

#include <algorithm>
#include <array>

#include "protocol/problem.h"
#include "protocol/rfc3339.h"
#include "protocol/utf8.h"

namespace weir {
namespace {

constexpr std::size_t kClosing = 2;  // of JSON: "}\n"
constexpr std::size_t kShortMax = 128;

// At most so many bytes, and no half of a character; three dots tell of it.
std::string cut(std::string_view text, std::size_t most) {
  if (text.size() <= most) return std::string(text);
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xC0) == 0x80) --most;
  return std::string(text.substr(0, most)) + "...";
}

// U+0080 to U+009F are control characters too, though of two bytes.
bool is_control(std::string_view character) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(character[i]); };
  if (character.size() == 1) return byte(0) < 0x20 || byte(0) == 0x7F;
  return character.size() == 2 && byte(0) == 0xC2 && byte(1) < 0xA0;
}

void append_hex(std::string& out, std::string_view bytes) {
  constexpr std::string_view kHex = "0123456789abcdef";
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    out.append("\\x");
    out.push_back(kHex[byte >> 4]);
    out.push_back(kHex[byte & 15]);
  }
}

enum class Quoted : std::uint8_t { no, yes };

void append_plain(std::string& out, std::string_view text, Quoted quoted) {
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    const std::string_view character = text.substr(0, std::max<std::size_t>(1, length));
    if (length == 0 || is_control(character)) {
      append_hex(out, character);
    } else {
      if (quoted == Quoted::yes && (character == "\"" || character == "\\")) out.push_back('\\');
      out.append(character);
    }
    text.remove_prefix(character.size());
  }
}

bool needs_quotes(std::string_view value) {
  return value.empty() || std::ranges::any_of(value, [](char c) {
           return static_cast<unsigned char>(c) <= 0x20 || static_cast<unsigned char>(c) >= 0x7F || c == '"' ||
                  c == '=' || c == '\\';
         });
}

void append_text_field(std::string& out, std::string_view name, std::string_view value) {
  out.append(" ").append(name).append("=");
  if (!needs_quotes(value)) {
    out.append(value);
    return;
  }
  out.push_back('"');
  append_plain(out, value, Quoted::yes);
  out.push_back('"');
}

// JSON lets U+0080 to U+009F stand as they are; terminals obey them.
void escape_controls(std::string& text, std::size_t from) {
  for (std::size_t at = text.find('\xC2', from); at != text.npos; at = text.find('\xC2', at + 1)) {
    if (!is_control(std::string_view(text).substr(at, 2))) continue;
    std::string escaped;
    append_hex(escaped, std::string_view(text).substr(at + 1, 1));
    text.replace(at, 2, escaped.replace(0, 2, "\\u00"));
  }
}

void append_json_field(std::string& out, std::string_view name, std::string_view value) {
  out.push_back(',');
  append_json_text(out, name);
  out.push_back(':');
  const std::size_t from = out.size();
  append_json_text(out, value);
  escape_controls(out, from);
}

// Escapes make a value up to six times as long: if it has no room, less of it may have.
template <class Append>
void append_fitting(std::string& out, std::string_view name, std::string_view value, Append append) {
  const std::size_t before = out.size();
  for (const std::size_t most : {kLogValueMax, kShortMax}) {
    append(out, name, cut(value, most));
    if (out.size() + kClosing <= kLogLineMax) return;
    out.resize(before);
  }
}

std::string json_line(const LogLine& line) {
  std::string out = "{\"ts\":\"" + rfc3339(line.time) + "\",\"level\":\"";
  out.append(to_string(line.level)).append("\"");
  append_fitting(out, "msg", line.message, append_json_field);
  for (const LogField& field : line.fields) append_fitting(out, field.name, field.value, append_json_field);
  return out.append("}\n");
}

std::string text_line(const LogLine& line, std::string out) {
  append_fitting(out, {}, line.message, [](std::string& to, std::string_view, std::string_view message) {
    append_plain(to, message, Quoted::no);
  });
  for (const LogField& field : line.fields) append_fitting(out, field.name, field.value, append_text_field);
  out.push_back('\n');
  return out;
}

}  // namespace

std::string write_log_line(const LogLine& line, LogFormat format) {
  switch (format) {
    case LogFormat::json:
      return json_line(line);
    case LogFormat::journal: {
      static constexpr std::array<std::string_view, 4> kPrefixes = {"<7>", "<6>", "<4>", "<3>"};
      return text_line(line, std::string(kPrefixes[static_cast<std::size_t>(line.level)]));
    }
    case LogFormat::text:
      break;
  }
  return text_line(line, "weir: ");
}

}  // namespace weir
