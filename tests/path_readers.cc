// Each reader works on text, in the steps of its specification. They share only splitting and decoding.
#include "path_readers.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <vector>

namespace weir::test {
namespace {

using Segments = std::vector<std::string>;

std::string before(std::string_view text, std::string_view ends) {
  return std::string(text.substr(0, text.find_first_of(ends)));
}

Segments split(const std::string& path, std::string_view slashes) {
  Segments out(1);
  for (const char c : path) {
    if (slashes.find(c) != slashes.npos) {
      out.emplace_back();
    } else {
      out.back() += c;
    }
  }
  return out;
}

std::string lowered(std::string text) {
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  return text;
}

bool is_escape(const std::string& text, std::size_t at) {
  return text[at] == '%' && at + 2 < text.size() && std::isxdigit(static_cast<unsigned char>(text[at + 1])) != 0 &&
         std::isxdigit(static_cast<unsigned char>(text[at + 2])) != 0;
}

std::string decoded(const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (is_escape(text, i)) {
      out += static_cast<char>(std::strtol(text.substr(i + 1, 2).c_str(), nullptr, 16));
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

bool has_broken_escape(const std::string& text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && !is_escape(text, i)) return true;
  }
  return false;
}

// Without empty segments, in small letters; a slash within a segment as %2f.
std::string joined(const Segments& segments) {
  std::string out;
  for (const std::string& segment : segments) {
    if (segment.empty()) continue;
    out += '/';
    for (const char c : segment) out += c == '/' ? std::string("%2f") : std::string(1, c);
  }
  return out.empty() ? "/" : lowered(out);
}

Segments each_decoded(Segments segments) {
  for (std::string& segment : segments) segment = decoded(segment);
  return segments;
}

// Slashes merged, then dots followed.
std::optional<Segments> followed(const Segments& segments, bool may_leave_root) {
  Segments out;
  for (const std::string& segment : segments) {
    if (segment.empty() || segment == ".") continue;
    if (segment != "..") {
      out.push_back(segment);
    } else if (!out.empty()) {
      out.pop_back();
    } else if (!may_leave_root) {
      return {};
    }
  }
  return out;
}

bool starts_with(const std::string& text, std::string_view prefix) { return text.rfind(prefix, 0) == 0; }

}  // namespace

std::optional<std::string> read_as_rfc3986(std::string_view target) {
  std::string in = before(target, "?#"), out;
  if (!starts_with(in, "/")) return {};
  const auto remove_last = [&] { out.erase(out.rfind('/') == out.npos ? 0 : out.rfind('/')); };
  while (!in.empty()) {
    if (starts_with(in, "../")) {
      in.erase(0, 3);
    } else if (starts_with(in, "./") || starts_with(in, "/./")) {
      in.erase(0, 2);
    } else if (in == "/.") {
      in = "/";
    } else if (starts_with(in, "/../")) {
      in.erase(0, 3);
      remove_last();
    } else if (in == "/..") {
      in = "/";
      remove_last();
    } else if (in == "." || in == "..") {
      in.clear();
    } else {
      const std::size_t end = in.find('/', 1);
      out += in.substr(0, end);
      in.erase(0, end == in.npos ? in.size() : end);
    }
  }
  return joined(each_decoded(split(out, "/")));
}

std::optional<std::string> read_as_url(std::string_view target) {
  std::string path = before(target, "?#");
  const auto is_slash = [](char c) { return c == '/' || c == '\\'; };
  // As absolute targets come through Node's parser, which demands "://"; other schemes than these take no backslash.
  if (starts_with(path, "http://")) path.erase(0, 5);
  if (path.empty() || !is_slash(path[0])) return {};
  for (const char c : path) {
    if (c == '\t' || c == '\n' || c == '\r') return {};  // which it removes, and no server passes on
  }
  if (path.size() > 1 && is_slash(path[1])) {
    path.erase(path.begin(), std::ranges::find_if_not(path, is_slash));
    if (path.empty()) return {};
    path.erase(path.begin(), std::ranges::find_if(path, is_slash));
    if (path.empty()) path = "/";
  }
  Segments out;
  for (const std::string& segment : split(path.substr(1), "/\\")) {
    std::string dots = lowered(segment);
    for (std::size_t at; (at = dots.find("%2e")) != dots.npos;) dots.replace(at, 3, ".");
    if (dots == ".." && segment.find("%25") == segment.npos) {
      if (!out.empty()) out.pop_back();
    } else if (dots != ".") {
      out.push_back(segment);
    }
  }
  return joined(each_decoded(out));
}

std::optional<std::string> read_as_nginx(std::string_view target) {
  const std::string path = before(target, "?#");
  if (!starts_with(path, "/") || has_broken_escape(path)) return {};
  const std::string bytes = decoded(path);
  if (bytes.find('\0') != bytes.npos) return {};
  const auto segments = followed(split(bytes, "/"), false);
  if (!segments) return {};
  return joined(*segments);
}

std::optional<std::string> read_as_go(std::string_view target) {
  std::string path = before(target, "?");
  const std::size_t scheme = path.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789+-.");
  if (!path.empty() && path[0] >= 'a' && path[0] <= 'z' && scheme != path.npos && path[scheme] == ':') {
    path.erase(0, scheme + 1);
    if (!starts_with(path, "/")) return {};
    if (starts_with(path, "//")) path.erase(0, std::min(path.find('/', 2), path.size()));
    if (path.empty()) return "/";
  }
  if (!starts_with(path, "/") || has_broken_escape(path)) return {};
  return joined(*followed(split(decoded(path), "/"), true));
}

std::optional<std::string> read_as_servlet(std::string_view target) {
  const std::string path = before(target, "?#");
  if (!starts_with(path, "/") || has_broken_escape(path)) return {};
  Segments segments;
  for (const std::string& segment : split(path, "/")) segments.push_back(decoded(before(segment, ";")));
  const bool is_refused = std::ranges::any_of(segments, [](const std::string& segment) {
    return segment.find_first_of(std::string_view("/\\\0", 3)) != segment.npos;
  });
  if (is_refused) return {};
  return joined(*followed(segments, true));
}

std::optional<std::string> read_as_http_server(std::string_view target) {
  constexpr std::string_view kBlanks = "\t\n\v\f\r\x1c\x1d\x1e\x1f \x85\xa0";
  const std::string path(target.substr(0, target.find_first_of(kBlanks)));
  const bool is_whole = target.find_first_not_of(kBlanks, path.size()) == target.npos;
  // Where it takes the end of a letter of UTF-8 for a blank, it reads half of the letter, which is no path of anything.
  const bool is_half = path.size() < target.size() && !path.empty() && static_cast<unsigned char>(path.back()) >= 0x80;
  if (!is_whole || is_half || !starts_with(path, "/")) return {};
  return joined(*followed(split(decoded(before(path, "?#")), "/"), true));
}

std::optional<std::string> read_as_wsgi(std::string_view target) {
  const std::string path = before(target, "?");
  if (!starts_with(path, "/") || starts_with(path, "//")) return {};
  return joined(split(decoded(path), "/"));
}

}  // namespace weir::test
