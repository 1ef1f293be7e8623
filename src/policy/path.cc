// Implements path.h: a scan for targets that need no rewriting, which is the common case; the rewriting; and queries.
#include "policy/path.h"

#include <algorithm>
#include <array>

#include "base/nearest.h"
#include "base/text.h"

namespace weir::policy {
namespace {

// How the scan treats a byte of a path. Every kind but plain needs a closer look.
enum class ByteKind : std::uint8_t { plain, slash, ends, changes };

constexpr std::array<ByteKind, 256> make_kinds(PathCase letters) {
  std::array<ByteKind, 256> kinds{};
  for (unsigned char c = 'A'; letters == PathCase::folded && c <= 'Z'; ++c) kinds[c] = ByteKind::changes;
  kinds['/'] = ByteKind::slash;
  kinds['?'] = kinds['#'] = ByteKind::ends;
  kinds['%'] = kinds['\\'] = kinds[';'] = kinds['\0'] = ByteKind::changes;
  for (const char lead : std::string_view("\xC0\xC1\xE0\xF0\xF8\xFC")) {  // may begin overlong UTF-8
    kinds[static_cast<unsigned char>(lead)] = ByteKind::changes;
  }
  for (const char blank : std::string_view("\t\n\v\f\r\x1C\x1D\x1E\x1F \x85\xA0")) {  // may be dropped at the end
    kinds[static_cast<unsigned char>(blank)] = ByteKind::changes;
  }
  return kinds;
}

constexpr std::array<std::array<ByteKind, 256>, 2> kByteKinds = {make_kinds(PathCase::folded),
                                                                 make_kinds(PathCase::kept)};

// Whether the segment at `at` is empty, '.' or '..'. Bytes of kind `changes` are found later by the scan.
bool vanishes(std::string_view target, std::size_t at) {
  for (int dots = 0; dots <= 2; ++dots, ++at) {
    if (at == target.size() || target[at] == '/' || target[at] == '?' || target[at] == '#') return true;
    if (target[at] != '.') return false;
  }
  return false;
}

// Returns the length of the path if the target begins with a normal path; npos if it must be rewritten.
std::size_t normal_length(std::string_view target, const std::array<ByteKind, 256>& kinds) {
  if (target.front() != '/') return target.npos;
  std::size_t i = 0;
  for (; i < target.size(); ++i) {
    const ByteKind kind = kinds[static_cast<unsigned char>(target[i])];
    if (kind == ByteKind::plain) continue;
    if (kind == ByteKind::ends) return i;
    if (kind != ByteKind::slash) return target.npos;
    if (!vanishes(target, i + 1)) continue;
    const bool is_root = i == 0 && (target.size() == 1 || target[1] == '?' || target[1] == '#');
    return is_root ? 1 : target.npos;
  }
  return i;
}

// Writes the segments of a path into a string with space for all of them and two slashes.
class SegmentWriter {
 public:
  explicit SegmentWriter(std::string& path) : path_(path) { path_[0] = '/'; }

  void add(char c) { path_[end_++] = c; }

  // Ends a segment at a slash. Drops it if it is empty or '.'; for '..' also drops the segment before it. Dropped
  // bytes were written once, so the total cost is linear.
  void end_segment() {
    const std::string_view segment = std::string_view(path_).substr(start_, end_ - start_);
    if (segment == "..") {
      start_ = start_ > 1 ? path_.rfind('/', start_ - 2) + 1 : 1;
    } else if (!segment.empty() && segment != ".") {
      path_[end_] = '/';
      start_ = end_ + 1;
    }
    end_ = start_;
  }

  void finish() {
    end_segment();
    path_.resize(end_ > 1 ? end_ - 1 : 1);  // no slash at the end
  }

 private:
  std::string& path_;
  std::size_t start_ = 1, end_ = 1;  // of the segment being written
};

std::string_view rewritten_path(std::string_view target, PathCase letters, std::string& scratch) {
  target = without_authority(target, "/\\?#");
  const std::string_view path = target.substr(0, target.find_first_of("?#"));
  scratch.resize(path.size() + 2);  // one slash before the path and one after it
  SegmentWriter writer(scratch);
  bool in_parameters = false;
  for (std::size_t i = 0; i < path.size();) {
    const auto escaped = escaped_byte(path, i);
    const char byte = escaped ? *escaped : path[i];
    i += escaped ? 3U : 1U;
    if (byte == '/' || byte == '\\') {
      writer.end_segment();
      in_parameters = false;
    } else if (byte == ';' || in_parameters) {
      in_parameters = true;
    } else {
      writer.add(letters == PathCase::folded ? base::lower(byte) : byte);
    }
  }
  writer.finish();
  return scratch;
}

// Whether decoding changes the text.
bool is_encoded(std::string_view text) { return text.find_first_of("%+") != text.npos; }

// Removes a byte from the front of a query part and returns it decoded.
char take_decoded(std::string_view& text) {
  const char first = text.front();
  const auto byte = first == '%' ? escaped_byte(text, 0) : std::nullopt;
  text.remove_prefix(byte ? 3 : 1);
  return byte ? *byte : first == '+' ? ' ' : first;
}

bool decodes_to(std::string_view text, std::string_view name) {
  for (; !text.empty() && !name.empty(); name.remove_prefix(1)) {
    if (take_decoded(text) != name.front()) return false;
  }
  return text.empty() && name.empty();
}

}  // namespace

std::optional<char> escaped_byte(std::string_view text, std::size_t at) {
  if (text.size() < 3 || at > text.size() - 3 || text[at] != '%') return std::nullopt;
  return base::hex_byte(text.substr(at + 1));
}

std::string_view normal_path(std::string_view target, PathCase letters, std::string& scratch) {
  if (target.empty()) return target;
  const std::size_t length = normal_length(target, kByteKinds[static_cast<std::size_t>(letters)]);
  if (length != target.npos) return target.substr(0, length);

  return rewritten_path(target, letters, scratch);
}

std::size_t scheme_length(std::string_view target) {
  std::size_t i = 0;
  const auto is_letter = [](char c) { return base::lower(c) >= 'a' && base::lower(c) <= 'z'; };
  const auto is_other = [](char c) { return (c >= '0' && c <= '9') || c == '+' || c == '-' || c == '.'; };
  while (i < target.size() && (is_letter(target[i]) || (i > 0 && is_other(target[i])))) ++i;
  return i > 0 && i < target.size() && target[i] == ':' ? i + 1 : 0;
}

std::string_view without_authority(std::string_view target, std::string_view ends) {
  const std::size_t scheme = scheme_length(target);
  if (scheme == 0 || target.substr(scheme, 2) != "//") return target;
  target.remove_prefix(scheme + 2);
  target.remove_prefix(std::min(target.find_first_of(ends), target.size()));
  return target;
}

std::string_view query_of(std::string_view target, bool is_hash_plain) {
  if (!is_hash_plain) target = target.substr(0, target.find('#'));
  const std::size_t mark = target.find('?');
  return mark == target.npos ? std::string_view() : target.substr(mark + 1);
}

std::optional<std::string_view> QueryValues::next(std::string& scratch) {
  while (!rest_.empty()) {
    const std::string_view part = rest_.substr(0, rest_.find('&'));
    rest_.remove_prefix(std::min(part.size() + 1, rest_.size()));
    const std::string_view name = part.substr(0, part.find('='));
    if (part.empty() || !decodes_to(name, name_)) continue;
    std::string_view value = part.substr(std::min(name.size() + 1, part.size()));
    if (!is_encoded(value)) return value;
    scratch.clear();
    while (!value.empty()) scratch += take_decoded(value);
    return scratch;
  }
  return std::nullopt;
}

}  // namespace weir::policy
