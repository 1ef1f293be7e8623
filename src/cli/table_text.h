// Formats text for people: rows as aligned columns.
//
// Characters that a terminal would act upon are shown as `?`, whatever their source. One thread. Tested by
// table_text_test.cc and tests/server/commands.sh.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"
#include "base/utf8.h"
#include "protocol/json_reader.h"

namespace weir::cli {

// Replaces invisible control characters (is_unseen()) and invalid UTF-8, whose bytes a terminal may take for 8-bit
// controls.
inline std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = base::utf8_length(text);
    const std::string_view character = text.substr(0, std::max<std::size_t>(1, length));
    out += length == 0 || base::is_unseen(base::utf8_code(character)) ? std::string_view("?") : character;
    text.remove_prefix(character.size());
  }
  return out;
}

// The same for a text of several lines. `indent` is written before each line but the first.
inline std::string printable_lines(std::string_view text, std::string_view indent = {}) {
  std::string out;
  for (std::size_t end = 0; (end = text.find('\n')) != text.npos; text.remove_prefix(end + 1)) {
    out.append(printable(text.substr(0, end))).append("\n").append(indent);
  }
  return out + printable(text);
}

// The width in a terminal, assuming one column per character.
inline std::size_t columns(std::string_view text) {
  std::size_t count = 0;
  for (const char c : text) count += (static_cast<unsigned char>(c) & 0xc0) != 0x80 ? 1 : 0;
  return count;
}

// One decimal place: 12.3.
inline std::string tenths(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", value);
  return text;
}

// A time for people: `2026-11-19T20:03:28.517Z` becomes `2026-11-19 20:03:28 UTC`. Any other text is returned as it is.
inline std::string utc_text(std::string_view time) {
  constexpr std::size_t kDate = 10, kSeconds = 19;
  if (time.size() <= kSeconds || time[kDate] != 'T' || time.back() != 'Z') return std::string(time);
  std::string out(time.substr(0, kSeconds));
  out[kDate] = ' ';
  return out + " UTC";
}

// The texts of a JSON array: `10/second, 100/minute`.
inline std::string joined(const protocol::JsonValue& list) {
  std::string out;
  for (const protocol::JsonValue& one : list.items) out.append(out.empty() ? "" : ", ").append(one.text);
  return out;
}

class TableText {
 public:
  // A heading that begins with `>` is for numbers, which are right-aligned.
  explicit TableText(std::vector<std::string> heads) : rows_{std::move(heads)} {
    for (std::string& head : rows_[0]) {
      is_number_.push_back(head.starts_with('>'));
      if (is_number_.back()) head.erase(0, 1);
    }
  }

  void add(std::vector<std::string> row) {
    row.resize(rows_[0].size());
    for (std::string& cell : row) cell = printable(cell);
    rows_.push_back(std::move(row));
  }
  std::size_t rows() const { return rows_.size() - 1; }

  std::string text() const {
    std::vector<std::size_t> widths(rows_[0].size(), 0);
    for (const auto& row : rows_) {
      for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], columns(row[i]));
    }
    std::string out;
    for (const auto& row : rows_) {
      std::string line;
      for (std::size_t i = 0; i < row.size(); ++i) {
        const std::string gap(widths[i] - columns(row[i]), ' ');
        line += (i > 0 ? "  " : "") + (is_number_[i] ? gap + row[i] : row[i] + gap);
      }
      out += line.erase(line.find_last_not_of(' ') + 1) + "\n";
    }
    return out;
  }

 private:
  std::vector<std::vector<std::string>> rows_;
  std::vector<bool> is_number_;
};

}  // namespace weir::cli
