// The paths that a rule is for: /api/search, /users/*, /users/{id}, /img-*.png, /api/**, /a/**/z.
//
// A segment is a literal, a glob whose stars stand for any characters of that segment, one {name}, or `**` for any
// number of segments, none included. Patterns are brought into the form that paths are brought into, so a rule for
// //Login/ matches; an escape makes a special character plain (%2a is a star that stands for itself). Paths given here
// are those that normal_path() returns, under the same PathCase. An empty path, which is not known, matches nothing.
// Matching never tries again what it has placed: its cost is at most the length of the path times that of the
// pattern. Does not change once made: any thread. Tested by path_pattern_test.cc and path_index_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "policy/path.h"
#include "weir/result.h"

namespace weir {

struct PathSegment {
  enum class Kind : std::uint8_t { literal, glob, any, name, rest };  // any is *, rest is **

  Kind kind = Kind::literal;
  std::vector<std::string> pieces;  // the literal; what stands before, between and after the stars; the name

  // Whether this segment, which is not `**`, stands for one of a path.
  bool accepts(std::string_view segment) const;

  friend bool operator==(const PathSegment&, const PathSegment&) = default;
};

class PathPattern {
 public:
  static constexpr std::size_t kBytesMax = 1024;
  static constexpr std::size_t kSegmentsMax = 64;
  static constexpr std::size_t kRestsMax = 4;  // of `**`, where neighbours count once

  // An error's column is where in `text` it was found.
  static Result<PathPattern> parse(std::string_view text, PathCase letters);

  // Canonical and printable: parse(text()) is this pattern again.
  const std::string& text() const { return text_; }
  const std::vector<PathSegment>& segments() const { return segments_; }
  const std::vector<std::string>& names() const { return names_; }

  // Whether it stands for one path alone.
  bool is_exact() const { return !exact_path_.empty(); }
  const std::string& exact_path() const { return exact_path_; }  // empty if there is no such path

  bool matches(std::string_view normal_path) const;

  // capture()
  //
  // What {name} stands for in a path that matches. Where `**` leaves a choice, each takes as few segments as it can,
  // the first of them first: {x} of /**/a/{x}/** in /a/b/a/c is b.
  std::optional<std::string_view> capture(std::string_view normal_path, std::string_view name) const;

  // covers()
  //
  // Whether every path that `other` matches is matched by this pattern too. True is certain, for two patterns of one
  // PathCase; false may also mean that it is hard to tell.
  bool covers(const PathPattern& other) const;

  // Two patterns of one PathCase are equal if they read the same.
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

}  // namespace weir
