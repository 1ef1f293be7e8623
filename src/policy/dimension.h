// The names of attributes in a config (`user`, `ip/24`, `header:x-org`, `{id}`), globs and times.
//
// Pure; any thread may call it. Tested by dimension_test.cc.
#pragma once

#include <string>
#include <string_view>

#include "weir/policy.h"
#include "weir/result.h"

namespace weir::policy {

// Returns user, api_key, ... In a config, kinds with a name are written `header:name`, and captures `{name}`.
std::string_view to_string(weir::AttributeKind kind);

// Letters, digits, '_', '-' and '.': what the names of headers, parameters and entries consist of.
bool is_name_letter(char c);

// An error suggests the nearest valid form.
Result<Dimension> parse_dimension(std::string_view text);

// glob_matches()
//
// Whether `pattern` matches the whole text. Each `*` matches any run of characters, including none.
bool glob_matches(std::string_view pattern, std::string_view text);

// Parses `2026-12-31` (its start, UTC) or `2026-12-31T18:30:00Z` (or with an offset such as +01:00).
Result<Micros> parse_time(std::string_view text);
std::string time_text(Micros time);

}  // namespace weir::policy
