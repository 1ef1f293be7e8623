// Parses and prints quotas, and suggests the nearest valid form of an invalid text.
//
// There are two readers. The strict one in this file implements the grammar of weir/quota.h and accepts or rejects,
// with a column. When it rejects, the lenient reader (quota_guess.cc) guesses what was meant. The error shows the
// guess only if the strict reader accepts it, so every suggestion works. Pure; any thread. Tested by quota_test.cc
// and fuzz/quota.cc.
#include "weir/quota.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "algorithm/calendar.h"
#include "algorithm/division.h"
#include "algorithm/limit.h"
#include "algorithm/quota_words.h"
#include "base/nearest.h"

namespace weir {
namespace {

constexpr std::size_t kQuotaBytesMax = 256;
constexpr std::string_view kUnitHelp = "the units are ms, s, min, h, day, week, month (30 days) and year (365 days)";

bool same(std::string_view a, std::string_view b) { return base::lower(a) == b; }

struct Word {
  std::string_view text;
  std::int32_t column = 1;
};

// Its errors have a column and say what is wrong; parse_quota() adds the suggestion.
class Reader {
 public:
  Reader(std::string_view text, std::optional<Algorithm> algorithm) : text_(text), algorithm_(algorithm) {}

  Result<Quota> read() {
    const Word first = word();
    if (first.text.empty() && at_ == text_.size()) return wrong(first, "the limit is empty");
    if (first.text.empty()) return wrong(first, "the number of permits before '/' is missing");
    const auto permits = number(first, "permits are", kPermitsMax);
    if (!permits) return fail(permits.error());
    quota_.permits = *permits;
    skip_blanks();
    const Word slash{text_.substr(at_, 1), column()};
    if (slash.text == "/") {
      ++at_;
      if (algorithm_ == Algorithm::concurrency)
        return wrong(slash, "concurrency has no rate: write 'concurrent' instead of '/'");
      return read_rate();
    }
    const Word next = word();
    if (same(next.text, "concurrent")) return read_concurrent(first, next);
    if (next.text.empty()) return wrong(next, "'/' and a period are missing after the number of permits");
    return wrong(next, "after the number of permits comes '/' or 'concurrent', not " + base::in_quotes(next.text));
  }

 private:
  std::int32_t column() const { return static_cast<std::int32_t>(at_) + 1; }

  void skip_blanks() {
    while (at_ < text_.size() && base::is_blank(text_[at_])) ++at_;
  }

  // A '/' ends a word, except in the name of a zone.
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

  // The value of plain digits, at most max + 1.
  static std::int64_t saturated(std::string_view digits, std::int64_t max) {
    std::int64_t value = 0;
    for (const char c : digits) value = std::min(max + 1, value * 10 + (c - '0'));
    return value;
  }

  static Result<std::int64_t> number(const Word& word, std::string_view what, std::int64_t max) {
    const std::string_view text = word.text;
    if (!std::ranges::all_of(text, base::is_digit)) {
      if (text.front() == '-')
        return beyond(word, std::string(what) + " never negative; found " + base::in_quotes(text));
      std::string_view rest = text;
      const auto meant = algorithm::take_number(rest, algorithm::Suffix::multiplies);
      const bool whole = meant && rest.empty() && meant->under == 1 && meant->over <= max;
      if (whole)
        return wrong(word, base::in_quotes(text) + " is not in plain digits: write " + std::to_string(meant->over));
      return wrong(word, base::in_quotes(text) + " is not a whole number in plain digits");
    }
    const std::int64_t value = saturated(text, max);
    if (value <= max) return value;
    return beyond(word, std::string(what) + " at most " + std::to_string(max) + ", not " + base::in_quotes(text));
  }

  Result<Quota> read_rate() {
    const Word period = word();
    if (period.text.empty()) return wrong(period, "the period after '/' is missing");
    if (base::lower(period.text).starts_with("calendar")) return read_calendar(period);
    const auto us = duration(period);
    if (!us) return fail(us.error());
    quota_.period = Micros{*us};
    const Word next = word();
    if (next.text.empty()) return finish(Algorithm::sliding_window);
    if (!same(next.text, "burst"))
      return wrong(next, "after the period comes 'burst' or nothing, not " + base::in_quotes(next.text));
    return read_burst(next);
  }

  // 5min, minute: the count and its unit are one word.
  Result<std::int64_t> duration(const Word& word) {
    const std::size_t digits = std::min(word.text.find_first_not_of("0123456789"), word.text.size());
    const Word count{word.text.substr(0, digits), word.column};
    const Word name{word.text.substr(digits), word.column + static_cast<std::int32_t>(digits)};
    if (name.text.empty())
      return wrong(word, "the unit must directly follow " + base::in_quotes(count.text) + ", as in 5min");
    const algorithm::Unit* unit = algorithm::find_unit(name.text);
    if (unit == nullptr) {
      if (std::ranges::any_of(name.text, base::is_digit))
        return wrong(word, base::in_quotes(word.text) + " is not a whole number and a unit");
      if (base::lower(name.text).starts_with("calendar"))
        return wrong(word, "a calendar unit takes no number before it");
      const bool misspelt = algorithm::nearest_unit(name.text) != nullptr;
      return wrong(name,
                   "unknown unit " + base::in_quotes(name.text) + (misspelt ? "" : "; " + std::string(kUnitHelp)));
    }
    const std::int64_t n = digits > 0 ? saturated(count.text, kPeriodMax.count()) : 1;
    const algorithm::Wide us = algorithm::Wide{n} * unit->us;
    if (us < kPeriodMin.count()) return beyond(word, "a period is at least 1ms, not " + base::in_quotes(word.text));
    if (us > kPeriodMax.count()) return beyond(word, "a period is at most 10years, not " + base::in_quotes(word.text));
    return static_cast<std::int64_t>(us);
  }

  Result<Quota> read_burst(const Word& burst) {
    if (algorithm_ && !algorithm::is_bucket(*algorithm_)) {
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
    const auto* known = std::ranges::find(algorithm::kCalendarWords, base::lower(name.text));
    if (known == std::end(algorithm::kCalendarWords)) {
      return wrong(name,
                   base::in_quotes(name.text) + " is not calendar_day, calendar_week, calendar_month or calendar_year");
    }
    if (algorithm_ && algorithm_ != Algorithm::fixed_window) {
      return wrong(name, std::string(to_string(*algorithm_)) + " has no calendar, only fixed_window does");
    }
    quota_.calendar = CalendarPeriod{.unit = static_cast<CalendarUnit>(known - std::begin(algorithm::kCalendarWords))};
    const Word zone = word(" \t");
    if (zone.text.empty()) return finish(Algorithm::fixed_window);
    if (same(zone.text, "burst")) return wrong(zone, "fixed_window has no burst, only buckets do");
    if (!algorithm::is_zone_name(zone.text))
      return wrong(zone, base::in_quotes(zone.text) + " is not a time zone like Europe/Berlin");
    quota_.calendar->zone = zone.text;
    return finish(Algorithm::fixed_window);
  }

  Result<Quota> read_concurrent(const Word& permits, const Word& name) {
    if (algorithm_ && algorithm_ != Algorithm::concurrency) {
      return wrong(name, std::string(to_string(*algorithm_)) + " counts permits per period, not concurrent permits");
    }
    if (quota_.permits > kConcurrentMax) {
      return beyond(permits, "concurrent permits are at most " + std::to_string(kConcurrentMax));
    }
    quota_.period = kHoldDefault;
    const Word next = word();
    if (next.text.empty()) return finish(Algorithm::concurrency);
    if (!same(next.text, "for"))
      return wrong(next, "after 'concurrent' comes 'for' or nothing, not " + base::in_quotes(next.text));
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
      return wrong(rest, "unexpected text after the limit: " + base::in_quotes(rest.text));
    }
    quota_.algorithm = algorithm_.value_or(implied);
    return quota_;
  }

  std::string_view text_;
  std::optional<Algorithm> algorithm_;
  std::size_t at_ = 0;
  Quota quota_;
};

std::string_view example_of(std::optional<Algorithm> algorithm) {
  if (algorithm == Algorithm::concurrency) return "20 concurrent";
  return algorithm && algorithm::is_bucket(*algorithm) ? "10/s burst 50" : "100/minute";
}

}  // namespace

Result<Quota> parse_quota(std::string_view text, std::optional<Algorithm> algorithm) {
  if (text.size() > kQuotaBytesMax) {
    return fail(ErrorCode::invalid_argument,
                "column 257: a limit has at most 256 bytes, this one has " + std::to_string(text.size()) +
                    "; write it like " + std::string(example_of(algorithm)),
                257);
  }
  auto quota = Reader(text, algorithm).read();
  if (quota) return quota;
  Error error = std::move(quota).error();
  const std::string guess = algorithm::guess_quota(text, algorithm);
  const bool works = Reader(guess, algorithm).read().has_value();
  error.message = "column " + std::to_string(error.column) + ": " + error.message;
  error.message += works ? "; did you mean " + guess + "?" : "; write it like " + std::string(example_of(algorithm));
  return fail(std::move(error));
}

std::string to_string(const Quota& quota) {
  std::string text = std::to_string(quota.permits);
  if (quota.algorithm == Algorithm::concurrency) {
    text += " concurrent";
    return quota.period == kHoldDefault ? text : text + " for " + algorithm::duration_text(quota.period.count());
  }
  if (quota.calendar) {
    text += "/calendar_" + std::string(algorithm::to_string(quota.calendar->unit));
    return quota.calendar->zone == "UTC" ? text : text + " " + quota.calendar->zone;
  }
  text += "/" + algorithm::duration_text(quota.period.count());
  return quota.burst ? text + " burst " + std::to_string(*quota.burst) : text;
}

}  // namespace weir
