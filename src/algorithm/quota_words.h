// The units and numbers of quotas, shared by the strict reader (quota.cc) and the lenient one (quota_guess.cc).
//
// Pure; any thread. Tested by quota_test.cc and fuzz/quota.cc.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/text.h"
#include "weir/quota.h"

namespace weir::algorithm {

struct Unit {
  std::string_view name;
  std::int64_t us;
};

// In the order of CalendarUnit.
inline constexpr std::string_view kCalendarWords[] = {"calendar_day", "calendar_week", "calendar_month",
                                                      "calendar_year"};

// The unit of that name, or the one that was probably meant; null if there is none. A wrong guess would be wrong by
// orders of magnitude. So a short word is guessed only from its beginning or from common spellings, never from
// similarity.
const Unit* find_unit(std::string_view word);
const Unit* nearest_unit(std::string_view word);

// In the largest unit that divides it: 5min, day.
std::string duration_text(std::int64_t us);

struct Ratio {
  std::int64_t over = 0, under = 1;
};

// Whether 5m means five million permits, or 5 of the unit m.
enum class Suffix : std::uint8_t { multiplies, is_a_unit };

// Reads 10,000  1_000  1.5  1e3  10k  2M from the front of `text`, and removes it; nothing if there is no number.
std::optional<Ratio> take_number(std::string_view& text, Suffix suffix);

// guess_quota()
//
// The lenient reader: what quota an invalid text was meant to be (100 per minite, 10k/s, 100rpm), in the grammar's
// form; empty if there is no good guess. The guess is not checked: parse_quota() shows it only if the strict reader
// accepts it.
std::string guess_quota(std::string_view text, std::optional<Algorithm> algorithm);

}  // namespace weir::algorithm
