// The lenient reader of quotas: skips noise, fillers and misspelt words, and writes the rest in the grammar's form. See
// quota_words.h.
//
// Pure; any thread. Tested by quota_test.cc and fuzz/quota.cc.
#include <algorithm>
#include <iterator>

#include "algorithm/calendar.h"
#include "algorithm/division.h"
#include "algorithm/limit.h"
#include "algorithm/quota_words.h"
#include "base/nearest.h"

namespace weir::algorithm {
namespace {

class Guesser {
 public:
  Guesser(std::string_view text, std::optional<Algorithm> algorithm) : rest_(text), algorithm_(algorithm) {}

  // The text in the grammar's form; empty if there is no good guess.
  std::string guess() {
    skip_noise();
    const auto permits = take_number(rest_, Suffix::multiplies);
    if (!permits) return {};
    permits_ = {std::min(permits->over, kPermitsMax), permits->under};
    std::string word = next_word();
    while (is_filler(word)) word = next_word();
    if (!base::nearest(word, kConcurrentWords).empty()) return concurrent();
    if (algorithm_ == Algorithm::concurrency) return std::to_string(permits_.over) + " concurrent";
    if (word.size() == 3 && word[1] == 'p') word = word[2] == 'm' ? "minute" : word.substr(2);  // rpm, qps
    return is_calendar(word) ? calendar(word) : rate(word);
  }

 private:
  static constexpr std::string_view kConcurrentWords[] = {"concurrent", "concurrently", "concurrency", "parallel",
                                                          "inflight"};
  static constexpr std::string_view kBurstWords[] = {"burst", "bursts", "bursting", "capacity"};

  static bool is_filler(std::string_view word) {
    constexpr std::string_view kFillers[] = {"per", "a",    "an",    "each", "every", "in",      "request", "requests",
                                             "req", "reqs", "calls", "hits", "times", "permits", "r"};
    return std::ranges::find(kFillers, word) != std::end(kFillers);
  }

  static bool in_word(char c) {
    return (base::lower(c) >= 'a' && base::lower(c) <= 'z') || c == '_' || static_cast<unsigned char>(c) >= 0x80;
  }

  void skip_noise() {
    while (!rest_.empty() && !base::is_digit(rest_.front()) && !in_word(rest_.front())) rest_.remove_prefix(1);
  }

  // Stores a count before the word in count_, for rate().
  std::string next_word() {
    skip_noise();
    if (!rest_.empty() && base::is_digit(rest_.front())) {
      if (const auto count = take_number(rest_, Suffix::is_a_unit)) count_ = *count;
      skip_noise();
    }
    std::size_t length = 0;
    while (length < rest_.size() && (in_word(rest_[length]) || (length > 0 && rest_[length] == '-'))) ++length;
    std::string word = base::lower(rest_.substr(0, length));
    rest_.remove_prefix(length);
    std::ranges::replace(word, '-', '_');
    return word;
  }

  static bool is_calendar(std::string_view word) {
    constexpr std::string_view kCalendar[] = {"calendar"};
    return word.starts_with("calendar") || !base::nearest(word.substr(0, word.find('_')), kCalendar).empty();
  }

  // The period that begins with `word` and the count before it; 1h30m continues in rest_. Empty if there is no good
  // guess, or the period is too short. A period that is too long becomes the longest that its unit can express.
  std::string take_period(std::string_view word) {
    const Unit* unit = nearest_unit(word);
    if (unit == nullptr) return {};
    if (count_.over == 0) count_ = {1, 1};
    Wide us = Wide{count_.over} * unit->us * permits_.under;
    if (us % count_.under != 0) return {};
    us /= count_.under;
    bool single = true;
    while (const auto more = take_more()) {
      if (*more == 0) return {};
      us += Wide{*more} * permits_.under;
      single = false;
    }
    const std::int64_t most = single ? kPeriodMax.count() / unit->us * unit->us : kPeriodMax.count();
    if (us < kPeriodMin.count() || (us > most && !single)) return {};
    us = std::min(us, Wide{most});
    // Keeps the word that was used, where possible: minute, not min.
    const bool keep = us == unit->us && unit->name.size() > 1;
    return keep ? std::string(unit->name) : duration_text(static_cast<std::int64_t>(us));
  }

  // The microseconds of 30m in 1h30m; 0 if they are unclear; nothing if the period has ended. A separate number
  // without a unit is not part of the period.
  std::optional<std::int64_t> take_more() {
    std::string_view rest = rest_;
    const auto skip = [&] { rest.remove_prefix(std::min(rest.find_first_not_of(" \t,"), rest.size())); };
    skip();
    if (rest.starts_with("and ")) rest.remove_prefix(4);
    skip();
    if (rest.empty() || !base::is_digit(rest.front())) return {};
    const bool apart = rest.size() < rest_.size();
    const auto count = take_number(rest, Suffix::is_a_unit);
    std::size_t length = 0;
    while (length < rest.size() && in_word(rest[length])) ++length;
    const Unit* unit = find_unit(rest.substr(0, length));
    if (unit == nullptr && apart) return {};
    if (unit == nullptr || !count || count->under != 1 || count->over > kPeriodMax.count() / unit->us) return 0;
    rest_ = rest.substr(length);
    return count->over * unit->us;
  }

  std::string concurrent() {
    const std::string text = std::to_string(std::min(permits_.over / permits_.under, kConcurrentMax)) + " concurrent";
    std::string word = next_word();
    const bool says_hold = word == "for";
    if (says_hold) word = next_word();
    permits_.under = 1;
    const std::string hold = take_period(word);
    if (hold.empty()) return says_hold && !word.empty() ? std::string() : text;
    return text + " for " + hold;
  }

  // calendar_month, and the zone after it. There are no calendar hours: those are plain periods.
  std::string calendar(std::string_view word) {
    word.remove_prefix(std::min(word.starts_with("calendar") ? 8 : word.find('_'), word.size()));
    while (word.starts_with('_')) word.remove_prefix(1);
    const std::string unit_word = word.empty() ? next_word() : std::string(word);
    const Unit* unit = nearest_unit(unit_word);
    if (unit == nullptr || permits_.under != 1) return {};
    const auto is_it = [&](std::string_view name) { return find_unit(name.substr(9))->us == unit->us; };
    const auto* name = std::ranges::find_if(kCalendarWords, is_it);
    if (name == std::end(kCalendarWords)) return rate(unit_word);
    const std::string permits = std::to_string(permits_.over) + "/";
    if (algorithm_ && algorithm_ != Algorithm::fixed_window) return permits + std::string(name->substr(9));
    const std::string zone = take_zone();
    const bool keep = is_zone_name(zone) && base::nearest(zone, kBurstWords).empty();
    return permits + std::string(*name) + (keep ? " " + zone : "");
  }

  // Europe Berlin becomes Europe/Berlin, New York becomes New_York. It does not check whether the zone exists.
  std::string take_zone() {
    constexpr std::string_view kAreas[] = {"africa",    "america", "antarctica", "arctic", "asia",   "atlantic",
                                           "australia", "etc",     "europe",     "indian", "pacific"};
    std::string zone(take_until_blank());
    while (!rest_.empty()) {
      const std::string_view next = take_until_blank();
      const bool area = std::ranges::find(kAreas, base::lower(zone)) != std::end(kAreas);
      if (next.find('/') != std::string_view::npos) return std::string(zone.find('/') == zone.npos ? next : zone);
      if (next.empty() || !(area || (next[0] >= 'A' && next[0] <= 'Z'))) break;
      zone += area ? '/' : '_';
      zone += next;
    }
    return zone;
  }

  std::string_view take_until_blank() {
    while (!rest_.empty() && base::is_blank(rest_.front())) rest_.remove_prefix(1);
    const std::string_view word = rest_.substr(0, rest_.find_first_of(" \t"));
    rest_.remove_prefix(word.size());
    return word;
  }

  // 100 m/s: the m does not mean minutes here.
  bool is_divided_again() const {
    if (!rest_.starts_with('/')) return false;
    std::size_t end = 1;
    while (end < rest_.size() && in_word(rest_[end])) ++end;
    return find_unit(rest_.substr(1, end - 1)) != nullptr;
  }

  std::string rate(std::string_view word) {
    const std::string period = take_period(word);
    if (period.empty() || is_divided_again()) return {};
    std::string text = std::to_string(permits_.over) + "/" + period;
    if (permits_.over == 0 || (algorithm_ && !is_bucket(*algorithm_))) return text;
    if (base::nearest(next_word(), kBurstWords).empty()) return text;
    skip_noise();
    if (rest_.empty()) return text + " burst " + std::to_string(permits_.over);  // the default burst
    const auto burst = take_number(rest_, Suffix::multiplies);
    if (!burst) return {};
    if (burst->over == 0) return "0/" + period;
    const std::int64_t count = std::max<std::int64_t>(1, burst->over / burst->under);
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

}  // namespace weir::algorithm
