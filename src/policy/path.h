// The path and the query of a request target, in the one form that rules are matched against.
//
// One page has many spellings: /login, //login, /LOGIN, /login/, /login%2f, /x/../login, /login;jsessionid=1. A limit
// that knows only the first is one that anybody can walk around, so all of them become /login before a rule is asked.
// Where servers disagree, the form is chosen that brings more requests under a rule: a decoded %2f parts segments, a
// backslash is a slash, `..;` is `..`; path_readings.h has what other servers read. Cost is linear in the length of the
// target. Pure; any thread. Tested by path_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace weir {

enum class PathCase : std::uint8_t { folded, kept };  // folded, the default: /API/Login is /api/login

// normal_path()
//
// In this order: scheme and authority of an absolute target go (http://host/path, of whatever scheme), query and
// fragment go, %xx is decoded once, a backslash becomes a slash, `;parameters` go from each segment, empty segments
// and '.' go, '..' takes the segment before it along but never leaves the root, ASCII letters are folded if asked. The
// result begins with '/' and ends with one only if it is the root. A broken escape (%zz) stays as it is. Bytes beyond
// ASCII, control bytes and decoded '?' and '#' are bytes like others.
//
// An empty target, a path that is not known, stays empty. The result is a view of `target` where that has the form
// already, else of `scratch`, which `target` must not lie in.
//
// Normalising a result again changes nothing, unless it contains an escape that was escaped (%252f became %2f), a '?'
// or a '#': those would then be read as what they are not. So normalise once.
std::string_view normal_path(std::string_view target, PathCase letters, std::string& scratch);

// Take the first or the last segment off what is left of a normal path: /a/b gives a or b, and an empty one has none.
inline std::string_view take_first_segment(std::string_view& path) {
  const std::string_view segment = path.substr(1, path.find('/', 1) - 1);
  path.remove_prefix(segment.size() + 1);
  return segment;
}
inline std::string_view take_last_segment(std::string_view& path) {
  const std::string_view segment = path.substr(path.rfind('/') + 1);
  path.remove_suffix(segment.size() + 1);
  return segment;
}

// query_of()
//
// What follows the first '?', without a fragment, unless '#' is a byte like others; empty if there is none.
std::string_view query_of(std::string_view target, bool is_hash_plain = false);

// The length of the scheme and its colon at the front of a target: `http:`, of whatever name. 0 if there is none.
std::size_t scheme_length(std::string_view target);

// Removes scheme and authority from an absolute target, http://host/path, of any scheme: servers do not check which one
// it is. The authority ends at any byte of `ends`.
std::string_view without_authority(std::string_view target, std::string_view ends);

// The byte that the escape at `at` stands for; nothing if there is no whole escape.
std::optional<char> escaped_byte(std::string_view text, std::size_t at);

// QueryValues
//
// The values of one parameter, decoded, in their order: a=1&a=2&a gives "1", "2" and "". The name is compared decoded
// and as it is written (?%61=1 is an `a`, ?A=1 is not); '+' is a blank; an empty part (&&) is no parameter. All values
// together cost one pass over the query, and a scratch string grows to the length of the longest value.
class QueryValues {
 public:
  QueryValues(std::string_view query, std::string_view name) : rest_(query), name_(name) {}

  // A view of the query or of `scratch`, for as long as both are left alone; nothing after the last value.
  std::optional<std::string_view> next(std::string& scratch);

 private:
  std::string_view rest_, name_;
};

// The first value of a parameter; nothing if the query has no such parameter.
inline std::optional<std::string_view> query_value(std::string_view query, std::string_view name,
                                                   std::string& scratch) {
  return QueryValues(query, name).next(scratch);
}

// Whether `matches(value)` holds for any value of a parameter. Rules ask this one: servers differ in which of several
// values they take, and a limit that asked for the first could be hidden from behind it.
template <class Matches>
bool any_query_value(std::string_view query, std::string_view name, std::string& scratch, Matches&& matches) {
  for (QueryValues values(query, name); const auto value = values.next(scratch);) {
    if (matches(*value)) return true;
  }
  return false;
}

}  // namespace weir
