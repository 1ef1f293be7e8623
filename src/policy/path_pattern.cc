// Parses and matches patterns. Matching places the segments between two `**` as far to the left as they fit.
//
// The leftmost place is enough: it leaves the most segments for the rest, and segments do not depend on each other.
// The same is true of the pieces of a glob. So nothing that was placed is ever moved.
#include "policy/path_pattern.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/nearest.h"
#include "base/text.h"

namespace weir::policy {
namespace {

using Kind = PathSegment::Kind;

constexpr std::string_view kExample = "/api/login";

// Whether a pattern of `size` parts matches all of the `others` parts. Stars match any number of parts.
template <class IsStar, class Accepts>
bool stands_for(std::size_t size, std::size_t others, IsStar&& is_star, Accepts&& accepts) {
  constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  std::size_t i = 0, j = 0, star = kNone, taken = 0;
  while (j < others) {
    if (i < size && is_star(i)) {
      star = i++;
      taken = j;
    } else if (i < size && accepts(i, j)) {
      ++i;
      ++j;
    } else if (star != kNone) {  // the last star takes one more
      i = star + 1;
      j = ++taken;
    } else {
      return false;
    }
  }
  while (i < size && is_star(i)) ++i;
  return i == size;
}

// Parts of a segment: bytes, and kStar for a star.
constexpr int kStar = 256;

std::vector<int> parts_of(const PathSegment& segment) {
  if (segment.kind == Kind::any || segment.kind == Kind::name) return {kStar};
  std::vector<int> parts;
  for (std::size_t i = 0; i < segment.pieces.size(); ++i) {
    if (i > 0) parts.push_back(kStar);
    for (const char c : segment.pieces[i]) parts.push_back(static_cast<unsigned char>(c));
  }
  return parts;
}

bool covers_segment(const PathSegment& segment, const PathSegment& other) {
  if (segment.kind == Kind::rest || other.kind == Kind::rest) return false;  // these match any number of segments
  if (segment.kind == Kind::any || segment.kind == Kind::name) return true;
  if (segment.kind == Kind::literal || other.kind == Kind::literal) {
    return other.kind == Kind::literal && segment.accepts(other.pieces.front());
  }
  const std::vector<int> parts = parts_of(segment), others = parts_of(other);
  return stands_for(
      parts.size(), others.size(), [&](std::size_t i) { return parts[i] == kStar; },
      [&](std::size_t i, std::size_t j) { return parts[i] == others[j]; });
}

// Returns the segments with `**` on both sides of each star that is next to one: /*/** and /**/*/** match the same
// paths, but with the latter a single pass finds more.
std::vector<const PathSegment*> spread_rests(const std::vector<PathSegment>& segments) {
  const auto is_star = [](const PathSegment& segment) {
    return segment.kind == Kind::any || segment.kind == Kind::name;
  };
  std::vector<const PathSegment*> spread;
  for (std::size_t i = 0; i < segments.size();) {
    const PathSegment* rest = nullptr;
    const std::size_t begin = i;
    for (; i < segments.size() && (segments[i].kind == Kind::rest || is_star(segments[i])); ++i) {
      if (segments[i].kind == Kind::rest) rest = &segments[i];
    }
    if (rest != nullptr) spread.push_back(rest);
    for (std::size_t k = begin; k < i; ++k) {
      if (is_star(segments[k])) spread.push_back(&segments[k]);
      if (is_star(segments[k]) && rest != nullptr) spread.push_back(rest);
    }
    if (i < segments.size()) spread.push_back(&segments[i++]);
  }
  return spread;
}

bool is_name(std::string_view text) {
  const auto is_first = [](char c) { return (c >= 'a' && c <= 'z') || c == '_'; };
  const auto is_later = [&](char c) { return is_first(c) || (c >= '0' && c <= '9'); };
  return !text.empty() && is_first(text.front()) && std::ranges::all_of(text, is_later);
}

std::string name_near(std::string_view text) {
  std::string name = base::lower(text.substr(0, base::kWordMax));
  for (char& c : name) {
    if (!is_name(std::string{'_', c})) c = '_';
  }
  if (!name.empty() && !is_name(name)) name.insert(name.begin(), '_');
  return name.empty() ? "id" : name;
}

// Escapes literal text as a pattern spells it.
std::string percent_escaped(std::string_view text) {
  constexpr std::string_view kSpecial = "%*{}?#;/\\";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte > 0x20 && byte < 0x7f && kSpecial.find(c) == kSpecial.npos) {
      out += c;
    } else {
      base::append_hex(out += '%', c);
    }
  }
  return out;
}

std::string spelled(const PathSegment& segment) {
  if (segment.kind == Kind::any) return "*";
  if (segment.kind == Kind::rest) return "**";
  if (segment.kind == Kind::name) return "{" + segment.pieces.front() + "}";
  std::string out;
  for (std::size_t i = 0; i < segment.pieces.size(); ++i) {
    if (i > 0) out += '*';
    out += percent_escaped(segment.pieces[i]);
  }
  return out;
}

std::string quoted(std::string_view text) { return base::in_quotes(text, 80); }

std::string quoted_name(std::string_view text) { return quoted(std::string("/{").append(name_near(text)).append("}")); }

}  // namespace

bool accepts_glob(std::span<const std::string> pieces, std::string_view text) {
  const std::string &first = pieces.front(), &last = pieces.back();
  if (text.size() < first.size() + last.size()) return false;
  if (!text.starts_with(first) || !text.ends_with(last)) return false;
  text = text.substr(first.size(), text.size() - first.size() - last.size());
  for (const std::string& piece : pieces.subspan(1, pieces.size() - 2)) {
    const std::size_t at = text.find(piece);
    if (at == text.npos) return false;
    text.remove_prefix(at + piece.size());
  }
  return true;
}

// Parses a pattern byte by byte, as normal_path() reads a target, and remembers the position of each byte.
class PathPattern::Parser {
 public:
  Parser(std::string_view text, PathCase letters) : text_(text), letters_(letters) {}

  Result<PathPattern> parse() {
    if (auto wrong = read()) return fail(std::move(*wrong));
    bool is_exact = true;
    for (const PathSegment& segment : pattern_.segments_) {
      pattern_.text_ += '/';
      pattern_.text_ += spelled(segment);
      is_exact = is_exact && segment.kind == Kind::literal;
    }
    if (pattern_.text_.empty()) pattern_.text_ += '/';
    if (pattern_.text_.size() > kBytesMax) {
      return fail(
          ErrorCode::out_of_range,
          "a path pattern of " + std::to_string(pattern_.text_.size()) +
              " bytes, with bytes beyond ASCII written as %xx, is too long: at most 1024; write '**' for a part",
          1);
    }
    if (is_exact) {
      for (const PathSegment& segment : pattern_.segments_) pattern_.exact_path_ += "/" + segment.pieces.front();
      if (pattern_.segments_.empty()) pattern_.exact_path_ += '/';
    }
    return std::move(pattern_);
  }

 private:
  struct Byte {
    char value;
    bool is_special;  // a star or a brace that was not escaped
    std::size_t at;
  };
  using Bytes = std::span<const Byte>;
  using Outcome = std::optional<Error>;

  Outcome read() {
    if (text_.empty()) return error(0, "an empty path pattern: write '/' for the root, '/**' for every path");
    if (text_.size() > kBytesMax) {
      return error(kBytesMax,
                   "a path pattern of " + std::to_string(text_.size()) +
                       " bytes is too long: at most 1024; write '**' for a part",
                   ErrorCode::out_of_range);
    }
    if (text_.front() != '/' && text_.front() != '\\') {
      return error(0, "a path pattern begins with '/', not " + base::in_quotes(text_) + ": write " + whole_form());
    }
    std::vector<Byte> bytes;
    for (std::size_t i = 0; i < text_.size(); ++i) {
      Byte byte{text_[i], std::string_view("*{}").find(text_[i]) != std::string_view::npos, i};
      if (byte.value == '?' || byte.value == '#') {
        const std::string what = byte.value == '?' ? "a query is matched by `query`" : "a fragment is never sent";
        return error(i,
                     base::in_quotes(text_.substr(i, 1)) + " in a path pattern: " + what + "; write " + whole_form());
      }
      if (const auto decoded = byte.value == '%' ? escaped_byte(text_, i) : std::nullopt) {
        byte.value = *decoded;
        i += 2;
      }
      if (byte.value == ';') {
        return error(byte.at,
                     "';' in a path pattern: Weir removes ;parameters before it matches; write " + whole_form());
      }
      if (byte.value == '/' || byte.value == '\\') {
        if (auto wrong = add_segment(bytes)) return wrong;
        bytes.clear();
      } else {
        bytes.push_back(byte);
      }
    }
    return add_segment(bytes);
  }

  Outcome add_segment(Bytes bytes) {
    if (bytes.empty()) return {};
    const auto is_brace = [](const Byte& byte) { return byte.is_special && byte.value != '*'; };
    if (std::ranges::any_of(bytes, is_brace)) return add_name(bytes);
    if (std::ranges::any_of(bytes, &Byte::is_special)) return add_glob(bytes);
    std::string text = plain(bytes);
    if (text == "." || text == "..") {
      return error(bytes.front().at, "a segment " + base::in_quotes(text) +
                                         " in a path pattern: Weir resolves it before it matches; write " +
                                         whole_form());
    }
    if (letters_ == PathCase::folded) text = base::lower(text);
    return add(Kind::literal, {std::move(text)}, bytes.front().at);
  }

  Outcome add_glob(Bytes bytes) {
    const auto is_star = [](const Byte& byte) { return byte.is_special; };
    const std::size_t at = bytes.front().at;
    if (bytes.size() == 1) return add(Kind::any, {}, at);
    if (bytes.size() == 2 && std::ranges::all_of(bytes, is_star)) {
      const auto& segments = pattern_.segments_;
      if (!segments.empty() && segments.back().kind == Kind::rest) return {};  // adjacent `**` are the same as one
      if (++rests_ > kRestsMax) {
        return error(at, "more than 4 '**' in a path pattern: write '*' where one segment is meant",
                     ErrorCode::out_of_range);
      }
      return add(Kind::rest, {}, at);
    }
    std::vector<std::string> pieces(1);
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      if (!is_star(bytes[i])) {
        pieces.back() += letters_ == PathCase::folded ? base::lower(bytes[i].value) : bytes[i].value;
      } else if (i > 0 && is_star(bytes[i - 1])) {
        std::string one = "/";  // the glob with each run of stars replaced by one
        for (std::size_t k = 0; k < bytes.size(); ++k) {
          if (!is_star(bytes[k])) one += percent_escaped(std::string(1, bytes[k].value));
          if (is_star(bytes[k]) && (k == 0 || !is_star(bytes[k - 1]))) one += '*';
        }
        return error(bytes[i - 1].at,
                     "'**' stands for whole segments: write " + quoted(one) + " within one, or '/**' for more");
      } else {
        pieces.emplace_back();
      }
    }
    return add(Kind::glob, std::move(pieces), at);
  }

  Outcome add_name(Bytes bytes) {
    const auto is_open = [](const Byte& byte) { return byte.is_special && byte.value == '{'; };
    const auto is_close = [](const Byte& byte) { return byte.is_special && byte.value == '}'; };
    const auto open = std::ranges::find_if(bytes, is_open), close = std::ranges::find_if(open, bytes.end(), is_close);
    const auto alone = std::ranges::find_if(bytes.begin(), open, is_close);
    if (alone != open) return error(alone->at, "'}' without '{': write '/{id}' for a name, '%7d' for the character");
    const std::string name = plain({open + 1, close});
    if (close == bytes.end()) {
      return error(open->at, "'{' without '}': write " + quoted_name(name) + " for a name, '%7b' for the character");
    }
    const std::string before = plain({bytes.begin(), open}), after = plain({close + 1, bytes.end()});
    if (!before.empty() || !after.empty()) {
      return error(
          before.empty() ? (close + 1)->at : open->at,
          "a name stands for a whole segment, not for a part of " + base::in_quotes(plain(bytes)) + ": write " +
              quoted_name(name) + ", or " +
              quoted(std::string("/").append(percent_escaped(before)).append("*").append(percent_escaped(after))));
    }
    if (name.empty()) return error(open->at, "'{}' has no name: write '/{id}', or '/*' where none is needed");
    if (!is_name(name)) {
      return error(open[1].at, base::in_quotes(name) + " is not a name (a-z, 0-9 and _, not a digit first): write " +
                                   quoted_name(name));
    }
    if (std::ranges::find(pattern_.names_, name) != pattern_.names_.end()) {
      return error(open[1].at,
                   "a second " + quoted("{" + name + "}") + " in one path pattern: write " + quoted_name(name + "_2"));
    }
    pattern_.names_.push_back(name);
    return add(Kind::name, {name}, open->at);
  }

  Outcome add(Kind kind, std::vector<std::string> pieces, std::size_t at) {
    if (pattern_.segments_.size() == kSegmentsMax) {
      return error(at, "more than 64 segments in a path pattern: end it before this one with '/**'",
                   ErrorCode::out_of_range);
    }
    pattern_.segments_.push_back({kind, std::move(pieces)});
    return {};
  }

  static std::string plain(Bytes bytes) {
    std::string text;
    for (const Byte& byte : bytes) text += byte.value;
    return text;
  }

  // For an error message: the text normalized like the path of a request, if that is a valid pattern; else an example.
  std::string whole_form() const {
    std::string scratch;
    if (text_.find('%') != text_.npos) return quoted(kExample);  // escapes may decode to bytes that cannot be printed
    const auto form = PathPattern::parse(normal_path(text_, letters_, scratch), letters_);
    return quoted(form && form->text().size() <= 80 ? form->text() : kExample);
  }

  static Outcome error(std::size_t at, std::string message, ErrorCode code = ErrorCode::invalid_argument) {
    return Error{code, std::move(message), static_cast<std::int32_t>(at + 1)};
  }

  std::string_view text_;
  PathCase letters_;
  std::size_t rests_ = 0;
  PathPattern pattern_;
};

Result<PathPattern> PathPattern::parse(std::string_view text, PathCase letters) {
  return Parser(text, letters).parse();
}

bool PathSegment::accepts(std::string_view segment) const {
  WEIR_ASSERT(kind != Kind::rest);
  switch (kind) {
    case Kind::literal:
      return segment == pieces.front();
    case Kind::glob:
      return accepts_glob(pieces, segment);
    case Kind::any:
    case Kind::name:
      return true;
    case Kind::rest:
      break;
  }
  return false;
}

// match()
//
// Segments before the first `**` match the start of the path, those after the last match its end. Each run between
// two `**` goes to the first place where it fits. Stores the text of each segment in `found`, unless that is null.
bool PathPattern::match(std::string_view path, std::string_view* found) const {
  if (path == "/") path = {};
  const auto place = [&](std::size_t i, std::string_view segment) {
    if (found != nullptr) found[i] = segment;
    return segments_[i].accepts(segment);
  };
  const auto is_rest = [](const PathSegment& segment) { return segment.kind == Kind::rest; };
  std::size_t begin = 0, end = segments_.size();
  for (; begin < end && !is_rest(segments_[begin]); ++begin) {
    if (path.empty() || !place(begin, take_first_segment(path))) return false;
  }
  if (begin == end) return path.empty();
  for (; !is_rest(segments_[end - 1]); --end) {
    if (path.empty() || !place(end - 1, take_last_segment(path))) return false;
  }
  while (++begin < end) {  // from one `**` to the next
    std::string_view rest = path;
    std::size_t i = begin;
    while (!is_rest(segments_[i])) {
      if (rest.empty()) return false;  // a later start leaves even fewer segments
      if (place(i, take_first_segment(rest))) {
        ++i;
      } else {
        take_first_segment(path);
        rest = path;
        i = begin;
      }
    }
    path = rest;
    begin = i;
  }
  return true;
}

bool PathPattern::matches(std::string_view normal_path) const {
  if (normal_path.empty() || normal_path.front() != '/') return false;
  return is_exact() ? normal_path == exact_path_ : match(normal_path, nullptr);
}

std::optional<std::string_view> PathPattern::capture(std::string_view normal_path, std::string_view name) const {
  std::array<std::string_view, kSegmentsMax> found;
  if (normal_path.empty() || normal_path.front() != '/') return std::nullopt;
  for (std::size_t i = 0; i < segments_.size(); ++i) {
    if (segments_[i].kind != Kind::name || segments_[i].pieces.front() != name) continue;
    return match(normal_path, found.data()) ? std::optional(found[i]) : std::nullopt;
  }
  return std::nullopt;
}

bool PathPattern::covers(const PathPattern& other) const {
  const auto segments = spread_rests(segments_);
  return stands_for(
      segments.size(), other.segments_.size(), [&](std::size_t i) { return segments[i]->kind == Kind::rest; },
      [&](std::size_t i, std::size_t j) { return covers_segment(*segments[i], other.segments_[j]); });
}

}  // namespace weir::policy
