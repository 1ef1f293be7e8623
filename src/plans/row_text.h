// All that a database says of a subject, in one short text: two such texts are equal if and only if nothing changed.
//
// Most fit into a string without memory of its own, so that a hundred thousand of them can be kept, to be judged anew
// when the tiers change while the database is away. Pure; any thread. Tested by row_text_test.cc.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "plans/plan_source.h"

namespace weir {

// Empty for a row of which nothing is known. The subject is not in it.
std::string row_text(const PlanRow& row);

// Nothing for a text that row_text() does not write.
std::optional<PlanRow> row_of_text(std::string_view subject, std::string_view text);

}  // namespace weir
