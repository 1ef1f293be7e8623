// The words for attributes: `user`, `ip/24`, `header:x-org`, `{id}`; and for the values that conditions compare with.
//
// Pure; any thread. Tested by dimension_test.cc.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "weir/policy.h"
#include "weir/result.h"

namespace weir {

// user, api_key, ... The kinds that need a name are written `header:name`, captures `{name}`.
std::string_view to_string(AttributeKind kind);

// Errors carry the nearest right form.
Result<Dimension> parse_dimension(std::string_view text);

// glob_matches()
//
// Whether the text is what the pattern says, where each `*` stands for any run of letters, also none.
bool glob_matches(std::string_view pattern, std::string_view text);

// The time of `2026-12-31` (its beginning, UTC) or `2026-12-31T18:30:00Z` (or with an offset, +01:00).
Result<Micros> parse_time(std::string_view text);
std::string time_text(Micros time);

}  // namespace weir
