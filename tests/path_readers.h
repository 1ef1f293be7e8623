// How well-known servers read a request target, each written from its specification or documentation and not from
// Weir's own reader. The reference for path_readings(). Pure; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace weir::test {

// The path in the form of normal_path(), in small letters; nothing if such a server refuses the target.
using PathReader = std::optional<std::string> (*)(std::string_view target);

std::optional<std::string> read_as_rfc3986(std::string_view target);      // remove_dot_segments, section 5.2.4
std::optional<std::string> read_as_url(std::string_view target);          // WHATWG's URL, with http://host as its base
std::optional<std::string> read_as_nginx(std::string_view target);        // $uri, with merge_slashes
std::optional<std::string> read_as_go(std::string_view target);           // path.Clean of URL.Path
std::optional<std::string> read_as_servlet(std::string_view target);      // Java: parameters of segments are removed
std::optional<std::string> read_as_wsgi(std::string_view target);         // Python: decoded, dots as they are
std::optional<std::string> read_as_http_server(std::string_view target);  // Python's http.server: between blanks

struct NamedReader {
  const char* name;
  PathReader read;
};
inline constexpr NamedReader kPathReaders[] = {
    {"RFC 3986", read_as_rfc3986},
    {"WHATWG URL", read_as_url},
    {"nginx", read_as_nginx},
    {"Go", read_as_go},
    {"servlet", read_as_servlet},
    {"WSGI", read_as_wsgi},
    {"http.server", read_as_http_server},
};

}  // namespace weir::test
