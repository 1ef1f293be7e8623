// Prints and parses the accounts of a day. See accounts.h.
//
//   weir-usage 1
//   day 2026-09-21
//   rule 3 0 1 search            its floors: charged, returned, denied
//   120 3 0 0 5 1 user:42        charged and its error, the same for returned and for denied, then the subject
//   end 9f86d081…                SHA-256 of all lines before
#include "usage/accounts.h"

#include <charconv>

#include "base/nearest.h"
#include "base/sha256.h"
#include "policy/dimension.h"
#include "policy/subject.h"

namespace weir::usage {
namespace {

constexpr std::string_view kFirstLine = "weir-usage 1\n";
constexpr std::string_view kAnyVersion = "weir-usage ";
constexpr std::string_view kEnd = "end ";

void append_number(std::string& out, std::uint64_t number) {
  char digits[20];
  const auto end = std::to_chars(std::begin(digits), std::end(digits), number).ptr;
  out.append(digits, end).push_back(' ');
}

class Lines {
 public:
  Lines(std::string_view text, std::size_t number) : rest_(text), number_(number) {}

  bool next() {
    if (rest_.empty()) return false;
    const std::size_t end = rest_.find('\n');
    line_ = rest_.substr(0, end);
    rest_.remove_prefix(std::min(rest_.size(), end == rest_.npos ? end : end + 1));
    ++number_;
    return true;
  }
  bool take(std::string_view word) {
    if (!line_.starts_with(word)) return false;
    line_.remove_prefix(word.size());
    return true;
  }
  // Reads a number that is followed by a blank or by the end of the line.
  bool take(std::uint64_t& number) {
    const auto [end, error] = std::from_chars(line_.data(), line_.data() + line_.size(), number);
    if (error != std::errc{} || number > kSumMax) return false;
    line_.remove_prefix(static_cast<std::size_t>(end - line_.data()));
    if (!line_.empty() && line_.front() != ' ') return false;
    line_.remove_prefix(std::min<std::size_t>(line_.size(), 1));
    return true;
  }
  bool take(Sums& sums) { return take(sums.charged) && take(sums.returned) && take(sums.denied); }
  std::string_view rest_of_line() const { return line_; }
  tl::unexpected<Error> wrong(std::string_view what) const {
    return fail(ErrorCode::invalid_argument, "line " + std::to_string(number_) + ": " + std::string(what));
  }

 private:
  std::string_view rest_, line_;
  std::size_t number_;
};

Result<Account> read_account(Lines& lines) {
  Account account;
  Sums &sums = account.sums, &errors = account.errors;
  const bool has_numbers = lines.take(sums.charged) && lines.take(errors.charged) && lines.take(sums.returned) &&
                           lines.take(errors.returned) && lines.take(sums.denied) && lines.take(errors.denied);
  if (!has_numbers) return lines.wrong("expected six numbers and a subject");
  if (errors.charged > sums.charged || errors.returned > sums.returned || errors.denied > sums.denied) {
    return lines.wrong("an error bound is larger than its count");
  }
  auto subject = policy::parse_subject(lines.rest_of_line());
  if (!subject) return lines.wrong(subject.error().message);
  account.subject = *std::move(subject);
  return account;
}

}  // namespace

std::string to_text(const DayAccounts& accounts) {
  std::string out(kFirstLine);
  out += "day " + day_text(accounts.day) + '\n';
  for (const RuleAccounts& rule : accounts.rules) {
    out += "rule ";
    for (const std::uint64_t floor : {rule.floors.charged, rule.floors.returned, rule.floors.denied}) {
      append_number(out, floor);
    }
    out.append(rule.rule).push_back('\n');
    for (const Account& one : rule.accounts) {
      for (const std::uint64_t number : {one.sums.charged, one.errors.charged, one.sums.returned, one.errors.returned,
                                         one.sums.denied, one.errors.denied}) {
        append_number(out, number);
      }
      out.append(policy::subject_text(one.subject)).push_back('\n');
    }
  }
  return out + std::string(kEnd) + base::hex(base::sha256(out)) + '\n';
}

Result<DayAccounts> parse_accounts(std::string_view text) {
  if (!text.starts_with(kFirstLine)) {
    if (!text.starts_with(kAnyVersion))
      return fail(ErrorCode::invalid_argument, "line 1: this is not a usage file of Weir");
    return fail(ErrorCode::out_of_range, "line 1: a newer version of Weir wrote this usage file");
  }
  const std::size_t end = text.rfind(kEnd);
  const bool is_whole = end != text.npos && end > 0 && text[end - 1] == '\n' &&
                        text.substr(end + kEnd.size()) == base::hex(base::sha256(text.substr(0, end))) + '\n';
  if (!is_whole) return fail(ErrorCode::invalid_argument, "the file is damaged or incomplete");
  Lines lines(text.substr(kFirstLine.size(), end - kFirstLine.size()), 1);
  DayAccounts out;
  if (!lines.next() || !lines.take("day ")) return lines.wrong("expected the day");
  const auto day = parse_day(lines.rest_of_line());
  if (!day) return lines.wrong(day.error().message);
  out.day = *day;
  while (lines.next()) {
    if (lines.take("rule ")) {
      RuleAccounts& rule = out.rules.emplace_back();
      if (!lines.take(rule.floors) || lines.rest_of_line().empty()) return lines.wrong("expected the floors of a rule");
      rule.rule = lines.rest_of_line();
      continue;
    }
    if (out.rules.empty()) return lines.wrong("expected a rule");
    auto account = read_account(lines);
    if (!account) return fail(std::move(account.error()));
    out.rules.back().accounts.push_back(*std::move(account));
  }
  return out;
}

std::string day_text(std::int64_t day) { return policy::time_text(Micros{day * kDay.count()}).substr(0, 10); }

Result<std::int64_t> parse_day(std::string_view text) {
  const auto time = policy::parse_time(text);
  if (!time || text.size() != 10) {
    return fail(ErrorCode::invalid_argument, base::in_quotes(text) + " is not a day; write it like 2026-09-21");
  }
  return *time / kDay;
}

}  // namespace weir::usage
