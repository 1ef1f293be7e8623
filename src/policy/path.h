// Normalizes the path and query of a request target, so that rules match one form of it.
//
// One page has many spellings: /login, //login, /LOGIN, /login/, /login%2f, /x/../login, /login;jsessionid=1. A
// client could avoid a limit that matches only the first, so all of them become /login before rules are matched.
// Where servers disagree, we choose the form that matches more rules: a decoded %2f separates segments, a backslash
// is a slash, `..;` is `..`. path_readings.h finds what other servers would read. The cost is linear in the length of
// the target. Pure; any thread may call it. Tested by path_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "weir/result.h"

namespace weir::policy {

enum class PathCase : std::uint8_t { folded, kept };  // folded, the default: /API/Login is /api/login

// normal_path()
//
// Applies these steps in order:
// 1. Remove scheme and authority of an absolute target (http://host/path, any scheme).
// 2. Remove query and fragment.
// 3. Decode %xx once.
// 4. Turn each backslash into a slash.
// 5. Remove `;parameters` from each segment.
// 6. Remove empty segments and '.'. Resolve '..' together with the segment before it, never above the root.
// 7. Fold ASCII letters to lower case if `letters` says so.
// The result begins with '/' and ends with '/' only if it is the root. A broken escape (%zz) stays as it is.
// Non-ASCII bytes, control bytes, and decoded '?' and '#' are ordinary bytes.
//
// An empty target means that the path is unknown, and stays empty. The result is a view of `target` if that is normal
// already, else a view of `scratch`. `target` must not lie in `scratch`.
//
// Normalizing a result again changes nothing, with these exceptions: it contains a doubly escaped byte (%252f became
// %2f), a '?' or a '#'. A second pass would misread those, so normalize once.
std::string_view normal_path(std::string_view target, PathCase letters, std::string& scratch);

// Remove the first or last segment from `path`, the rest of a normal path, and return it: a or b for /a/b.
inline std::string_view take_first_segment(std::string_view& path) {
  WEIR_ASSERT(path.starts_with('/'));
  const std::string_view segment = path.substr(1, path.find('/', 1) - 1);
  path.remove_prefix(segment.size() + 1);
  return segment;
}
inline std::string_view take_last_segment(std::string_view& path) {
  WEIR_ASSERT(path.starts_with('/'));
  const std::string_view segment = path.substr(path.rfind('/') + 1);
  path.remove_suffix(segment.size() + 1);
  return segment;
}

// query_of()
//
// Returns what follows the first '?', up to a fragment. Empty if there is no query. If `is_hash_plain`, '#' is an
// ordinary byte and begins no fragment.
std::string_view query_of(std::string_view target, bool is_hash_plain = false);

// Returns the length of the scheme and its colon at the start of a target: `http:`, or any other scheme. 0 if none.
std::size_t scheme_length(std::string_view target);

// Removes scheme and authority from an absolute target such as http://host/path. Any scheme counts, since servers do
// not check it. The authority ends at any byte of `ends`.
std::string_view without_authority(std::string_view target, std::string_view ends);

// The byte that the escape at `at` decodes to. Empty if there is no complete escape.
std::optional<char> escaped_byte(std::string_view text, std::size_t at);

// QueryValues
//
// The decoded values of one parameter, in order: a=1&a=2&a gives "1", "2" and "". Names are compared after decoding
// and case-sensitively: ?%61=1 is an `a`, ?A=1 is not. '+' is a blank, and an empty part (&&) is ignored. Reading all
// values takes one pass over the query. The scratch string grows to the length of the longest value.
class QueryValues {
 public:
  QueryValues(std::string_view query, std::string_view name) : rest_(query), name_(name) {}

  // Returns a view of the query or of `scratch`, valid until either changes. Empty after the last value.
  std::optional<std::string_view> next(std::string& scratch);

 private:
  std::string_view rest_, name_;
};

// The first value of a parameter, or nothing if the query does not have it.
inline std::optional<std::string_view> query_value(std::string_view query, std::string_view name,
                                                   std::string& scratch) {
  return QueryValues(query, name).next(scratch);
}

// Whether `matches(value)` is true for any value of a parameter. Rules use this function, because servers differ in
// which of several values they take: a client could hide a value behind the first.
template <class Matches>
bool any_query_value(std::string_view query, std::string_view name, std::string& scratch, Matches&& matches) {
  for (QueryValues values(query, name); const auto value = values.next(scratch);) {
    if (matches(*value)) return true;
  }
  return false;
}

}  // namespace weir::policy
