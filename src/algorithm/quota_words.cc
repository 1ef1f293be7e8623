// The units, and the number formats that people use. See quota_words.h.
#include "algorithm/quota_words.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <numeric>
#include <utility>

#include "base/nearest.h"
#include "weir/duration.h"

namespace weir::algorithm {
namespace {

constexpr std::int64_t kSecond = 1'000'000, kMinute = 60 * kSecond, kHour = 60 * kMinute, kDay = 24 * kHour;

// Of equally near words the first is suggested, so the most readable come first.
constexpr Unit kUnits[] = {
    {"second", kSecond},
    {"minute", kMinute},
    {"hour", kHour},
    {"day", kDay},
    {"week", 7 * kDay},
    {"month", 30 * kDay},
    {"year", 365 * kDay},
    {"seconds", kSecond},
    {"minutes", kMinute},
    {"hours", kHour},
    {"days", kDay},
    {"weeks", 7 * kDay},
    {"months", 30 * kDay},
    {"years", 365 * kDay},
    {"ms", 1'000},
    {"s", kSecond},
    {"min", kMinute},
    {"h", kHour},
    {"d", kDay},
    {"w", 7 * kDay},
    {"y", 365 * kDay},
    {"sec", kSecond},
    {"secs", kSecond},
    {"m", kMinute},
    {"mins", kMinute},
    {"hr", kHour},
    {"hrs", kHour},
    {"millisecond", 1'000},
    {"milliseconds", 1'000},
    {"us", 1},
    {"microsecond", 1},
    {"microseconds", 1},
};
// Other names of units, and ours for them.
constexpr std::pair<std::string_view, std::string_view> kOtherUnits[] = {
    {"mo", "month"},  {"mos", "months"}, {"mth", "month"}, {"mths", "months"}, {"wk", "week"},
    {"wks", "weeks"}, {"yr", "year"},    {"yrs", "years"}, {"daily", "day"},
};
// What to_string() writes, largest first.
constexpr Unit kShortUnits[] = {
    {"year", 365 * kDay}, {"month", 30 * kDay}, {"week", 7 * kDay}, {"day", kDay}, {"h", kHour},
    {"min", kMinute},     {"s", kSecond},       {"ms", 1'000},      {"us", 1},
};

}  // namespace

const Unit* find_unit(std::string_view word) {
  const std::string name = base::lower(word);
  const auto* unit = std::ranges::find(kUnits, std::string_view(name), &Unit::name);
  return unit == std::end(kUnits) ? nullptr : unit;
}

const Unit* nearest_unit(std::string_view word) {
  if (const Unit* exact = find_unit(word)) return exact;
  const std::string typed = base::lower(word);
  const auto* other =
      std::ranges::find(kOtherUnits, std::string_view(typed), [](const auto& pair) { return pair.first; });
  if (other != std::end(kOtherUnits)) return find_unit(other->second);
  if (typed.size() < 2) return nullptr;
  const auto* begun = std::ranges::find_if(kUnits, [&](const Unit& u) { return u.name.starts_with(typed); });
  if (begun != std::end(kUnits)) return begun;  // mon is short for month, not a typo of min
  const Unit* whole = find_unit(std::string_view(typed).substr(1));
  if (whole != nullptr && whole->us == kSecond && (typed[0] == 'm' || typed[0] == 'u' || typed[0] == 'n')) {
    return typed[0] == 'n' ? nullptr : find_unit(typed[0] == 'm' ? "ms" : "us");  // msec, usec, nsec
  }
  std::array<std::string_view, std::size(kUnits)> names;
  std::ranges::transform(kUnits, names.begin(), [](const Unit& u) { return u.name.size() > 2 ? u.name : ""; });
  return find_unit(base::nearest(word, names));
}

std::string duration_text(std::int64_t us) {
  for (const Unit& unit : kShortUnits) {
    if (us % unit.us == 0) return (us == unit.us ? "" : std::to_string(us / unit.us)) + std::string(unit.name);
  }
  return {};
}

std::optional<Ratio> take_number(std::string_view& text, Suffix suffix) {
  constexpr std::int64_t kMost = std::int64_t{1} << 53;
  std::size_t at = 0;
  Ratio value;
  bool any = false, fraction = false;
  const auto scale = [&](std::int64_t by) { value.over = std::min(kMost, value.over * by); };
  for (; at < text.size(); ++at) {
    const char c = text[at];
    if (base::is_digit(c)) {
      if (value.under > 1'000'000) return {};
      value.over = std::min(kMost, value.over * 10 + (c - '0'));
      if (fraction) value.under *= 10;
      any = true;
    } else if (c == '.' && !fraction) {
      fraction = true;
    } else if (any && (c == ',' || c == '_' || c == '\'')) {
      const std::string_view group = text.substr(at + 1, 3);
      const bool three = group.size() == 3 && std::ranges::all_of(group, base::is_digit);
      if (!three || (at + 4 < text.size() && base::is_digit(text[at + 4]))) return {};  // 1,5 is ambiguous
    } else {
      break;
    }
  }
  if (!any) return {};
  if (at + 1 < text.size() && base::lower(text[at]) == 'e' && base::is_digit(text[at + 1])) {
    int exponent = 0;
    for (++at; at < text.size() && base::is_digit(text[at]); ++at)
      exponent = std::min(20, exponent * 10 + (text[at] - '0'));
    while (exponent-- > 0) scale(10);
  }
  const bool last_letter =
      at + 1 >= text.size() || !(base::lower(text[at + 1]) >= 'a' && base::lower(text[at + 1]) <= 'z');
  if (suffix == Suffix::multiplies && at < text.size() && last_letter) {
    const std::size_t thousands = std::string_view("kmg").find(base::lower(text[at])) + 1;  // npos + 1 is 0
    if (thousands > 0) ++at;
    for (std::size_t i = 0; i < thousands; ++i) scale(1'000);
  }
  text.remove_prefix(at);
  const std::int64_t divisor = std::gcd(value.over, value.under);
  return Ratio{value.over / divisor, value.under / divisor};
}

}  // namespace weir::algorithm

namespace weir {

Result<Micros> parse_duration(std::string_view text) {
  std::string_view rest = text;
  const algorithm::Ratio count =
      algorithm::take_number(rest, algorithm::Suffix::is_a_unit).value_or(algorithm::Ratio{1, 1});
  const algorithm::Unit* unit = algorithm::find_unit(rest);
  constexpr std::int64_t kMost = 86'400'000'000;  // a day
  if (unit != nullptr && count.over > 0 && count.under > 0 && count.over <= kMost / unit->us * count.under) {
    const std::int64_t whole = count.over * unit->us;
    if (whole % count.under == 0) return Micros{whole / count.under};
  }
  return fail(ErrorCode::invalid_argument,
              base::in_quotes(text) + " is not a time of up to a day; write it like 500ms, 5s or 2min");
}

}  // namespace weir
