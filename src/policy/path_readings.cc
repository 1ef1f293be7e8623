// A search: starts from the path as sent, and applies every step that can change it, until no new paths appear. See
// path_readings.h.
#include "policy/path_readings.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <utility>

#include "base/nearest.h"
#include "base/text.h"

namespace weir::policy {
namespace {

// Bounds on the bytes that steps read and on distinct paths. Together they cost a fraction of a millisecond.
constexpr std::size_t kWorkMax = 65'536;
constexpr std::size_t kPathsMax = 32;

// A byte of a path, decoded.
struct PathByte {
  char value = 0;
  bool is_escaped = false;
  std::size_t length = 1;  // of its encoded form

  bool is(char c) const { return value == c; }
  bool is_plain(char c) const { return value == c && !is_escaped; }
  bool is_slash() const { return value == '/' || value == '\\'; }
};

PathByte byte_at(std::string_view text, std::size_t at) {
  if (text[at] != '%') return {text[at], false, 1};
  if (const auto escaped = escaped_byte(text, at)) return {*escaped, true, 3};
  return {text[at], false, 1};
}

// Returns the ASCII byte that an overlong UTF-8 sequence encodes, or else the byte itself.
PathByte overlong_byte_at(std::string_view text, std::size_t at) {
  const PathByte first = byte_at(text, at);
  const auto lead = static_cast<unsigned char>(first.value);
  if (lead < 0xC0) return first;
  const int bytes = std::countl_one(lead);
  if (bytes < 2 || bytes > 6) return first;
  std::uint64_t value = lead & (0x7FU >> bytes);
  std::size_t end = at + first.length;
  for (int i = 1; i < bytes; ++i) {
    if (end >= text.size()) return first;
    const PathByte next = byte_at(text, end);
    if ((static_cast<unsigned char>(next.value) & 0xC0) != 0x80) return first;
    value = value << 6 | (static_cast<unsigned char>(next.value) & 0x3F);
    end += next.length;
  }
  if (value >= 0x80) return first;
  return {static_cast<char>(value), true, end - at};
}

// What a gateway or a server may do to a path. A step for escaped bytes also affects plain ones: a server that
// decodes %5c before it looks for backslashes finds both.
enum PathStep : std::uint32_t {
  kCutHash = 1 << 0,               // '#' begins a fragment, as in nginx; otherwise a byte of the path, as in Go
  kDropHost = 1 << 1,              // //x/y is the path /y on host x, as in the URL of Node and browsers
  kTurnBackslash = 1 << 2,         // '\' is a slash, as in Envoy and browsers; otherwise a byte, as in nginx
  kTurnEscapedBackslash = 1 << 3,  // the same for %5c
  kCutParameters = 1 << 4,         // ';' begins segment parameters, as in Java; otherwise a byte, as in nginx
  kCutEscapedParameters = 1 << 5,  // the same for %3b
  kTurnEscapedSlash = 1 << 6,      // %2f is a slash, as in nginx; otherwise part of its segment, as in Node's URL
  kCutNul = 1 << 7,                // %00 ends the path, as in a C string
  kDecodeOverlong = 1 << 8,        // %c0%af is %2f, as in decoders that accept overlong UTF-8
  kMergeSlashes = 1 << 9,          // as in nginx and Go; otherwise '..' removes an empty segment, as in RFC 3986
  kDropDot = 1 << 10,              // '.' is resolved; otherwise an ordinary name, as in Express and WSGI
  kDropEscapedDot = 1 << 11,       // the same for %2e
  kFollowDots = 1 << 12,           // '..' is resolved; HAProxy can do so and leave '.'
  kFollowEscapedDots = 1 << 13,    // the same for %2e%2e
  // A gateway that forwards what it decoded, as nginx does by `proxy_pass http://app$uri`:
  kCutEscapedHash = 1 << 14,    // %23 becomes '#'
  kCutEscapedMark = 1 << 15,    // %3f becomes '?', where the query begins
  kDecodePercent = 1 << 16,     // %252f becomes %2f; Apache does this too
  kDecodeUnreserved = 1 << 17,  // %%32f becomes %2f, as in HAProxy's percent-decode-unreserved
  // Python's:
  kCutLastParameters = 1 << 18,         // ';' begins parameters in the last segment only, as in urlparse()
  kCutLastEscapedParameters = 1 << 19,  // the same for %3b
  kDropBlanks = 1 << 20,                // trailing blanks are removed, as in http.server; Node removes spaces
  kDropEscapedBlanks = 1 << 21,         // the same for %20
};

constexpr bool is_for_escaped_parameters(PathStep step) {
  return step == kCutEscapedParameters || step == kCutLastEscapedParameters;
}
constexpr bool is_for_last_parameters(PathStep step) {
  return step == kCutLastParameters || step == kCutLastEscapedParameters;
}

// A path between two steps. It is encoded as sent, begins with a slash, and ends with a slash only if it is the root.
struct Path {
  std::string text;
  std::string_view query;
  friend bool operator==(const Path&, const Path&) = default;
};

// Removes the first segment and the slash after it from `rest`, and returns the segment.
std::string_view take_segment(std::string_view& rest) {
  const std::string_view segment = rest.substr(0, rest.find('/'));
  rest.remove_prefix(std::min(segment.size() + 1, rest.size()));
  return segment;
}

// Returns the number of dots if a segment is only dots, else 0. Sets `is_escaped` if any of them is escaped.
std::size_t dots_in(std::string_view segment, bool& is_escaped) {
  std::size_t dots = 0;
  is_escaped = false;
  for (std::size_t i = 0; i < segment.size(); ++dots) {
    const PathByte byte = byte_at(segment, i);
    if (!byte.is('.') || dots == 2) return 0;
    is_escaped = is_escaped || byte.is_escaped;
    i += byte.length;
  }
  return dots;
}

// Whether a segment is exactly `dots` dots, for a step that does or does not see escaped ones.
bool is_dots(std::string_view segment, std::size_t dots, bool sees_escaped) {
  bool is_escaped = false;
  return dots_in(segment, is_escaped) == dots && (sees_escaped || !is_escaped);
}

bool is_unreserved(char c) {
  return (c >= '0' && c <= '9') || (base::lower(c) >= 'a' && base::lower(c) <= 'z') || c == '-' || c == '.' ||
         c == '_' || c == '~';
}

// The bytes that separate words of a request line in Python, which decodes it as ISO 8859-1.
bool ends_target(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return (byte >= 0x09 && byte <= 0x0D) || (byte >= 0x1C && byte <= 0x20) || byte == 0x85 || byte == 0xA0;
}

// Whether a doubly escaped byte begins here: %252f.
bool is_nested_escape(std::string_view text, std::size_t at) {
  const auto is_digit = [&](std::size_t i) {
    return i < text.size() &&
           ((text[i] >= '0' && text[i] <= '9') || (base::lower(text[i]) >= 'a' && base::lower(text[i]) <= 'f'));
  };
  return escaped_byte(text, at) == '%' && is_digit(at + 3) && is_digit(at + 4);
}

// Returns the steps that may change a path. A step that turns out to change nothing only costs time.
unsigned steps_of(std::string_view text, std::string_view query) {
  unsigned steps = query.find('#') != query.npos ? unsigned{kCutHash} : 0;
  if (text.starts_with("//")) steps |= kDropHost;
  bool is_at_start = false, may_have_dots = false, has_percent = false, has_unreserved = false;
  unsigned blank_step = 0;
  for (std::size_t i = 0; i < text.size();) {
    const PathByte byte = overlong_byte_at(text, i);
    if (byte.length > 1 && byte.length != byte_at(text, i).length) steps |= kDecodeOverlong;
    if (byte.is('#')) steps |= byte.is_escaped ? kCutEscapedHash : kCutHash;
    if (byte.is('?')) steps |= kCutEscapedMark;
    if (byte.is('%') && is_nested_escape(text, i)) steps |= kDecodePercent;
    has_percent = has_percent || byte.is('%');
    has_unreserved = has_unreserved || (byte.is_escaped && is_unreserved(byte.value));
    if (byte.is('\\')) steps |= byte.is_escaped ? kTurnEscapedBackslash : kTurnBackslash;
    if (byte.is(';')) {
      steps |=
          byte.is_escaped ? kCutEscapedParameters | kCutLastEscapedParameters : kCutParameters | kCutLastParameters;
    }
    if (byte.is('/') && byte.is_escaped) steps |= kTurnEscapedSlash;
    if (byte.is('\0')) steps |= kCutNul;
    may_have_dots = may_have_dots || (is_at_start && byte.is('.'));
    is_at_start = byte.is_slash();
    blank_step = !ends_target(byte.value) ? 0U : byte.is_escaped ? kDropEscapedBlanks : kDropBlanks;
    i += byte.length;
  }
  steps |= blank_step;
  if (has_percent && has_unreserved) steps |= kDecodeUnreserved;
  if (!may_have_dots) return steps;
  if (text.find("//") != text.npos) steps |= kMergeSlashes;  // which matters only to segments that dots remove
  for (std::string_view rest = text.substr(1); !rest.empty();) {
    bool is_escaped = false;
    const std::size_t dots = dots_in(take_segment(rest), is_escaped);
    if (dots == 1) steps |= is_escaped ? kDropEscapedDot : kDropDot;
    if (dots == 2) steps |= is_escaped ? kFollowEscapedDots : kFollowDots;
  }
  return steps;
}

std::string without_host(std::string_view path) {
  const std::size_t end = path.find('/', std::min(path.find_first_not_of('/'), path.size()));
  return std::string(path.substr(std::min(end, path.size())));
}

// Copies a path byte by byte. `copy(byte, out)` may append a replacement to `out`, and returns what to do with the
// byte.
enum class Copied : std::uint8_t { as_it_is, done, enough };
template <class Copy>
std::string copied(std::string_view path, Copy&& copy) {
  std::string out;
  out.reserve(path.size());
  for (std::size_t i = 0; i < path.size();) {
    const PathByte byte = byte_at(path, i);
    const Copied how = copy(byte, out);
    if (how == Copied::enough) break;
    if (how == Copied::as_it_is) out.append(path, i, byte.length);
    i += byte.length;
  }
  return out;
}

std::string with_slashes(std::string_view path, PathStep step) {
  return copied(path, [step](const PathByte& byte, std::string& out) {
    const bool is_turned =
        step == kTurnEscapedSlash ? byte.is('/') : byte.is('\\') && (!byte.is_escaped || step == kTurnEscapedBackslash);
    if (is_turned) out += '/';
    return is_turned ? Copied::done : Copied::as_it_is;
  });
}

std::string without_parameters(std::string_view path, PathStep step) {
  const std::size_t begin = is_for_last_parameters(step) ? path.rfind('/') : 0;
  const std::string rest =
      copied(path.substr(begin), [step, is_inside = false](const PathByte& byte, std::string&) mutable {
        if (byte.is_plain('/')) is_inside = false;
        if (byte.is(';') && (!byte.is_escaped || is_for_escaped_parameters(step))) is_inside = true;
        return is_inside ? Copied::done : Copied::as_it_is;
      });
  return std::string(path.substr(0, begin)) + rest;
}

// A blank byte within a UTF-8 character is not a blank: the last byte of an `a` with a grave accent is 0xA0.
std::string without_blanks(std::string_view path, PathStep step) {
  std::size_t end = 0;
  int more = 0;  // remaining bytes of the character
  for (std::size_t i = 0; i < path.size();) {
    const PathByte byte = byte_at(path, i);
    const auto value = static_cast<unsigned char>(byte.value);
    i += byte.length;
    const bool is_inside = more > 0 && (value & 0xC0) == 0x80;
    more = is_inside ? more - 1 : value >= 0xC0 ? std::countl_one(value) - 1 : 0;
    const bool is_dropped = !is_inside && ends_target(byte.value) && (!byte.is_escaped || step == kDropEscapedBlanks);
    if (!is_dropped) end = i;
  }
  return std::string(path.substr(0, end));
}

// Returns the path up to a byte, plain or escaped.
std::string until(std::string_view path, char end) {
  return copied(path,
                [end](const PathByte& byte, std::string&) { return byte.is(end) ? Copied::enough : Copied::as_it_is; });
}

std::string with_merged_slashes(std::string_view path) {
  return copied(path, [](const PathByte& byte, std::string& out) {
    return byte.is_plain('/') && out.ends_with('/') ? Copied::done : Copied::as_it_is;
  });
}

std::string with_plain_unreserved(std::string_view path) {
  return copied(path, [](const PathByte& byte, std::string& out) {
    const bool is_decoded = byte.is_escaped && is_unreserved(byte.value);
    if (is_decoded) out += byte.value;
    return is_decoded ? Copied::done : Copied::as_it_is;
  });
}

std::string without_nested_escapes(std::string_view path) {
  std::string out;
  for (std::size_t i = 0; i < path.size(); ++i) {
    out += path[i];
    if (path[i] == '%' && is_nested_escape(path, i)) i += 2;
  }
  return out;
}

std::string without_overlong(std::string_view path) {
  std::string out;
  for (std::size_t i = 0; i < path.size();) {
    const PathByte byte = overlong_byte_at(path, i);
    if (byte.length == byte_at(path, i).length) {
      out += path.substr(i, byte.length);
    } else {
      base::append_hex(out += '%', byte.value);
    }
    i += byte.length;
  }
  return out;
}

// Removes segments '.', or '..' together with the segment before it. Never goes above the root.
std::string without_dots(std::string_view path, PathStep step) {
  const std::size_t dots = step == kDropDot || step == kDropEscapedDot ? 1 : 2;
  const bool sees_escaped = step == kDropEscapedDot || step == kFollowEscapedDots;
  std::string out;
  for (std::string_view rest = path.substr(1); !rest.empty();) {
    const std::string_view segment = take_segment(rest);
    if (!is_dots(segment, dots, sees_escaped)) {
      (out += '/') += segment;
    } else if (dots == 2 && !out.empty()) {
      out.resize(out.rfind('/'));
    }
  }
  return out;
}

std::string stepped(std::string_view path, PathStep step) {
  switch (step) {
    case kCutHash:
      return std::string(path.substr(0, path.find('#')));
    case kCutEscapedHash:
      return until(path, '#');
    case kCutEscapedMark:
      return until(path, '?');
    case kDropHost:
      return without_host(path);
    case kTurnBackslash:
    case kTurnEscapedBackslash:
    case kTurnEscapedSlash:
      return with_slashes(path, step);
    case kCutParameters:
    case kCutEscapedParameters:
    case kCutLastParameters:
    case kCutLastEscapedParameters:
      return without_parameters(path, step);
    case kDropBlanks:
    case kDropEscapedBlanks:
      return without_blanks(path, step);
    case kCutNul:
      return until(path, '\0');
    case kDecodeOverlong:
      return without_overlong(path);
    case kMergeSlashes:
      return with_merged_slashes(path);
    case kDecodePercent:
      return without_nested_escapes(path);
    case kDecodeUnreserved:
      return with_plain_unreserved(path);
    case kDropDot:
    case kDropEscapedDot:
    case kFollowDots:
    case kFollowEscapedDots:
      return without_dots(path, step);
  }
  return {};
}

// Returns the path with a leading slash and without trailing ones.
Path rooted(std::string text, std::string_view query) {
  if (!text.starts_with('/')) text.insert(text.begin(), '/');
  while (text.size() > 1 && text.ends_with('/')) text.pop_back();
  return {std::move(text), query};
}

// Returns what follows the first %3f of a target, or `otherwise` if there is none.
std::string_view escaped_query_of(std::string_view target, std::string_view otherwise) {
  for (std::size_t i = 0; i < target.size(); ++i) {
    if (escaped_byte(target, i) == '?') return target.substr(i + 3);
  }
  return otherwise;
}

Path after(const Path& path, PathStep step, std::string_view target) {
  std::string text = stepped(path.text, step);
  std::string_view query = path.query;
  const bool is_cut = text.size() < path.text.size();
  if (step == kCutHash) query = is_cut ? "" : query.substr(0, query.find('#'));
  if (step == kCutEscapedHash && is_cut) query = "";
  if (step == kCutEscapedMark && is_cut) query = escaped_query_of(target, query);
  return rooted(std::move(text), query);
}

// Returns what a server that takes no further step reads: the path decoded, in the form of normal_path().
PathReading reading_of(const Path& path, PathCase letters) {
  PathReading out{.path = {}, .query = path.query};
  out.path.reserve(path.text.size());
  for (std::size_t i = 0; i < path.text.size();) {
    const PathByte byte = byte_at(path.text, i);
    i += byte.length;
    if (byte.is('/') && byte.is_escaped) {
      out.path += "%2f";
    } else if (!byte.is('/') || !out.path.ends_with('/')) {
      out.path += letters == PathCase::folded ? base::lower(byte.value) : byte.value;
    }
  }
  return out;
}

// Appends a value that is not in the list yet.
template <class T>
void add_new(T&& value, std::vector<T>& all) {
  if (std::ranges::find(all, value) == all.end()) all.push_back(std::move(value));
}

// Returns the paths of a target that does not begin with one, such as http://host/path. There are several, because
// servers disagree where the host begins, as in http:///host/path and http:/path, and which byte ends it. Node's
// url.parse() ends it at any byte that cannot be in a host.
std::vector<Path> paths_behind_host(std::string_view target) {
  std::vector<Path> out;
  const auto add = [&](std::string_view rest) {
    add_new(rooted(std::string(rest.substr(0, rest.find('?'))), query_of(target, true)), out);
  };
  const std::string_view behind = target.substr(scheme_length(target));
  const bool has_scheme = behind.size() < target.size() && !behind.empty();
  const bool may_have_host = has_scheme && (behind.starts_with('/') || behind.starts_with('\\'));
  for (const std::string_view hash : {"#", ""}) {
    for (const std::string_view backslash : {"\\", ""}) {
      for (const std::string_view no_host : {"", "%;{}|^`\"'<> "}) {
        const std::string ends = std::string("/?").append(hash).append(backslash).append(no_host);
        add(without_authority(target, ends));
        if (!may_have_host) continue;
        // As in Node's URL and browsers: the host follows any number of slashes.
        const std::string_view host = behind.substr(std::min(behind.find_first_not_of("/\\"), behind.size()));
        add(host.substr(std::min(host.find_first_of(ends), host.size())));
      }
    }
  }
  if (has_scheme && !behind.starts_with("//")) add(behind);  // as in Go and Python: a path without a host
  return out;
}

// Finds all readings reachable from the given paths of a target. `steps` are those of the first path. Returns false
// if there are too many readings, or the work bound is exceeded.
bool search(std::string_view target, std::vector<Path>& paths, unsigned steps, PathCase letters,
            std::vector<PathReading>& out) {
  for (const Path& path : paths) add_new(reading_of(path, letters), out);
  std::size_t work = 0;
  for (std::size_t i = 0;;) {
    for (; steps != 0; steps &= steps - 1) {
      work += paths[i].text.size();
      Path next = after(paths[i], static_cast<PathStep>(1U << std::countr_zero(steps)), target);
      if (std::ranges::find(paths, next) != paths.end()) continue;
      add_new(reading_of(next, letters), out);
      if (out.size() > kPathReadingsMax || work > kWorkMax || paths.size() == kPathsMax) return false;
      paths.push_back(std::move(next));
    }
    if (++i == paths.size()) break;
    steps = steps_of(paths[i].text, paths[i].query);
  }
  return out.size() <= kPathReadingsMax;
}

}  // namespace

bool find_readings(std::string_view target, std::string_view normal, PathCase letters, std::vector<PathReading>& out) {
  const bool is_as_sent = normal.data() == target.data();
  if (is_as_sent && target.find('#', normal.size()) == target.npos) return false;

  std::vector<Path> paths;
  unsigned steps = 0;
  if (target.starts_with('/')) {
    const std::string_view query = query_of(target, true);
    std::string_view path = target.substr(0, target.find('?'));
    while (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
    steps = steps_of(path, query);
    if (steps == 0) return false;
    paths.push_back(rooted(std::string(path), query));
  } else {
    paths = paths_behind_host(target);
    steps = steps_of(paths[0].text, paths[0].query);
    if (steps == 0 && paths.size() == 1) return false;
  }
  out.assign(1, {.path = std::string(normal), .query = query_of(target)});
  if (!search(target, paths, steps, letters, out)) out.clear();
  if (!out.empty()) std::sort(out.begin() + 1, out.end());
  return true;
}

}  // namespace weir::policy
