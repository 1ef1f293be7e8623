// The path patterns of rules: /api/search, /users/*, /users/{id}, /img-*.png, /api/**, /a/**/z.
//
// A segment is a literal, a glob whose stars match any characters of that segment, one {name}, or `**`. A `**`
// matches any number of segments, including none. Patterns are normalized like paths, so a rule for //Login/ matches.
// An escape makes a special character literal: %2a is a plain star. Paths must come from normal_path() with the same
// PathCase. An empty path is unknown and matches nothing. Matching never moves what it has placed, so it
// costs at most the length of the path times that of the pattern. Immutable; any thread may call it. Tested by
// path_pattern_test.cc and path_index_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "policy/path.h"
#include "weir/result.h"

namespace weir::policy {

// Whether a glob matches the whole text: `pieces`, at least two, are the texts before, between and after its stars.
bool accepts_glob(std::span<const std::string> pieces, std::string_view text);

struct PathSegment {
  enum class Kind : std::uint8_t { literal, glob, any, name, rest };  // any is *, rest is **

  Kind kind = Kind::literal;
  std::vector<std::string> pieces;  // the literal; the texts before, between and after the stars; or the name

  // Whether this segment matches one segment of a path.
  bool accepts(std::string_view segment) const;

  friend bool operator==(const PathSegment&, const PathSegment&) = default;
};

class PathPattern {
 public:
  static constexpr std::size_t kBytesMax = 1024;
  static constexpr std::size_t kSegmentsMax = 64;
  static constexpr std::size_t kRestsMax = 4;  // number of `**`, where adjacent ones count once

  // The column of an error is the position in `text`.
  static Result<PathPattern> parse(std::string_view text, PathCase letters);

  // Canonical and printable: parse(text()) gives this pattern again.
  const std::string& text() const { return text_; }
  const std::vector<PathSegment>& segments() const { return segments_; }
  const std::vector<std::string>& names() const { return names_; }

  // Whether the pattern matches exactly one path.
  bool is_exact() const { return !exact_path_.empty(); }
  const std::string& exact_path() const { return exact_path_; }  // empty unless is_exact()

  bool matches(std::string_view normal_path) const;

  // capture()
  //
  // Returns what {name} matches in a path that matches. Where `**` leaves a choice, each `**` takes as few segments
  // as it can, from left to right: {x} of /**/a/{x}/** in /a/b/a/c is b.
  std::optional<std::string_view> capture(std::string_view normal_path, std::string_view name) const;

  // covers()
  //
  // Whether this pattern matches every path that `other` matches. Both must have the same PathCase. True is certain;
  // false may also mean that the answer is hard to compute.
  bool covers(const PathPattern& other) const;

  // Patterns of the same PathCase are equal if their texts are equal.
  friend bool operator==(const PathPattern& a, const PathPattern& b) { return a.text_ == b.text_; }

 private:
  class Parser;

  PathPattern() = default;
  bool match(std::string_view path, std::string_view* found) const;

  std::string text_;
  std::string exact_path_;
  std::vector<PathSegment> segments_;
  std::vector<std::string> names_;
};

}  // namespace weir::policy
