// The reader of scenario files; the format is described in scenario.h, the player is scenario_player.cc.
//
// A line is cut into words, and each kind of line takes its words from left to right. No two kinds begin alike: times
// hold a colon or end in `s`, costs are plain integers, everything else is a word of the format. One thread.
#include "scenario.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <utility>

namespace weir::scenario {
namespace {

constexpr std::int64_t kSecond = 1'000'000;
constexpr std::int64_t kMicrosMax = std::int64_t{1} << 60;
constexpr std::int64_t kRequestsMax = 1'000'000;
constexpr std::string_view kBlanks = " \t\r";

// ------------------------------------------------------------------------------------------------ text

std::string quoted(std::string_view text) { return "\"" + std::string(text) + "\""; }

std::string_view trim(std::string_view text) {
  const auto first = text.find_first_not_of(kBlanks);
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

// Cuts `text` before the first `mark` and returns the part before it; `text` becomes what follows.
std::string_view cut(std::string_view& text, std::string_view mark) {
  const auto at = text.find(mark);
  const auto part = text.substr(0, at);
  text = at == text.npos ? std::string_view{} : text.substr(at + mark.size());
  return part;
}

std::string_view next_word(std::string_view& text) {
  text = trim(text);
  const auto end = std::min(text.find_first_of(kBlanks), text.size());
  const auto word = text.substr(0, end);
  text = trim(text.substr(end));
  return word;
}

std::optional<std::int64_t> to_integer(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return {};
  return value;
}

// Digits only, at most `max`.
std::optional<std::int64_t> to_count(std::string_view text, std::int64_t max) {
  if (text.empty() || text.find_first_not_of("0123456789") != text.npos) return {};
  const auto value = to_integer(text);
  return value && *value <= max ? value : std::nullopt;
}

// "69.999999" in units of `unit` microseconds; nothing finer than a microsecond.
std::optional<std::int64_t> to_micros(std::string_view text, std::int64_t unit) {
  std::string_view fraction = text;
  const auto whole = to_count(cut(fraction, "."), kMicrosMax / unit);
  if (!whole) return {};
  std::int64_t value = *whole * unit;
  if (text.find('.') == text.npos) return value;
  if (fraction.empty() || fraction.find_first_not_of("0123456789") != fraction.npos) return {};
  std::int64_t place = unit;
  for (const char digit : fraction) {
    if (place % 10 != 0) return {};
    place /= 10;
    value += (digit - '0') * place;
  }
  return value;
}

// ----------------------------------------------------------------------------------------------- times

// "m:ss", "h:mm:ss", ":ss", each with an optional fraction of a second.
std::optional<std::int64_t> clock_time(std::string_view text) {
  const auto last = text.rfind(':');
  if (last == text.npos) return {};
  const std::string_view seconds_text = text.substr(last + 1);
  const auto seconds = to_micros(seconds_text, kSecond);
  const bool two_digits = seconds_text.substr(0, seconds_text.find('.')).size() == 2;
  if (!seconds || !two_digits || *seconds >= 60 * kSecond) return {};
  std::string_view minutes_text = text.substr(0, last);
  std::int64_t hours = 0;
  if (const auto colon = minutes_text.find(':'); colon != minutes_text.npos) {
    const auto count = to_count(minutes_text.substr(0, colon), 1'000'000);
    minutes_text.remove_prefix(colon + 1);
    if (!count || minutes_text.size() != 2 || !to_count(minutes_text, 59)) return {};
    hours = *count;
  }
  const auto minutes = minutes_text.empty() ? 0 : to_count(minutes_text, 1'000'000);
  if (!minutes) return {};
  return (hours * 60 + *minutes) * 60 * kSecond + *seconds;
}

// "2024-03-31"
std::optional<std::int64_t> day_start(std::string_view text) {
  const auto year = to_count(cut(text, "-"), 9999);
  const auto month = to_count(cut(text, "-"), 12);
  const auto day = to_count(text, 31);
  if (!year || !month || !day) return {};
  const std::chrono::year_month_day date{std::chrono::year(static_cast<int>(*year)),
                                         std::chrono::month(static_cast<unsigned>(*month)),
                                         std::chrono::day(static_cast<unsigned>(*day))};
  if (!date.ok() || *year < 1970) return {};
  return Micros{std::chrono::sys_days{date}.time_since_epoch()}.count();
}

// Takes a time from the front of `text`.
Result<std::int64_t> take_time(std::string_view& text) {
  const std::string_view word = next_word(text);
  std::optional<std::int64_t> time;
  if (const auto day = day_start(word)) {
    const std::string_view clock = next_word(text);
    time = clock.ends_with('Z') ? clock_time(clock.substr(0, clock.size() - 1)) : std::nullopt;
    if (!time || *time >= 86'400 * kSecond) {
      return fail(ErrorCode::invalid_argument,
                  quoted(clock) + " does not follow a date; write it like 2024-03-31 01:30:00Z");
    }
    *time += *day;
  } else {
    time = word.ends_with('s') ? to_micros(word.substr(0, word.size() - 1), kSecond) : clock_time(word);
  }
  if (!time) {
    return fail(ErrorCode::invalid_argument,
                quoted(word) + " is no time; write 0:05, :55, 12:01:30, 69.999999s or 2024-03-31 01:30:00Z");
  }
  if (*time >= kTimeEnd) return fail(ErrorCode::out_of_range, quoted(word) + " is later than the year 2112");
  return *time;
}

// "5s", "3d 2h", "never"
Result<Micros> parse_wait(std::string_view text) {
  struct Unit {
    std::string_view name;
    std::int64_t us;
  };
  constexpr Unit kUnits[] = {{"us", 1},      {"ms", 1'000},          {"min", 60 * kSecond},
                             {"s", kSecond}, {"h", 3'600 * kSecond}, {"d", 86'400 * kSecond}};
  if (text == "never") return kNever;
  Micros sum{0};
  std::string_view rest = text;
  do {
    const std::string_view word = next_word(rest);
    const auto digits = std::min(word.find_first_not_of("0123456789."), word.size());
    const auto* const unit = std::find_if(std::begin(kUnits), std::end(kUnits),
                                          [&](const Unit& u) { return u.name == word.substr(digits); });
    const auto part = unit == std::end(kUnits) ? std::nullopt : to_micros(word.substr(0, digits), unit->us);
    if (!part || *part > kMicrosMax - sum.count()) {
      return fail(ErrorCode::invalid_argument, quoted(text) + " is no wait; write 5s, 0.200001s, 3d 2h 5min or never");
    }
    sum += Micros{*part};
  } while (!rest.empty());
  return sum;
}

// ----------------------------------------------------------------------------------------------- lines

Result<void> parse_field(std::string_view field, Expected& expected) {
  std::string_view rest = field;
  const std::string_view first = next_word(rest);
  const auto wait_into = [&](std::optional<Micros>& slot) -> Result<void> {
    auto wait = parse_wait(rest);
    if (!wait) return fail(wait.error());
    if (slot) return fail(ErrorCode::invalid_argument, quoted(first) + " is stated twice");
    slot = *wait;
    return {};
  };
  const auto count_into = [&](std::optional<std::int64_t>& slot, std::string_view digits) -> Result<void> {
    const auto count = to_count(digits, INT64_MAX);
    if (!count) return fail(ErrorCode::invalid_argument, quoted(digits) + " is no count of permits");
    if (slot) return fail(ErrorCode::invalid_argument, quoted(field) + " is stated before");
    slot = *count;
    return {};
  };
  if (first == "retry") return wait_into(expected.retry_after);
  if (first == "reset") return wait_into(expected.reset_after);
  if (first == "delay") return wait_into(expected.delay);
  if (first == "limit") return count_into(expected.limit, rest);
  if (rest == "left") return count_into(expected.remaining, first);
  return fail(ErrorCode::invalid_argument,
              quoted(field) + " is no part of an answer; there are: N left, retry W, reset W, delay W, limit N");
}

Result<Expected> parse_answer(std::string_view text) {
  Expected expected;
  const std::string_view verdict = trim(cut(text, ","));
  if (verdict != "allow" && verdict != "deny") {
    return fail(ErrorCode::invalid_argument, "an answer begins with allow or deny, not with " + quoted(verdict));
  }
  expected.allowed = verdict == "allow";
  while (!trim(text).empty()) {
    if (auto field = parse_field(trim(cut(text, ",")), expected); !field) return fail(field.error());
  }
  return expected;
}

// "algorithm quota", or with `current` just "quota".
Result<Quota> parse_terms(std::string_view text, std::optional<Algorithm> current) {
  std::string_view rest = text;
  const auto algorithm = parse_algorithm(next_word(rest));
  if (!algorithm && !current) return fail(algorithm.error());
  return algorithm ? parse_quota(rest, *algorithm) : parse_quota(text, *current);
}

Result<void> parse_release(std::string_view question, std::string_view answer, Line& line) {
  line.action = Action::release;
  line.id = next_word(question);
  if (line.id.empty() || !question.empty()) {
    return fail(ErrorCode::invalid_argument, "release takes one id, like: 0:05 release a -> held");
  }
  if (answer != "held" && answer != "not held") {
    return fail(ErrorCode::invalid_argument, "a release is answered held or not held, not " + quoted(answer));
  }
  line.held = answer == "held";
  return {};
}

Result<void> parse_acquire(std::string_view question, Line& line) {
  line.action = Action::acquire;
  line.id = next_word(question);
  if (!line.id.empty() && question.empty()) return {};
  const std::string_view word = next_word(question);
  const auto cost = to_integer(question);
  if (word != "cost" || !cost) {
    return fail(ErrorCode::invalid_argument, "acquire takes an id, and a cost if it is not 1: acquire a cost 2");
  }
  line.cost = *cost;
  return {};
}

// "3", or "100 x 1"
Result<void> parse_check(std::string_view question, Line& line) {
  line.action = Action::check;
  std::string_view cost_text = question;
  if (const auto cross = question.find(" x "); cross != question.npos) {
    const auto requests = to_count(trim(question.substr(0, cross)), kRequestsMax);
    if (!requests || *requests < 1) {
      return fail(ErrorCode::out_of_range, quoted(question) + " must be of 1 to 1000000 requests, like: 100 x 1");
    }
    line.requests = *requests;
    cost_text = trim(question.substr(cross + 3));
  }
  const auto cost = to_integer(cost_text);
  if (!cost) {
    return fail(ErrorCode::invalid_argument,
                quoted(cost_text) + " is no cost; write 1, -3, 100 x 1, acquire a or release a");
  }
  line.cost = *cost;
  return {};
}

Result<void> parse_question(std::string_view text, Line& line) {
  const auto arrow = text.find("->");
  if (arrow == text.npos) {
    return fail(ErrorCode::invalid_argument, "no answer; write it like: 0:05 1 -> allow, 4 left");
  }
  const std::string_view answer = trim(text.substr(arrow + 2));
  std::string_view question = trim(text.substr(0, arrow));
  auto time = take_time(question);
  if (!time) return fail(time.error());
  line.now_us = *time;

  std::string_view rest = question;
  const std::string_view word = next_word(rest);
  if (word == "release") return parse_release(rest, answer, line);
  auto parsed = word == "acquire" ? parse_acquire(rest, line) : parse_check(question, line);
  if (!parsed) return parsed;
  auto expected = parse_answer(answer);
  if (!expected) return fail(expected.error());
  line.expected = *expected;
  return {};
}

// ------------------------------------------------------------------------------------------------ file

class Reader {
 public:
  explicit Reader(std::string_view name) : name_(name) {}

  Result<std::vector<Scenario>> read(std::string_view text) {
    while (!text.empty()) {
      ++number_;
      if (auto done = read_line(cut(text, "\n")); !done) return fail(done.error().code, place(done.error()));
    }
    if (scenarios_.empty()) return fail(ErrorCode::invalid_argument, name_ + ": holds no case");
    if (auto ended = end_case(); !ended) return fail(ended.error().code, place(ended.error()));
    return std::move(scenarios_);
  }

 private:
  std::string place(const Error& error) const { return name_ + ":" + std::to_string(number_) + ": " + error.message; }

  Result<void> read_line(std::string_view raw) {
    std::string_view comment = raw;
    const std::string_view statement = trim(cut(comment, "#"));
    comment = trim(comment);
    if (statement.empty()) return note(raw, comment);
    const char first = statement.front();
    const bool timed = first == ':' || (first >= '0' && first <= '9');
    if (statement.starts_with("change ")) return read_change(raw, statement.substr(7));
    return timed ? read_question(raw, statement) : begin_case(statement, comment);
  }

  // A comment line belongs to the title of the case that follows it at once; an empty line parts the two.
  Result<void> note(std::string_view raw, std::string_view comment) {
    if (trim(raw).empty()) {
      title_.clear();
    } else {
      title_ += (title_.empty() ? "" : " ") + std::string(comment);
    }
    return {};
  }

  Result<void> begin_case(std::string_view statement, std::string_view comment) {
    if (auto ended = end_case(); !ended) return ended;
    auto quota = parse_terms(statement, {});
    if (!quota) return fail(quota.error());
    algorithm_ = quota->algorithm;
    last_us_ = 0;
    std::string_view quota_text = statement;
    next_word(quota_text);
    scenarios_.push_back(
        {name_, number_, title_.empty() ? std::string(comment) : title_, std::string(quota_text), *quota, {}});
    title_.clear();
    return {};
  }

  Result<void> end_case() const {
    if (scenarios_.empty() || !scenarios_.back().lines.empty()) return {};
    return fail(ErrorCode::invalid_argument,
                "the case of line " + std::to_string(scenarios_.back().line) + " asks nothing");
  }

  Result<void> read_change(std::string_view raw, std::string_view terms) {
    auto quota = parse_terms(terms, algorithm_);
    if (!quota) return fail(quota.error());
    Line line;
    line.action = Action::change;
    line.quota = *quota;
    algorithm_ = quota->algorithm;
    return add(raw, std::move(line));
  }

  Result<void> read_question(std::string_view raw, std::string_view statement) {
    Line line;
    if (auto parsed = parse_question(statement, line); !parsed) return parsed;
    return add(raw, std::move(line));
  }

  Result<void> add(std::string_view raw, Line line) {
    if (scenarios_.empty()) {
      return fail(ErrorCode::invalid_argument, "no quota yet; a case begins like: fixed_window 5/minute");
    }
    line.number = number_;
    line.text = trim(raw);
    if (line.action != Action::change) {
      if (auto suits = check_place(line); !suits) return suits;
    }
    scenarios_.back().lines.push_back(std::move(line));
    return {};
  }

  // What is well formed may not suit the case it stands in.
  Result<void> check_place(const Line& line) {
    if ((line.action == Action::check) == (algorithm_ == Algorithm::concurrency)) {
      return fail(ErrorCode::invalid_argument, "acquire and release are for concurrency, plain costs for all others");
    }
    if (line.now_us < last_us_) {
      return fail(ErrorCode::invalid_argument, "earlier than the line before; within a case time runs forward");
    }
    last_us_ = line.now_us;
    return {};
  }

  std::string name_;
  int number_ = 0;
  std::string title_;
  Algorithm algorithm_ = Algorithm::sliding_window;  // that rules at this line
  std::int64_t last_us_ = 0;                         // of the line before, in this case
  std::vector<Scenario> scenarios_;
};

}  // namespace

Result<std::vector<Scenario>> parse_scenarios(std::string_view text, std::string_view name) {
  return Reader(name).read(text);
}

}  // namespace weir::scenario
