// Parses requests. See request.h; tested by request_test.cc and fuzz/resp_frame.cc. One thread.
//
// Every step decides on bytes that can no longer change, never on how many have arrived. So split and whole input
// always give the same result.
#include "resp/request.h"

#include <cstring>

#include "resp/number.h"

namespace weir::resp {
namespace {

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\v' || c == '\f'; }

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

char escaped(char c) {
  constexpr std::string_view kNames = "nrtba", kMeant = "\n\r\t\b\a";
  const std::size_t place = kNames.find(c);
  return place == kNames.npos ? c : kMeant[place];
}

// Reads the text after an opening quote. Returns false if the quote is not closed properly.
bool read_quoted(char quote, std::string_view line, std::size_t& at, std::string& bytes) {
  while (at < line.size()) {
    const char c = line[at++];
    if (c == quote) return at == line.size() || is_space(line[at]);
    const std::string_view rest = c == '\\' ? line.substr(at) : std::string_view{};
    if (quote == '"' && rest.size() >= 3 && rest[0] == 'x' && hex_digit(rest[1]) >= 0 && hex_digit(rest[2]) >= 0) {
      bytes.push_back(static_cast<char>(hex_digit(rest[1]) * 16 + hex_digit(rest[2])));
      at += 3;
    } else if (!rest.empty() && (quote == '"' || rest[0] == quote)) {
      bytes.push_back(quote == '"' ? escaped(rest[0]) : quote);
      ++at;
    } else {
      bytes.push_back(c);
    }
  }
  return false;
}

// Splits a typed line into words, with the quotes and escapes of redis-cli: "double" quotes support \n \r \t \b \a
// \xHH and \any; 'single' quotes support \' only. A closing quote must end its word. Appends the words to `bytes`,
// without separators, and the end of each word within `bytes` to `ends`.
enum class SplitError : std::uint8_t { none, unbalanced_quotes, too_many_words };

SplitError split_inline(std::string_view line, std::size_t words_max, std::string& bytes,
                        std::vector<std::size_t>& ends) {
  std::size_t at = 0;
  while (true) {
    while (at < line.size() && is_space(line[at])) ++at;
    if (at == line.size()) return SplitError::none;
    if (ends.size() == words_max) return SplitError::too_many_words;
    while (at < line.size() && !is_space(line[at])) {
      const char c = line[at++];
      if (c == '"' || c == '\'') {
        if (!read_quoted(c, line, at, bytes)) return SplitError::unbalanced_quotes;
      } else {
        bytes.push_back(c);
      }
    }
    ends.push_back(bytes.size());
  }
}

constexpr std::size_t kUnquotedKeep = 4096;  // the memory that a parser may keep between requests

std::string expected_dollar(char got) {
  std::string reason = "Protocol error: expected '$', got '";
  reason.push_back(got);
  reason.push_back('\'');
  return reason;
}

std::string not_resp(char first) {
  if (first == '\x16') return "Protocol error: this looks like TLS, but this port speaks plain RESP";
  return "Protocol error: a request begins with '*' or with a command's name, not with a control character";
}

std::string too_many_args(std::string_view count, std::size_t args_max) {
  std::string reason = "Protocol error: invalid multibulk length: ";
  reason.append(count).append(" arguments, at most ").append(std::to_string(args_max)).append(" are accepted");
  return reason;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }
std::size_t digit(char c) { return static_cast<std::size_t>(c - '0'); }

// Reads up to seven digits, without leading zeros, and the line end after them; null for anything else.
const char* read_long_size(const char* at, const char* end, std::size_t& size) {
  if (!is_digit(*at) || (*at == '0' && at[1] != '\r')) return nullptr;
  const char* const last = end - at > 8 ? at + 8 : end - 1;  // the last place for the line feed
  std::size_t value = digit(*at);
  while (++at < last && is_digit(*at)) value = value * 10 + digit(*at);
  if (at >= last || at[0] != '\r' || at[1] != '\n') return nullptr;
  size = value;
  return at + 2;
}

// The same, faster for sizes of one or two digits, which nearly all are: it looks at four bytes only.
inline const char* read_size(const char* at, const char* end, std::size_t& size) {
  if (end - at < 4) return end - at == 3 ? read_long_size(at, end, size) : nullptr;
  unsigned char bytes[4];
  std::memcpy(bytes, at, 4);
  const unsigned first = bytes[0] - unsigned{'0'}, second = bytes[1] - unsigned{'0'};
  if (bytes[1] == '\r' && bytes[2] == '\n' && first <= 9) {
    size = first;
    return at + 3;
  }
  if (bytes[2] == '\r' && bytes[3] == '\n' && first - 1 <= 8 && second <= 9) {
    size = first * 10 + second;
    return at + 4;
  }
  return read_long_size(at, end, size);
}

}  // namespace

// parse_whole()
//
// One pass over a request that is complete and valid. All others go to parse_slowly(), which also produces the error
// texts.
bool RequestParser::parse_whole(std::string_view input) {
  const char* at = input.data();
  const char* const end = at + input.size();
  if (input.size() < 4 || *at != '*') return false;
  std::size_t count = 0;
  at = read_size(at + 1, end, count);
  if (at == nullptr || count == 0 || count > args_max()) return false;
  if (args_.size() < count) args_.resize(count);
  std::string_view* arg = args_.data();
  const std::size_t bulk_bytes_max = bulk_max();
  for (std::size_t left = count; left > 0; --left) {
    if (at == end || *at != '$') return false;
    std::size_t size = 0;
    at = read_size(at + 1, end, size);
    if (at == nullptr || size > bulk_bytes_max || static_cast<std::size_t>(end - at) < size + 2) return false;
    if (at[size] != '\r' || at[size + 1] != '\n') return false;
    *arg++ = {at, size};
    at += size + 2;
  }
  at_whole_ = static_cast<std::size_t>(at - input.data());
  count_ = count;
  return at_whole_ <= bounds_.request_max();
}

ParsedRequest RequestParser::parse_slowly(std::string_view input) {
  if (unquoted_.capacity() > kUnquotedKeep) std::string().swap(unquoted_);  // no pointer into it is valid any more
  if (expect_ != Expect::request) return parse_bulks(input);
  if (input.empty()) return {};
  return input.front() == '*' ? parse_count(input) : parse_inline(input);
}

// find_line()
//
// Finds the line that begins at at_, without its line end. Returns `bad` if the line is too long.
Status RequestParser::find_line(std::string_view input, std::string_view& line) {
  const std::size_t end = input.find('\n', searched_ > at_ ? searched_ : at_);
  if (end == std::string_view::npos) {
    searched_ = input.size();
    return input.size() - at_ > bounds_.line_max ? Status::bad : Status::need_more;
  }
  if (end - at_ > bounds_.line_max) return Status::bad;
  line = input.substr(at_, end - at_);
  return Status::done;
}

ParsedRequest RequestParser::parse_inline(std::string_view input) {
  const char first = input.front();
  if (static_cast<unsigned char>(first) < 0x20 && (first < '\t' || first > '\r')) return bad(not_resp(first));
  std::string_view line;
  const Status found = find_line(input, line);
  if (found == Status::need_more) return {};
  if (found == Status::bad) return too_large("Protocol error: too big inline request");
  const std::size_t consumed = line.size() + 1;
  if (line.find('\0') != std::string_view::npos) return bad("Protocol error: NUL byte in inline request");

  unquoted_.clear();
  std::vector<std::size_t> ends;
  switch (split_inline(line, bounds_.args_max, unquoted_, ends)) {
    case SplitError::unbalanced_quotes:
      return bad("Protocol error: unbalanced quotes in request");
    case SplitError::too_many_words:
      return too_large(too_many_args("over " + std::to_string(bounds_.args_max), bounds_.args_max));
    case SplitError::none:
      break;
  }
  std::size_t begin = 0;
  for (const std::size_t end : ends) {
    parts_.push_back({begin, end - begin});
    begin = end;
  }
  ParsedRequest request = done(unquoted_, consumed);
  request.is_inline = true;
  return request;
}

ParsedRequest RequestParser::parse_count(std::string_view input) {
  std::string_view line;
  const Status found = find_line(input, line);
  if (found == Status::need_more) return {};
  if (found == Status::bad) return too_large("Protocol error: too big mbulk count string");
  const bool ended = line.ends_with('\r');
  const std::string_view digits = line.substr(1, line.size() - (ended ? 2 : 1));
  const auto count = parse_integer(digits);
  if (!ended || !count) return bad("Protocol error: invalid multibulk length");
  if (*count > static_cast<std::int64_t>(bounds_.args_max)) return too_large(too_many_args(digits, bounds_.args_max));
  if (*count > static_cast<std::int64_t>(args_max()))
    return too_large("Protocol error: unauthenticated multibulk length");
  at_ = line.size() + 1;
  if (*count <= 0) return done(input, at_);
  args_left_ = static_cast<std::size_t>(*count);
  expect_ = Expect::bulk_header;
  return parse_bulks(input);
}

Status RequestParser::read_bulk_header(std::string_view input, std::string& reason, bool& is_too_large) {
  if (at_ == input.size()) return Status::need_more;
  if (input[at_] != '$') {
    reason = expected_dollar(input[at_]);
    return Status::bad;
  }
  std::string_view line;
  const Status found = find_line(input, line);
  is_too_large = found == Status::bad;
  if (is_too_large) reason = "Protocol error: too big bulk count string";
  if (found != Status::done) return found;
  const bool ended = line.ends_with('\r');
  const auto size = parse_integer(line.substr(1, line.size() - (ended ? 2 : 1)));
  if (!ended || !size || *size < 0) {
    reason = "Protocol error: invalid bulk length";
    return Status::bad;
  }
  is_too_large = true;  // for the errors from here on
  if (*size > static_cast<std::int64_t>(bounds_.bulk_max)) {
    reason = "Protocol error: invalid bulk length: " + std::to_string(*size) + " bytes, at most " +
             std::to_string(bounds_.bulk_max) + " are accepted";
    return Status::bad;
  }
  if (*size > static_cast<std::int64_t>(bulk_max())) {
    reason = "Protocol error: unauthenticated bulk length";
    return Status::bad;
  }
  bulk_bytes_ = static_cast<std::size_t>(*size);
  at_ += line.size() + 1;
  if (at_ + bulk_bytes_ + 2 > bounds_.request_max()) {
    reason =
        "Protocol error: too big request: at most " + std::to_string(bounds_.request_max()) + " bytes are accepted";
    return Status::bad;
  }
  return Status::done;
}

ParsedRequest RequestParser::parse_bulks(std::string_view input) {
  while (args_left_ > 0) {
    if (expect_ == Expect::bulk_header) {
      std::string reason;
      bool is_too_large = false;
      const Status header = read_bulk_header(input, reason, is_too_large);
      if (header == Status::need_more) return {};
      if (header == Status::bad) return is_too_large ? too_large(std::move(reason)) : bad(std::move(reason));
      expect_ = Expect::bulk_bytes;
    }
    const std::size_t end = at_ + bulk_bytes_;
    if (input.size() < end + 2) return {};
    if (input.substr(end, 2) != "\r\n") return bad("Protocol error: bulk string without CRLF at its end");
    parts_.push_back({at_, bulk_bytes_});
    at_ = end + 2;
    --args_left_;
    expect_ = Expect::bulk_header;
  }
  return done(input, at_);
}

ParsedRequest RequestParser::done(std::string_view base, std::size_t consumed) {
  count_ = parts_.size();
  if (args_.size() < count_) args_.resize(count_);
  for (std::size_t i = 0; i < count_; ++i) args_[i] = base.substr(parts_[i].begin, parts_[i].size);
  restart();
  return {.status = Status::done, .consumed = consumed, .args = {args_.data(), count_}};
}

ParsedRequest RequestParser::bad(std::string reason) {
  restart();
  reason_ = std::move(reason);
  return {.status = Status::bad, .reason = reason_};
}

ParsedRequest RequestParser::too_large(std::string reason) {
  ParsedRequest request = bad(std::move(reason));
  request.is_too_large = true;
  return request;
}

void RequestParser::restart() {
  expect_ = Expect::request;
  at_ = searched_ = args_left_ = bulk_bytes_ = 0;
  parts_.clear();
}

}  // namespace weir::resp
