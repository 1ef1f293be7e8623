// Helps error messages about a word: quotes it safely, and finds the nearest known word.
//
// Used for what people type: quotas, algorithms, time zones. Both functions bound their work, because their input is
// untrusted. Pure; any thread. Tested by algorithm/quota_test.cc.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include "base/text.h"

namespace weir::base {

inline std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](char c) { return lower(c); });
  return out;
}

// in_quotes()
//
// Quotes the text. Bytes that are not printable ASCII become \xNN, and it is cut to what a person needs to recognise
// it.
inline std::string in_quotes(std::string_view text, std::size_t bytes_max = 40) {
  std::string out = "'";
  for (const char c : text.substr(0, bytes_max)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7f) {
      out += c;
    } else {
      append_hex(out += "\\x", c);
    }
  }
  return out + (text.size() > bytes_max ? "...'" : "'");
}

// edit_distance()
//
// The number of letters that must be added, dropped, changed or swapped with a neighbour to turn `b` into `a`. Case
// does not count. Words longer than kWordMax are as far apart as possible. Stops early once the distance is at least
// `far`, and then returns some value >= `far`.
inline constexpr std::size_t kWordMax = 64;

inline std::size_t edit_distance(std::string_view a, std::string_view b, std::size_t far = 2 * kWordMax) {
  if (a.size() > kWordMax || b.size() > kWordMax) return std::max(a.size(), b.size());
  while (!a.empty() && !b.empty() && lower(a.front()) == lower(b.front())) a.remove_prefix(1), b.remove_prefix(1);
  while (!a.empty() && !b.empty() && lower(a.back()) == lower(b.back())) a.remove_suffix(1), b.remove_suffix(1);
  std::array<std::array<std::size_t, kWordMax + 1>, 3> rows;  // of a[0..i - 2], a[0..i - 1] and a[0..i]
  for (std::size_t j = 0; j <= b.size(); ++j) rows[0][j] = j;
  std::size_t least_before = 0;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    const auto &twice = rows[(i + 1) % 3], &once = rows[(i - 1) % 3];
    auto& row = rows[i % 3];
    std::size_t least = row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = lower(a[i - 1]) == lower(b[j - 1]) ? 0 : 1;
      row[j] = std::min({once[j] + 1, row[j - 1] + 1, once[j - 1] + change});
      const bool swapped = i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) && lower(a[i - 2]) == lower(b[j - 1]);
      if (swapped) row[j] = std::min(row[j], twice[j - 2] + 1);
      least = std::min(least, row[j]);
    }
    if (least >= far && least_before + 1 >= far) return least;  // each later row depends on the two before it
    least_before = least;
  }
  return rows[a.size() % 3][b.size()];
}

// A lower bound of the distance of two words, which costs almost nothing.
inline std::size_t length_gap(std::string_view a, std::string_view b) {
  return std::max(a.size(), b.size()) - std::min(a.size(), b.size());
}

// The largest distance of a typo from the intended word: a third of its letters. A word of two letters may differ in
// case only: too many other words are as near.
inline std::size_t typo_max(std::string_view word) { return word.size() / 3; }

// nearest()
//
// Returns the first of the known words that is nearest to `word`; empty if none is within typo_max().
template <class Words>
std::string_view nearest(std::string_view word, const Words& known) {
  std::string_view best;
  std::size_t best_distance = typo_max(word) + 1;
  for (const auto& name : known) {
    if (length_gap(word, name) >= best_distance) continue;
    const std::size_t distance = edit_distance(word, name, best_distance);
    if (distance < best_distance) {
      best = name;
      best_distance = distance;
    }
  }
  return best;
}

}  // namespace weir::base
