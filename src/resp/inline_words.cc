// Splits the words of an inline command. See inline_words.h; tested by request_test.cc.
#include "resp/inline_words.h"

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
  switch (c) {
    case 'n':
      return '\n';
    case 'r':
      return '\r';
    case 't':
      return '\t';
    case 'b':
      return '\b';
    case 'a':
      return '\a';
    default:
      return c;
  }
}

// Reads the text after an opening double quote. Returns false if the quote is not closed properly.
bool read_double_quoted(std::string_view line, std::size_t& at, std::string& bytes) {
  while (at < line.size()) {
    const char c = line[at];
    if (c == '"') {
      ++at;
      return at == line.size() || is_space(line[at]);
    }
    if (c == '\\' && at + 3 < line.size() && line[at + 1] == 'x' && hex_digit(line[at + 2]) >= 0 &&
        hex_digit(line[at + 3]) >= 0) {
      bytes.push_back(static_cast<char>(hex_digit(line[at + 2]) * 16 + hex_digit(line[at + 3])));
      at += 4;
    } else if (c == '\\' && at + 1 < line.size()) {
      bytes.push_back(escaped(line[at + 1]));
      at += 2;
    } else {
      bytes.push_back(c);
      ++at;
    }
  }
  return false;
}

bool read_single_quoted(std::string_view line, std::size_t& at, std::string& bytes) {
  while (at < line.size()) {
    const char c = line[at];
    if (c == '\'') {
      ++at;
      return at == line.size() || is_space(line[at]);
    }
    if (c == '\\' && at + 1 < line.size() && line[at + 1] == '\'') {
      bytes.push_back('\'');
      at += 2;
    } else {
      bytes.push_back(c);
      ++at;
    }
  }
  return false;
}

}  // namespace

SplitError split_inline(std::string_view line, std::size_t words_max, std::string& bytes,
                        std::vector<std::size_t>& ends) {
  std::size_t at = 0;
  while (true) {
    while (at < line.size() && is_space(line[at])) ++at;
    if (at == line.size()) return SplitError::none;
    if (ends.size() == words_max) return SplitError::too_many_words;
    while (at < line.size() && !is_space(line[at])) {
      const char c = line[at++];
      if (c == '"') {
        if (!read_double_quoted(line, at, bytes)) return SplitError::unbalanced_quotes;
      } else if (c == '\'') {
        if (!read_single_quoted(line, at, bytes)) return SplitError::unbalanced_quotes;
      } else {
        bytes.push_back(c);
      }
    }
    ends.push_back(bytes.size());
  }
}

}  // namespace weir::resp
