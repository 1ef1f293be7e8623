// Formats log lines as text and JSON. See log_line.h.
#include "log/log_line.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "base/json_text.h"
#include "base/text.h"
#include "base/time_text.h"
#include "base/utf8.h"

namespace weir::log {
namespace {

constexpr std::size_t kClosing = 2;  // of JSON: "}\n"
constexpr std::size_t kShortMax = 128;

// At most `most` bytes, no partial character; "..." marks the cut.
std::string cut(std::string_view text, std::size_t most) {
  if (text.size() <= most) return std::string(text);
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xC0) == 0x80) --most;
  return std::string(text.substr(0, most)) + "...";
}

void append_escapes(std::string& out, std::string_view bytes) {
  for (const char c : bytes) base::append_hex(out.append("\\x"), c);
}

enum class Quoted : std::uint8_t { no, yes };

void append_plain(std::string& out, std::string_view text, Quoted quoted) {
  while (!text.empty()) {
    const std::size_t length = base::utf8_length(text);
    const std::string_view character = text.substr(0, std::max<std::size_t>(1, length));
    if (length == 0 || base::is_unseen(base::utf8_code(character))) {
      append_escapes(out, character);
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

void append_json_escape(std::string& out, std::uint32_t unit) {
  out.append("\\u");
  for (int shift = 12; shift >= 0; shift -= 4) out.push_back(base::kHexDigits[unit >> shift & 15]);
}

// Escapes invisible characters. JSON requires that only for ASCII control characters, but terminals and editors act on
// the others, too. `text` is valid UTF-8 from `from` on.
void escape_unseen(std::string& text, std::size_t from) {
  std::string out;
  std::string_view rest = std::string_view(text).substr(from);
  while (!rest.empty()) {
    const std::string_view character = rest.substr(0, std::max<std::size_t>(1, base::utf8_length(rest)));
    const std::uint32_t code = base::utf8_code(character);
    if (!base::is_unseen(code)) {
      out.append(character);
    } else if (code < 0x10000) {
      append_json_escape(out, code);
    } else {  // a pair of surrogates
      append_json_escape(out, 0xD800 + ((code - 0x10000) >> 10));
      append_json_escape(out, 0xDC00 + (code & 0x3FF));
    }
    rest.remove_prefix(character.size());
  }
  text.replace(from, text.npos, out);
}

void append_json_field(std::string& out, std::string_view name, std::string_view value) {
  out.push_back(',');
  base::append_json_text(out, name);
  out.push_back(':');
  const std::size_t from = out.size();
  base::append_json_text(out, value);
  if (std::any_of(out.begin() + static_cast<std::ptrdiff_t>(from), out.end(), [](char c) { return (c & 0x80) != 0; })) {
    escape_unseen(out, from);
  }
}

// Appends a value to a line, or only its beginning if the line would be too long, or nothing if even that does not fit.
// Escapes make a value up to six times as long.
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
  std::string out = "{\"ts\":\"" + base::rfc3339(line.time) + "\",\"level\":\"";
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

}  // namespace weir::log
