// Reads on past noise, fillers and misspelt words. See quota_guess.h.
#include "algorithm/quota_guess.h"

#include <algorithm>
#include <iterator>

#include "algorithm/calendar.h"
#include "algorithm/division.h"
#include "algorithm/limit.h"
#include "algorithm/quota_words.h"
#include "nearest.h"

namespace weir {
namespace {

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

}  // namespace

std::string guess_quota(std::string_view text, std::optional<Algorithm> algorithm) {
  return Guesser(text, algorithm).guess();
}

}  // namespace weir
