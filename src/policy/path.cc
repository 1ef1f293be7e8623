// A scan that finds nothing to do, which is the common case, and the loop that rewrites what it finds.
#include "policy/path.h"

#include <algorithm>
#include <array>

#include "nearest.h"

namespace weir {
namespace {

// What a byte of a path means to the scan. What is not plain makes it stop and look.
enum class ByteKind : std::uint8_t { plain, slash, ends, changes };

constexpr std::array<ByteKind, 256> make_kinds(PathCase letters) {
  std::array<ByteKind, 256> kinds{};
  for (unsigned char c = 'A'; letters == PathCase::folded && c <= 'Z'; ++c) kinds[c] = ByteKind::changes;
  kinds['/'] = ByteKind::slash;
  kinds['?'] = kinds['#'] = ByteKind::ends;
  kinds['%'] = kinds['\\'] = kinds[';'] = ByteKind::changes;
  return kinds;
}

constexpr std::array<std::array<ByteKind, 256>, 2> kByteKinds = {make_kinds(PathCase::folded),
                                                                 make_kinds(PathCase::kept)};

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// Whether the segment that begins at `at` is empty, '.' or '..'. Bytes that change are found later by the scan.
bool vanishes(std::string_view target, std::size_t at) {
  for (int dots = 0; dots <= 2; ++dots, ++at) {
    if (at == target.size() || target[at] == '/' || target[at] == '?' || target[at] == '#') return true;
    if (target[at] != '.') return false;
  }
  return false;
}

// The length of the path if the target begins with one in normal form; npos if it must be rewritten.
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

// Takes scheme and authority off an absolute target. Servers do not ask which scheme it is, so neither do we.
std::string_view without_authority(std::string_view target) {
  std::size_t i = 0;
  const auto is_letter = [](char c) { return lower(c) >= 'a' && lower(c) <= 'z'; };
  const auto is_other = [](char c) { return (c >= '0' && c <= '9') || c == '+' || c == '-' || c == '.'; };
  while (i < target.size() && (is_letter(target[i]) || (i > 0 && is_other(target[i])))) ++i;
  if (i == 0 || target.substr(i, 3) != "://") return target;
  target.remove_prefix(i + 3);
  target.remove_prefix(std::min(target.find_first_of("/\\?#"), target.size()));
  return target;
}

// Ends the segment [start, end) of `path`, behind a slash: drops it if it says nothing, and for '..' the one before it
// too. Returns where the next begins. What is dropped was written once, so all of this is linear.
std::size_t end_segment(std::string& path, std::size_t start, std::size_t end) {
  const std::string_view segment = std::string_view(path).substr(start, end - start);
  if (segment.empty() || segment == ".") return start;
  if (segment == "..") return start > 1 ? path.rfind('/', start - 2) + 1 : 1;
  path[end] = '/';
  return end + 1;
}

// Whether decoding changes the text.
bool is_encoded(std::string_view text) { return text.find_first_of("%+") != text.npos; }

// Takes a byte off the front of a part of a query, decoded.
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
  const int high = hex_digit(text[at + 1]), low = hex_digit(text[at + 2]);
  if (high < 0 || low < 0) return std::nullopt;
  return static_cast<char>(high * 16 + low);
}

std::string_view normal_path(std::string_view target, PathCase letters, std::string& scratch) {
  if (target.empty()) return target;
  const std::size_t length = normal_length(target, kByteKinds[static_cast<std::size_t>(letters)]);
  if (length != target.npos) return target.substr(0, length);

  target = without_authority(target);
  target = target.substr(0, target.find_first_of("?#"));
  scratch.resize(target.size() + 2);  // a slash before the path and one behind it
  scratch[0] = '/';
  std::size_t start = 1, end = 1;  // of the segment that is being written
  bool in_parameters = false;
  for (std::size_t i = 0; i < target.size(); ++i) {
    char c = target[i];
    if (const auto byte = c == '%' ? escaped_byte(target, i) : std::nullopt) {
      c = *byte;
      i += 2;
    }
    if (c == '/' || c == '\\') {
      start = end = end_segment(scratch, start, end);
      in_parameters = false;
    } else if (c == ';') {
      in_parameters = true;
    } else if (!in_parameters) {
      scratch[end++] = letters == PathCase::folded ? lower(c) : c;
    }
  }
  end = end_segment(scratch, start, end);
  scratch.resize(end > 1 ? end - 1 : 1);  // no slash at the end
  return scratch;
}

bool is_plain_path(std::string_view target) {
  const std::string_view path = target.substr(0, target.find_first_of("?#"));
  for (std::size_t i = 0; i < path.size(); ++i) {
    const auto escaped = path[i] == '%' ? escaped_byte(path, i) : std::nullopt;
    const char c = escaped.value_or(path[i]);
    if (c == '\\' || c == ';' || (escaped && (c == '/' || c == '.'))) return false;
    if (path.substr(i, 3) != "/..") continue;
    if (i + 3 == path.size() || path[i + 3] == '/') return false;
  }
  return !path.starts_with("../");
}

std::string_view query_of(std::string_view target) {
  target = target.substr(0, target.find('#'));
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

}  // namespace weir
