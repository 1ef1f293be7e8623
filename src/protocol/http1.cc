// Parses heads and chunks. See http1.h.
//
// Header values are scanned eight bytes at a time: they are most of a head, and every byte must be checked.
#include "protocol/http1.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <optional>

#include "base/nearest.h"
#include "base/text.h"

namespace weir::protocol {
namespace {

constexpr bool is_token_byte(unsigned char c) {
  if (c >= '0' && c <= '9') return true;
  if ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') return true;
  return std::string_view("!#$%&'*+-.^_`|~").find(static_cast<char>(c)) != std::string_view::npos;
}

constexpr std::array<bool, 256> kToken = [] {
  std::array<bool, 256> table{};
  for (unsigned c = 1; c < 256; ++c) table[c] = is_token_byte(static_cast<unsigned char>(c));
  return table;
}();

bool is_token(char c) { return kToken[static_cast<unsigned char>(c)]; }
bool is_control(char c) { return (static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7f; }

// Marks the highest bit of each of eight bytes that may be a control character. The byte of the first mark is a control
// character or a tab; later marks may be wrong.
std::uint64_t marked_controls(const char* at) {
  constexpr std::uint64_t kOnes = 0x0101010101010101;
  std::uint64_t word = 0;
  std::memcpy(&word, at, sizeof word);
  const std::uint64_t below = (word - kOnes * 0x20) & ~word;
  const std::uint64_t changed = word ^ (kOnes * 0x7f);
  return (below | ((changed - kOnes) & ~changed)) & (kOnes * 0x80);
}

// Returns the position of the first control character except tab at or after `from`; the end if there is none.
std::size_t find_control(std::string_view text, std::size_t from) {
  const char* const begin = text.data();
  const char* const end = begin + text.size();
  const char* at = begin + from;
  while (end - at >= 8) {
    const std::uint64_t marked = marked_controls(at);
    if (marked == 0) {
      at += 8;
      continue;
    }
    if constexpr (std::endian::native == std::endian::little) at += std::countr_zero(marked) / 8;
    if (is_control(*at)) break;
    ++at;
  }
  while (at < end && !is_control(*at)) ++at;
  return static_cast<std::size_t>(at - begin);
}

// Returns the position of the first byte at or after `from` that cannot be in a field name.
std::size_t find_name_end(std::string_view text, std::size_t from) {
  const char* at = text.data() + from;
  const char* const end = text.data() + text.size();
  while (at < end && is_token(*at)) ++at;
  return static_cast<std::size_t>(at - text.data());
}

HttpRead refuse(HttpRefusal& refusal, int status, std::string_view title, std::string detail) {
  refusal = {status, title, std::move(detail)};
  return HttpRead::refused;
}
HttpRead refuse(HttpRefusal& refusal, std::string detail) {
  return refuse(refusal, 400, "Bad request", std::move(detail));
}

HttpRead too_much_header(std::size_t header_max, HttpRefusal& refusal) {
  return refuse(
      refusal, 431, "Header too large",
      "the header, the extension of a chunk or the trailer is larger than " + std::to_string(header_max) + " bytes");
}

HttpRead not_http(std::string_view input, HttpRefusal& refusal, std::string_view why) {
  if (input.starts_with('\x16')) {
    return refuse(refusal, "this looks like TLS, but this port speaks plain HTTP; use http://");
  }
  if (input.starts_with("PRI * HTTP/2")) {
    return refuse(refusal, "this looks like HTTP/2, but this port speaks HTTP/1.1; use HTTP/1.1");
  }
  if (input.starts_with('*') || input.starts_with("PING") || input.starts_with("HELLO") || input.starts_with("CL.")) {
    return refuse(refusal, "this looks like RESP, but this port speaks HTTP/1.1; use the RESP port for Redis clients");
  }
  return refuse(refusal, "this is not HTTP/1.1: " + std::string(why));
}

// Steps through the lines of a head.
struct Cursor {
  std::string_view text;  // at most as much of the input as a head may have
  std::size_t at = 0;

  // Finds the end of the current line, and moves `at` behind the line.
  HttpRead line_end(std::size_t from, std::size_t& end) {
    end = find_control(text, from);
    if (end == text.size()) return HttpRead::need_more;
    if (text[end] != '\r') return HttpRead::refused;
    if (end + 1 == text.size()) return HttpRead::need_more;
    if (text[end + 1] != '\n') return HttpRead::refused;
    at = end + 2;
    return HttpRead::done;
  }
};

constexpr std::string_view kBadLine = "lines must end with CR LF and have no control characters";

HttpRead read_request_line(Cursor& cursor, HttpHead& head, HttpRefusal& refusal) {
  const std::string_view text = cursor.text;
  std::size_t end = 0;
  const HttpRead read = cursor.line_end(0, end);
  if (read == HttpRead::refused) return not_http(text, refusal, kBadLine);
  if (read == HttpRead::need_more) return read;
  const std::string_view line = text.substr(0, end);
  const std::size_t method_end = std::min(line.find(' '), line.size());
  const std::size_t target_end = line.rfind(' ');
  if (method_end == 0 || !std::ranges::all_of(line.substr(0, method_end), is_token)) {
    return not_http(text, refusal, "a request begins with a method such as GET");
  }
  if (method_end == line.size() || target_end <= method_end + 1) {
    return not_http(text, refusal, "a request begins with a line such as GET / HTTP/1.1");
  }
  head.method = line.substr(0, method_end);
  head.target = line.substr(method_end + 1, target_end - method_end - 1);
  const std::string_view version = line.substr(target_end + 1);
  if (std::ranges::any_of(head.target, base::is_blank)) return not_http(text, refusal, "the path has a space or tab");
  head.is_http10 = version == "HTTP/1.0";
  if (head.is_http10 || version == "HTTP/1.1") return HttpRead::done;
  return not_http(text, refusal, "the version is " + base::in_quotes(version));
}

// Reads the field at the cursor, or the empty line at the end, which gives an empty name.
HttpRead read_field(Cursor& cursor, Attribute& field, HttpRefusal& refusal) {
  const std::size_t begin = cursor.at;
  const std::size_t name_end = find_name_end(cursor.text, begin);
  std::size_t end = 0;
  const HttpRead read = cursor.line_end(name_end, end);
  if (read == HttpRead::refused) return refuse(refusal, "in the header " + std::string(kBadLine));
  if (read == HttpRead::need_more) return read;
  field.name = cursor.text.substr(begin, name_end - begin);
  if (end == begin) return HttpRead::done;
  if (field.name.empty() || cursor.text[name_end] != ':') {
    return refuse(refusal, "a header line is not a field such as Host: example.com: " +
                               base::in_quotes(cursor.text.substr(begin, end - begin)));
  }
  field.value = base::trimmed(cursor.text.substr(name_end + 1, end - name_end - 1));
  return HttpRead::done;
}

// The fields that decide where the request ends and whether the connection stays open.
struct Framing {
  std::size_t hosts = 0, lengths = 0, codings = 0;
  std::string_view length, coding;
  bool says_close = false, says_keep_alive = false, says_continue = false;
};

void note_connection(std::string_view value, Framing& framing) {
  while (true) {
    const std::size_t comma = value.find(',');
    const std::string_view option = base::trimmed(value.substr(0, comma));
    if (equals_ignoring_case(option, "close")) framing.says_close = true;
    if (equals_ignoring_case(option, "keep-alive")) framing.says_keep_alive = true;
    if (comma == value.npos) return;
    value.remove_prefix(comma + 1);
  }
}

void note(const Attribute& field, Framing& framing) {
  switch (field.name.size()) {
    case 4:
      if (equals_ignoring_case(field.name, "host")) ++framing.hosts;
      return;
    case 6:
      if (equals_ignoring_case(field.name, "expect")) {
        framing.says_continue = equals_ignoring_case(field.value, "100-continue");
      }
      return;
    case 10:
      if (equals_ignoring_case(field.name, "connection")) note_connection(field.value, framing);
      return;
    case 14:
      if (!equals_ignoring_case(field.name, "content-length")) return;
      ++framing.lengths;
      framing.length = field.value;
      return;
    case 17:
      if (!equals_ignoring_case(field.name, "transfer-encoding")) return;
      ++framing.codings;
      framing.coding = field.value;
      return;
    default:
      return;
  }
}

HttpRead take_coding(const Framing& framing, HttpHead& head, HttpRefusal& refusal) {
  if (head.is_http10) return refuse(refusal, "HTTP/1.0 does not support Transfer-Encoding; send Content-Length");
  if (framing.lengths > 0) return refuse(refusal, "send Transfer-Encoding or Content-Length, not both");
  const std::string_view value = framing.coding;
  if (framing.codings == 1 && equals_ignoring_case(value, "chunked")) {
    head.body = HttpBody::chunked;
    return HttpRead::done;
  }
  std::string detail = "the only supported Transfer-Encoding is chunked, found " + base::in_quotes(value);
  const std::string_view first = value.substr(0, value.find(','));
  const bool is_chunked_last = framing.codings == 1 && base::lower(value).ends_with("chunked") &&
                               first.size() < value.size() && base::lower(first) != "chunked";
  if (is_chunked_last) return refuse(refusal, 501, "Not implemented", std::move(detail));
  return refuse(refusal, std::move(detail));
}

HttpRead take_framing(const Framing& framing, HttpHead& head, HttpRefusal& refusal) {
  head.keeps_alive = !framing.says_close && (!head.is_http10 || framing.says_keep_alive);
  head.expects_continue = framing.says_continue && !head.is_http10;
  head.body = HttpBody::none;
  head.body_size = 0;
  if (framing.hosts > 1 || (framing.hosts == 0 && !head.is_http10)) {
    return refuse(refusal, "HTTP/1.1 needs exactly one Host header");
  }
  if (framing.codings > 0) return take_coding(framing, head, refusal);
  if (framing.lengths == 0) return HttpRead::done;
  if (framing.lengths > 1) return refuse(refusal, "the header has more than one Content-Length; send one");
  const auto length = base::to_number<std::size_t>(framing.length);
  if (!length || framing.length.size() > 18)
    return refuse(refusal, "Content-Length is not a number of bytes: " + base::in_quotes(framing.length));
  head.body = *length > 0 ? HttpBody::sized : HttpBody::none;
  head.body_size = *length;
  return HttpRead::done;
}

// Returns the error if the input already has as many bytes as a header may have.
HttpRead more(const Cursor& cursor, std::size_t header_max, HttpRefusal& refusal) {
  return cursor.text.size() == header_max ? too_much_header(header_max, refusal) : HttpRead::need_more;
}

}  // namespace

std::string_view field_of(const std::vector<Attribute>& fields, std::string_view name) {
  const auto found =
      std::ranges::find_if(fields, [&](const Attribute& field) { return equals_ignoring_case(field.name, name); });
  return found == fields.end() ? std::string_view() : found->value;
}

HttpRead read_head(std::string_view input, HttpHead& head, HttpRefusal& refusal, const HttpBounds& bounds) {
  Cursor cursor{input.substr(0, bounds.header_max)};
  HttpRead read = read_request_line(cursor, head, refusal);
  if (read == HttpRead::need_more) return more(cursor, bounds.header_max, refusal);
  if (read == HttpRead::refused) return read;
  head.fields.clear();
  Framing framing;
  while (true) {
    Attribute field;
    read = read_field(cursor, field, refusal);
    if (read == HttpRead::need_more) return more(cursor, bounds.header_max, refusal);
    if (read == HttpRead::refused) return read;
    if (field.name.empty()) break;
    if (head.fields.size() == bounds.fields_max) {
      return refuse(refusal, 431, "Header too large",
                    "the header has more than " + std::to_string(bounds.fields_max) + " fields");
    }
    note(field, framing);
    head.fields.push_back(field);
  }
  head.size = cursor.at;
  return take_framing(framing, head, refusal);
}

HttpRefusal body_too_large(std::size_t body_max) {
  return {413, "Body too large", "the body is larger than " + std::to_string(body_max) + " bytes"};
}

HttpRead ChunkedBody::read_size(std::string_view line, std::size_t body_max, std::size_t so_far, HttpRefusal& refusal) {
  const std::string_view digits = line.substr(0, line.find_first_of("; \t"));
  const std::size_t behind = line.find_first_not_of(" \t", digits.size());
  if (behind != line.npos && line[behind] != ';') {
    return refuse(refusal, "unexpected text after the size of a chunk: " + base::in_quotes(line));
  }
  std::size_t size = 0;
  for (const char c : digits) {
    const int digit = base::hex_digit(c);
    if (digit < 0) return refuse(refusal, "a chunk has no size: " + base::in_quotes(line));
    if (size >> 40 != 0) return refuse(refusal, "a chunk is too large: " + base::in_quotes(line));
    size = size * 16 + static_cast<std::size_t>(digit);
  }
  if (digits.empty()) return refuse(refusal, "a chunk has no size: " + base::in_quotes(line));
  WEIR_ASSERT(so_far <= body_max);
  if (size > body_max - so_far) {
    refusal = body_too_large(body_max);
    return HttpRead::refused;
  }
  left_ = size;
  expects_ = size == 0 ? Expects::trailer : Expects::data;
  return HttpRead::done;
}

HttpRead ChunkedBody::read_trailer(std::string_view line, std::size_t header_max, HttpRefusal& refusal) {
  trailer_bytes_ += line.size() + 2;
  if (trailer_bytes_ > header_max) return too_much_header(header_max, refusal);
  const auto name_end = std::ranges::find_if_not(line, is_token);
  if (name_end != line.begin() && name_end != line.end() && *name_end == ':') return HttpRead::done;
  return refuse(refusal, "a trailer line is not a field: " + base::in_quotes(line));
}

HttpRead ChunkedBody::read(std::string_view input, std::size_t body_max, std::string& body, std::size_t& consumed,
                           HttpRefusal& refusal, std::size_t header_max) {
  consumed = 0;
  while (true) {
    const std::string_view rest = input.substr(consumed);
    if (expects_ == Expects::data) {
      const std::size_t taken = std::min(left_, rest.size());
      body.append(rest.substr(0, taken));
      consumed += taken;
      left_ -= taken;
      if (left_ > 0) return HttpRead::need_more;
      expects_ = Expects::data_end;
      continue;
    }
    Cursor cursor{rest.substr(0, header_max)};
    std::size_t end = 0;
    const HttpRead line = cursor.line_end(0, end);
    if (line == HttpRead::refused) return refuse(refusal, "between the chunks " + std::string(kBadLine));
    if (line == HttpRead::need_more) return more(cursor, header_max, refusal);
    consumed += cursor.at;
    const std::string_view text = rest.substr(0, end);
    HttpRead read = HttpRead::done;
    if (expects_ == Expects::size) {
      read = read_size(text, body_max, body.size(), refusal);
    } else if (expects_ == Expects::data_end) {
      if (end != 0) return refuse(refusal, "a chunk is longer than its size");
      expects_ = Expects::size;
    } else if (end == 0) {
      return HttpRead::done;
    } else {
      read = read_trailer(text, header_max, refusal);
    }
    if (read != HttpRead::done) return read;
  }
}

}  // namespace weir::protocol
