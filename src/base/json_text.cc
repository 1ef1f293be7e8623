// Writes JSON strings. See json_text.h.
#include "base/json_text.h"

#include <cstddef>

#include "base/text.h"
#include "base/utf8.h"

namespace weir::base {
namespace {

void append_escaped_ascii(std::string& out, char c) {
  const auto byte = static_cast<unsigned char>(c);
  if (c == '"' || c == '\\') {
    out.push_back('\\');
    out.push_back(c);
  } else if (byte < 0x20 || byte == 0x7F) {
    base::append_hex(out.append("\\u00"), c);
  } else {
    out.push_back(c);
  }
}

}  // namespace

void append_json_text(std::string& out, std::string_view text) {
  out.push_back('"');
  std::size_t plain = 0;  // start of the text that is not appended yet
  for (std::size_t at = 0; at < text.size();) {
    const auto byte = static_cast<unsigned char>(text[at]);
    const bool is_plain = byte >= 0x20 && byte < 0x7F && byte != '"' && byte != '\\';
    if (is_plain) {
      ++at;
      continue;
    }
    out.append(text.substr(plain, at - plain));
    const std::size_t length = base::utf8_length(text.substr(at));
    if (length == 0) {
      out.append("\xEF\xBF\xBD");
    } else if (length == 1) {
      append_escaped_ascii(out, text[at]);
    } else {
      out.append(text.substr(at, length));
    }
    at += length == 0 ? 1 : length;
    plain = at;
  }
  out.append(text.substr(plain)).push_back('"');
}

}  // namespace weir::base
