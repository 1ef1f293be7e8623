// Writes RESP. See writer.h; tested by writer_test.cc. One thread.
#include "resp/writer.h"

#include <charconv>

namespace weir::resp {
namespace {

// Most integers in replies have few digits; 20 bytes are enough for every 64-bit integer.
char* put_integer(char* at, std::int64_t value) {
  if (value >= 0 && value < 100) {
    if (value >= 10) *at++ = static_cast<char>('0' + value / 10);
    *at = static_cast<char>('0' + value % 10);
    return at + 1;
  }
  return std::to_chars(at, at + 20, value).ptr;
}

void append_integer(std::string& out, std::int64_t value) {
  char digits[20];
  out.append(digits, put_integer(digits, value));
}

// Does not cut a UTF-8 character in two.
std::string_view cut(std::string_view text, std::size_t size_max) {
  if (text.size() <= size_max) return text;
  std::size_t size = size_max;
  while (size > 0 && size_max - size < 3 && (static_cast<unsigned char>(text[size]) & 0xC0) == 0x80) --size;
  return text.substr(0, size);
}

}  // namespace

void Writer::line(char kind, std::string_view text) {
  out_.push_back(kind);
  for (const char c : cut(text, kLineReplyMax)) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\r' || c == '\n' || c == '\t') {
      out_.push_back(' ');
    } else {
      out_.push_back(byte < 0x20 || byte == 0x7F ? '?' : c);
    }
  }
  out_.append("\r\n");
}

void Writer::header(char kind, std::int64_t value) {
  out_.push_back(kind);
  append_integer(out_, value);
  out_.append("\r\n");
}

void Writer::simple(std::string_view text) { line('+', text); }
void Writer::error(std::string_view text) { line('-', text); }
void Writer::integer(std::int64_t value) { header(':', value); }

void Writer::bulk(std::string_view bytes) {
  header('$', static_cast<std::int64_t>(bytes.size()));
  out_.append(bytes).append("\r\n");
}

void Writer::verbatim(std::string_view text) {
  if (protocol_ == Protocol::resp2) return bulk(text);
  header('=', static_cast<std::int64_t>(text.size() + 4));
  out_.append("txt:").append(text).append("\r\n");
}

void Writer::null() { out_.append(protocol_ == Protocol::resp3 ? "_\r\n" : "$-1\r\n"); }

void Writer::array(std::size_t count) { header('*', static_cast<std::int64_t>(count)); }

void Writer::map(std::size_t count) {
  if (protocol_ == Protocol::resp3) return header('%', static_cast<std::int64_t>(count));
  header('*', static_cast<std::int64_t>(count * 2));
}

void Writer::integers(const std::array<std::int64_t, 5>& values) {
  char text[4 + 5 * 23];
  char* at = text;
  for (const char c : {'*', '5', '\r', '\n'}) *at++ = c;
  for (const std::int64_t value : values) {
    *at++ = ':';
    at = put_integer(at, value);
    *at++ = '\r';
    *at++ = '\n';
  }
  out_.append(text, at);
}

void append_command(std::string& out, std::span<const std::string_view> args) {
  Writer writer(out);
  writer.array(args.size());
  for (const std::string_view arg : args) writer.bulk(arg);
}

}  // namespace weir::resp
