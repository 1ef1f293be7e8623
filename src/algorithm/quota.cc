// Quotas: text to value and back, and the nearest right form of a text that is none.
//
// Two readers. The strict one is the grammar of weir/quota.h and knows only yes or no, with a column. When it says no,
// the forgiving one guesses what was meant (100 per minite, 10k/s, 100rpm) and writes that down in the grammar; the
// guess is shown only if the strict reader takes it, so a suggestion is always a quota that works.
// Pure; any thread. Tested by quota_test.cc and fuzz/quota.cc.
#include "weir/quota.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <numeric>
#include <utility>

#include "algorithm/calendar.h"
#include "algorithm/division.h"
#include "algorithm/limit.h"
#include "nearest.h"

namespace weir {
namespace {

constexpr std::size_t kQuotaBytesMax = 256;

// --- words -----------------------------------------------------------------------------------------------------

struct Unit {
  std::string_view name;
  std::int64_t us;
};

constexpr std::int64_t kSecond = 1'000'000, kMinute = 60 * kSecond, kHour = 60 * kMinute, kDay = 24 * kHour;

// Among equally near words the first is suggested: those that people read best stand first.
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
// What to_string() writes, largest first.
constexpr Unit kShortUnits[] = {
    {"year", 365 * kDay}, {"month", 30 * kDay}, {"week", 7 * kDay}, {"day", kDay}, {"h", kHour},
    {"min", kMinute},     {"s", kSecond},       {"ms", 1'000},      {"us", 1},
};
constexpr CalendarUnit kCalendarUnits[] = {CalendarUnit::day, CalendarUnit::week, CalendarUnit::month,
                                           CalendarUnit::year};
constexpr std::string_view kCalendarWords[] = {"calendar_day", "calendar_week", "calendar_month", "calendar_year"};
constexpr std::string_view kUnitHelp = "the units are ms, s, min, h, day, week, month (30 days) and year (365 days)";

const Unit* find_unit(std::string_view word) {
  const std::string name = lower(word);
  const auto* unit = std::ranges::find(kUnits, std::string_view(name), &Unit::name);
  return unit == std::end(kUnits) ? nullptr : unit;
}

const Unit* nearest_unit(std::string_view word) {
  if (const Unit* exact = find_unit(word)) return exact;
  const std::string start = lower(word);
  const auto* begun = std::ranges::find_if(kUnits, [&](const Unit& u) { return u.name.starts_with(start); });
  if (word.size() > 2 && begun != std::end(kUnits)) return begun;  // mon is a short month, not a wrong min
  std::array<std::string_view, std::size(kUnits)> names;
  std::ranges::transform(kUnits, names.begin(), &Unit::name);
  return find_unit(nearest(word, names));
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_blank(char c) { return c == ' ' || c == '\t'; }
bool same(std::string_view a, std::string_view b) { return lower(a) == b; }

std::string duration_text(std::int64_t us) {
  for (const Unit& unit : kShortUnits) {
    if (us % unit.us == 0) return (us == unit.us ? "" : std::to_string(us / unit.us)) + std::string(unit.name);
  }
  return {};
}

// --- numbers as people write them ------------------------------------------------------------------------------

struct Ratio {
  std::int64_t over = 0, under = 1;
};

// Whether 5m are five million permits, or five of something else.
enum class Suffix : std::uint8_t { multiplies, is_a_unit };

// Reads 10,000  1_000  1.5  1e3  10k  2M from the front of `text`, and takes it off; nothing if there is no number.
std::optional<Ratio> take_number(std::string_view& text, Suffix suffix) {
  constexpr std::int64_t kMost = std::int64_t{1} << 53;
  std::size_t at = 0;
  Ratio value;
  bool any = false, fraction = false;
  const auto scale = [&](std::int64_t by) { value.over = std::min(kMost, value.over * by); };
  for (; at < text.size(); ++at) {
    const char c = text[at];
    if (is_digit(c)) {
      if (value.under > 1'000'000) return {};
      value.over = std::min(kMost, value.over * 10 + (c - '0'));
      if (fraction) value.under *= 10;
      any = true;
    } else if (c == '.' && !fraction) {
      fraction = true;
    } else if (any && (c == ',' || c == '_' || c == '\'')) {
      const std::string_view group = text.substr(at + 1, 3);
      const bool three = group.size() == 3 && std::ranges::all_of(group, is_digit);
      if (!three || (at + 4 < text.size() && is_digit(text[at + 4]))) return {};  // 1,5 may mean anything
    } else {
      break;
    }
  }
  if (!any) return {};
  if (at + 1 < text.size() && lower(text[at]) == 'e' && is_digit(text[at + 1])) {
    int exponent = 0;
    for (++at; at < text.size() && is_digit(text[at]); ++at) exponent = std::min(20, exponent * 10 + (text[at] - '0'));
    while (exponent-- > 0) scale(10);
  }
  const bool last_letter = at + 1 >= text.size() || !(lower(text[at + 1]) >= 'a' && lower(text[at + 1]) <= 'z');
  if (suffix == Suffix::multiplies && at < text.size() && last_letter) {
    const std::size_t thousands = std::string_view("kmg").find(lower(text[at])) + 1;  // npos + 1 is 0
    if (thousands > 0) ++at;
    for (std::size_t i = 0; i < thousands; ++i) scale(1'000);
  }
  text.remove_prefix(at);
  const std::int64_t divisor = std::gcd(value.over, value.under);
  return Ratio{value.over / divisor, value.under / divisor};
}

// --- the strict reader -----------------------------------------------------------------------------------------

struct Word {
  std::string_view text;
  std::int32_t column = 1;
};

// Its errors carry a column and say what is wrong; parse_quota() adds what would be right.
class Reader {
 public:
  Reader(std::string_view text, std::optional<Algorithm> algorithm) : text_(text), algorithm_(algorithm) {}

  Result<Quota> read() {
    const Word first = word();
    if (first.text.empty() && at_ == text_.size()) return wrong(first, "the quota is empty");
    if (first.text.empty()) return wrong(first, "the number of permits before '/' is missing");
    const auto permits = number(first, "permits are", kPermitsMax);
    if (!permits) return fail(permits.error());
    quota_.permits = *permits;
    skip_blanks();
    const Word slash{text_.substr(at_, 1), column()};
    if (slash.text == "/") {
      ++at_;
      if (algorithm_ == Algorithm::concurrency) return wrong(slash, "concurrency has no rate, it says 'concurrent'");
      return read_rate();
    }
    const Word next = word();
    if (same(next.text, "concurrent")) return read_concurrent(first, next);
    if (next.text.empty()) return wrong(next, "'/' and a period are missing after the number of permits");
    return wrong(next, "after the number of permits comes '/' or 'concurrent', not " + in_quotes(next.text));
  }

 private:
  std::int32_t column() const { return static_cast<std::int32_t>(at_) + 1; }

  void skip_blanks() {
    while (at_ < text_.size() && is_blank(text_[at_])) ++at_;
  }

  // A '/' ends a word, but in the name of a zone.
  Word word(std::string_view ends = " \t/") {
    skip_blanks();
    const std::size_t begin = at_;
    at_ = std::min(text_.find_first_of(ends, at_), text_.size());
    return {text_.substr(begin, at_ - begin), static_cast<std::int32_t>(begin) + 1};
  }

  static tl::unexpected<Error> wrong(const Word& word, std::string what) {
    return fail(ErrorCode::invalid_argument, std::move(what), word.column);
  }
  static tl::unexpected<Error> beyond(const Word& word, std::string what) {
    return fail(ErrorCode::out_of_range, std::move(what), word.column);
  }

  // The value of plain digits, or max + 1.
  static std::int64_t saturated(std::string_view digits, std::int64_t max) {
    std::int64_t value = 0;
    for (const char c : digits) value = std::min(max + 1, value * 10 + (c - '0'));
    return value;
  }

  static Result<std::int64_t> number(const Word& word, std::string_view what, std::int64_t max) {
    const std::string_view text = word.text;
    if (!std::ranges::all_of(text, is_digit)) {
      if (text.front() == '-')
        return beyond(word, std::string(what) + " never negative, as " + in_quotes(text) + " is");
      std::string_view rest = text;
      const auto meant = take_number(rest, Suffix::multiplies);
      const bool whole = meant && rest.empty() && meant->under == 1 && meant->over <= max;
      if (whole) return wrong(word, in_quotes(text) + " is not in plain digits: write " + std::to_string(meant->over));
      return wrong(word, in_quotes(text) + " is not a whole number in plain digits");
    }
    const std::int64_t value = saturated(text, max);
    if (value <= max) return value;
    return beyond(word, std::string(what) + " at most " + std::to_string(max) + ", not " + in_quotes(text));
  }

  Result<Quota> read_rate() {
    const Word period = word();
    if (period.text.empty()) return wrong(period, "the period after '/' is missing");
    if (lower(period.text).starts_with("calendar")) return read_calendar(period);
    const auto us = duration(period);
    if (!us) return fail(us.error());
    quota_.period = Micros{*us};
    const Word next = word();
    if (next.text.empty()) return finish(Algorithm::sliding_window);
    if (!same(next.text, "burst"))
      return wrong(next, "after the period comes 'burst' or nothing, not " + in_quotes(next.text));
    return read_burst(next);
  }

  // 5min, minute: a count and its unit are one word.
  Result<std::int64_t> duration(const Word& word) {
    const std::size_t digits = std::min(word.text.find_first_not_of("0123456789"), word.text.size());
    const Word count{word.text.substr(0, digits), word.column};
    const Word name{word.text.substr(digits), word.column + static_cast<std::int32_t>(digits)};
    if (name.text.empty()) return wrong(word, "the unit must follow " + in_quotes(count.text) + " at once, as in 5min");
    const Unit* unit = find_unit(name.text);
    if (unit == nullptr) {
      if (std::ranges::any_of(name.text, is_digit))
        return wrong(word, in_quotes(word.text) + " is no whole count and unit");
      if (lower(name.text).starts_with("calendar")) return wrong(word, "a calendar's unit takes no count before it");
      const bool misspelt = nearest_unit(name.text) != nullptr;
      return wrong(name, "unknown unit " + in_quotes(name.text) + (misspelt ? "" : "; " + std::string(kUnitHelp)));
    }
    const std::int64_t n = digits > 0 ? saturated(count.text, kPeriodMax.count()) : 1;
    const Wide us = Wide{n} * unit->us;
    if (us < kPeriodMin.count()) return beyond(word, "a period is at least 1ms, not " + in_quotes(word.text));
    if (us > kPeriodMax.count()) return beyond(word, "a period is at most 10years, not " + in_quotes(word.text));
    return static_cast<std::int64_t>(us);
  }

  Result<Quota> read_burst(const Word& burst) {
    if (algorithm_ && !is_bucket(*algorithm_)) {
      return wrong(burst, std::string(to_string(*algorithm_)) + " has no burst, only buckets do");
    }
    const Word count = word();
    if (count.text.empty()) return wrong(count, "the number after 'burst' is missing");
    const auto permits = number(count, "a burst is", kPermitsMax);
    if (!permits) return fail(permits.error());
    if (*permits == 0) return beyond(count, "a burst of 0 lets nothing pass; write 0 permits to deny everything");
    if (quota_.permits == 0)
      return wrong(burst, "a bucket of 0 permits never refills; leave its burst out to deny everything");
    quota_.burst = *permits;
    return finish(Algorithm::token_bucket);
  }

  Result<Quota> read_calendar(const Word& name) {
    const auto* known = std::ranges::find(kCalendarWords, lower(name.text));
    if (known == std::end(kCalendarWords)) {
      return wrong(name,
                   in_quotes(name.text) + " is none of calendar_day, calendar_week, calendar_month, calendar_year");
    }
    if (algorithm_ && algorithm_ != Algorithm::fixed_window) {
      return wrong(name, std::string(to_string(*algorithm_)) + " has no calendar, only fixed_window does");
    }
    quota_.calendar = CalendarPeriod{.unit = kCalendarUnits[known - std::begin(kCalendarWords)]};
    const Word zone = word(" \t");
    if (zone.text.empty()) return finish(Algorithm::fixed_window);
    if (same(zone.text, "burst")) return wrong(zone, "fixed_window has no burst, only buckets do");
    if (!is_zone_name(zone.text)) return wrong(zone, in_quotes(zone.text) + " is no time zone like Europe/Berlin");
    quota_.calendar->zone = zone.text;
    return finish(Algorithm::fixed_window);
  }

  Result<Quota> read_concurrent(const Word& permits, const Word& name) {
    if (algorithm_ && algorithm_ != Algorithm::concurrency) {
      return wrong(name, std::string(to_string(*algorithm_)) + " counts permits of a period, not concurrent ones");
    }
    if (quota_.permits > kConcurrentMax) {
      return beyond(permits, "concurrent permits are at most " + std::to_string(kConcurrentMax));
    }
    quota_.period = kHoldDefault;
    const Word next = word();
    if (next.text.empty()) return finish(Algorithm::concurrency);
    if (!same(next.text, "for"))
      return wrong(next, "after 'concurrent' comes 'for' or nothing, not " + in_quotes(next.text));
    const Word hold = word();
    if (hold.text.empty()) return wrong(hold, "the time after 'for' is missing");
    const auto us = duration(hold);
    if (!us) return fail(us.error());
    quota_.period = Micros{*us};
    return finish(Algorithm::concurrency);
  }

  Result<Quota> finish(Algorithm implied) {
    skip_blanks();
    if (at_ < text_.size()) {
      const Word rest{text_.substr(at_), column()};
      return wrong(rest, "nothing was expected after the quota, found " + in_quotes(rest.text));
    }
    quota_.algorithm = algorithm_.value_or(implied);
    return quota_;
  }

  std::string_view text_;
  std::optional<Algorithm> algorithm_;
  std::size_t at_ = 0;
  Quota quota_;
};

// --- the forgiving reader --------------------------------------------------------------------------------------

class Guesser {
 public:
  Guesser(std::string_view text, std::optional<Algorithm> algorithm) : rest_(text), algorithm_(algorithm) {}

  // The text in the grammar's form, or nothing if it cannot be guessed.
  std::string guess() {
    skip_noise();
    const auto permits = take_number(rest_, Suffix::multiplies);
    if (!permits) return {};
    permits_ = {std::min(permits->over, kPermitsMax), permits->under};
    std::string word = next_word();
    while (is_filler(word)) word = next_word();
    if (!nearest(word, kConcurrentWords).empty()) return concurrent();
    if (algorithm_ == Algorithm::concurrency) return std::to_string(permits_.over) + " concurrent";
    if (word.size() == 3 && word[1] == 'p') word = word[2] == 'm' ? "minute" : word.substr(2);  // rpm, qps
    if (word.starts_with("calendar") && word.size() < 11) word = "calendar_" + next_word();
    if (word.starts_with("calendar")) return calendar(word);
    return rate(word);
  }

 private:
  static constexpr std::string_view kConcurrentWords[] = {"concurrent", "concurrently", "concurrency", "parallel",
                                                          "inflight"};
  static constexpr std::string_view kBurstWords[] = {"burst", "bursts", "bursting", "capacity"};

  static bool is_filler(std::string_view word) {
    constexpr std::string_view kFillers[] = {"per",      "a",   "an",   "each",  "every", "in",    "request",
                                             "requests", "req", "reqs", "calls", "hits",  "times", "permits"};
    return std::ranges::find(kFillers, word) != std::end(kFillers);
  }

  static bool in_word(char c) {
    return (lower(c) >= 'a' && lower(c) <= 'z') || c == '_' || static_cast<unsigned char>(c) >= 0x80;
  }

  void skip_noise() {
    while (!rest_.empty() && !is_digit(rest_.front()) && !in_word(rest_.front())) rest_.remove_prefix(1);
  }

  // A count before the word is kept for rate().
  std::string next_word() {
    skip_noise();
    if (!rest_.empty() && is_digit(rest_.front())) {
      if (const auto count = take_number(rest_, Suffix::is_a_unit)) count_ = *count;
      skip_noise();
    }
    std::size_t length = 0;
    while (length < rest_.size() && (in_word(rest_[length]) || (length > 0 && rest_[length] == '-'))) ++length;
    std::string word = lower(rest_.substr(0, length));
    rest_.remove_prefix(length);
    std::ranges::replace(word, '-', '_');
    return word;
  }

  // count_ of this unit, times permits' denominator, as a period that fits; 0 if it is no whole number of microseconds.
  std::int64_t period_us(const Unit& unit) const {
    const Wide us = Wide{count_.over} * unit.us * permits_.under;
    if (us % count_.under != 0) return 0;
    const std::int64_t most = kPeriodMax.count() / unit.us * unit.us;
    const std::int64_t whole = static_cast<std::int64_t>(std::min(us / count_.under, Wide{most}));
    return std::max({whole, unit.us, kPeriodMin.count()});
  }

  // In the words that were used, where they can stay: minute, not min.
  std::string period_text(const Unit& unit) const {
    const std::int64_t us = period_us(unit);
    if (us == 0) return {};
    return us == unit.us ? std::string(unit.name) : duration_text(us);
  }

  std::string concurrent() {
    const std::string text = std::to_string(std::min(permits_.over / permits_.under, kConcurrentMax)) + " concurrent";
    std::string word = next_word();
    if (word == "for") word = next_word();
    permits_.under = 1;
    const Unit* unit = nearest_unit(word);
    const std::string hold = unit == nullptr ? std::string() : period_text(*unit);
    return hold.empty() ? text : text + " for " + hold;
  }

  std::string calendar(std::string_view word) {
    const std::string_view name = nearest(word, kCalendarWords);
    if (name.empty() || permits_.under != 1) return {};
    const std::string permits = std::to_string(permits_.over) + "/";
    if (algorithm_ && algorithm_ != Algorithm::fixed_window) return permits + std::string(name.substr(9));
    while (!rest_.empty() && is_blank(rest_.front())) rest_.remove_prefix(1);
    std::string zone(rest_.substr(0, std::min(rest_.find_first_of(" \t"), rest_.size())));
    const std::string_view more = rest_.substr(zone.size());
    if (more.size() > 1 && more[1] >= 'A' && more[1] <= 'Z') {  // New York
      zone += '_';
      zone += more.substr(1, std::min(more.find_first_of(" \t", 1), more.size()) - 1);
    }
    const bool keep = is_zone_name(zone) && nearest(zone, kBurstWords).empty();
    return permits + std::string(name) + (keep ? " " + zone : "");
  }

  std::string rate(std::string_view word) {
    const Unit* unit = nearest_unit(word);
    const std::string period = unit == nullptr ? std::string() : period_text(*unit);
    if (period.empty()) return {};
    std::string text = std::to_string(permits_.over) + "/" + period;
    if (permits_.over == 0 || (algorithm_ && !is_bucket(*algorithm_))) return text;
    if (nearest(next_word(), kBurstWords).empty()) return text;
    skip_noise();
    const auto burst = take_number(rest_, Suffix::multiplies);
    if (burst && burst->over == 0) return "0/" + period;
    const std::int64_t count = burst ? std::max<std::int64_t>(1, burst->over / burst->under) : permits_.over;
    return text + " burst " + std::to_string(std::min(count, kPermitsMax));
  }

  std::string_view rest_;
  std::optional<Algorithm> algorithm_;
  Ratio permits_;
  Ratio count_{1, 1};
};

std::string_view example_of(std::optional<Algorithm> algorithm) {
  if (algorithm == Algorithm::concurrency) return "20 concurrent";
  return algorithm && is_bucket(*algorithm) ? "10/s burst 50" : "100/minute";
}

// Other names that people know these algorithms by.
struct OtherName {
  std::string_view name;
  Algorithm algorithm;
};
constexpr OtherName kOtherNames[] = {
    {"gcra", Algorithm::token_bucket},
    {"token", Algorithm::token_bucket},
    {"leaky", Algorithm::leaky_bucket},
    {"log", Algorithm::sliding_log},
    {"sliding", Algorithm::sliding_window},
    {"sliding_counter", Algorithm::sliding_window},
    {"sliding_window_counter", Algorithm::sliding_window},
    {"sliding_window_log", Algorithm::sliding_log},
    {"fixed", Algorithm::fixed_window},
    {"fixed_window_counter", Algorithm::fixed_window},
    {"calendar", Algorithm::fixed_window},
    {"concurrent", Algorithm::concurrency},
    {"semaphore", Algorithm::concurrency},
};

}  // namespace

std::string_view to_string(Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::fixed_window:
      return "fixed_window";
    case Algorithm::sliding_log:
      return "sliding_log";
    case Algorithm::sliding_window:
      return "sliding_window";
    case Algorithm::token_bucket:
      return "token_bucket";
    case Algorithm::leaky_bucket:
      return "leaky_bucket";
    case Algorithm::leaky_meter:
      return "leaky_meter";
    case Algorithm::concurrency:
      return "concurrency";
  }
  return "?";
}

Result<Algorithm> parse_algorithm(std::string_view name) {
  std::array<std::string_view, std::size(kAlgorithms)> names;
  std::ranges::transform(kAlgorithms, names.begin(), [](Algorithm a) { return to_string(a); });
  if (const auto known = std::ranges::find(names, name); known != names.end()) {
    return kAlgorithms[known - names.begin()];
  }
  std::string plain = lower(name.substr(0, kWordMax));
  std::ranges::replace_if(
      plain, [](char c) { return c == '-' || c == ' ' || c == '.'; }, '_');
  const auto* other = std::ranges::find(kOtherNames, std::string_view(plain), &OtherName::name);
  const std::string_view meant = other != std::end(kOtherNames) ? to_string(other->algorithm) : nearest(plain, names);
  std::string message = "unknown algorithm " + in_quotes(name);
  if (!meant.empty()) return fail(ErrorCode::invalid_argument, message + "; did you mean " + std::string(meant) + "?");
  message += "; there are ";
  for (const std::string_view known : names) {
    message += std::string(known) + (known == names.back() ? "" : known == names[names.size() - 2] ? " and " : ", ");
  }
  return fail(ErrorCode::invalid_argument, std::move(message));
}

Result<Quota> parse_quota(std::string_view text, std::optional<Algorithm> algorithm) {
  if (text.size() > kQuotaBytesMax) {
    return fail(ErrorCode::invalid_argument,
                "column 257: a quota has at most 256 bytes, this has " + std::to_string(text.size()) +
                    "; write it like " + std::string(example_of(algorithm)),
                257);
  }
  auto quota = Reader(text, algorithm).read();
  if (quota) return quota;
  Error error = std::move(quota).error();
  const std::string guess = Guesser(text, algorithm).guess();
  const bool works = Reader(guess, algorithm).read().has_value();
  error.message = "column " + std::to_string(error.column) + ": " + error.message;
  error.message += works ? "; did you mean " + guess + "?" : "; write it like " + std::string(example_of(algorithm));
  return fail(std::move(error));
}

std::string to_string(const Quota& quota) {
  std::string text = std::to_string(quota.permits);
  if (quota.algorithm == Algorithm::concurrency) {
    text += " concurrent";
    return quota.period == kHoldDefault ? text : text + " for " + duration_text(quota.period.count());
  }
  if (quota.calendar) {
    text += "/calendar_" + std::string(to_string(quota.calendar->unit));
    return quota.calendar->zone == "UTC" ? text : text + " " + quota.calendar->zone;
  }
  text += "/" + duration_text(quota.period.count());
  return quota.burst ? text + " burst " + std::to_string(*quota.burst) : text;
}

}  // namespace weir
