// Encodes what a database says about a subject as one short text. Two such texts are equal if and only if nothing
// changed.
//
// Most are short enough for a string's inline buffer, so 100,000 of them can be kept. They are judged again when the
// tiers change while the database is unavailable. Pure; any thread may call it. Tested by row_text_test.cc.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "plans/plan_source.h"

namespace weir {

// Empty for a row without a plan, an override or an error. The text does not contain the subject.
std::string row_text(const PlanRow& row);

// Returns nothing for a text that row_text() cannot have written.
std::optional<PlanRow> row_of_text(std::string_view subject, std::string_view text);

}  // namespace weir
