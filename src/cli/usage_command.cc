// Calls the admin API for usage, and formats its answer as text or CSV. See usage_command.h.
#include "cli/usage_command.h"

#include <cstdio>
#include <utility>

#include "base/sha256.h"
#include "cli/complain.h"
#include "cli/table_text.h"

namespace weir {

const char* const kUsageExamples =
    "  weir usage user:42                         usage by rule and day, in the last 30 days\n"
    "  weir usage tenant:acme --from 2026-11-01 --to 2026-11-30 --rule search --csv >bill.csv\n"
    "  weir usage --top 20 --days 7               subjects with the most usage in a week\n"
    "  weir usage '*' --days 1                    today's usage of rules that count all clients together\n"
    "\n";

namespace {

constexpr std::string_view kApiKey = "api_key:";
constexpr std::string_view kHashed = "sha256:";

// An API key is a secret, so the request contains its hash.
std::string without_secret(const std::string& subject) {
  const std::string_view key = std::string_view(subject).substr(std::min(subject.size(), kApiKey.size()));
  if (!subject.starts_with(kApiKey) || key.starts_with(kHashed)) return subject;
  return std::string(kApiKey) + std::string(kHashed) + hex(sha256(key));
}

// `120`, or `120 (-3)`: the true number is at most 120, and at most 3 less.
std::string with_error(const std::string& number, const std::string& error) {
  return error == "0" ? number : number + " (-" + error + ")";
}

std::string field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == text.npos) return text;
  std::string out = "\"";
  for (const char c : text) out.append(c == '"' ? 2 : 1, c);
  return out + '"';
}

std::string csv_of(const JsonValue& answer) {
  std::string out = "from,to,rule,subject,used,error,denied,denied_error\r\n";
  for (const JsonValue& row : answer.at("rows").items) {
    const std::string &day = row.at("day").text, &from = day.empty() ? answer.at("from").text : day,
                      &to = day.empty() ? answer.at("to").text : day;
    for (const std::string* const one : {&from, &to, &row.at("rule").text, &row.at("subject").text,
                                         &row.at("used").text, &row.at("error").text, &row.at("denied").text}) {
      out += field(*one) + ',';
    }
    out += row.at("denied_error").text + "\r\n";
  }
  return out;
}

std::string words_of(const JsonValue& answer, const std::string& subject) {
  const std::string days = answer.at("from").text + " to " + answer.at("to").text;
  const auto &rows = answer.at("rows").items, &unknown = answer.at("unknown").items;
  std::string out;
  if (rows.empty()) {
    out = (subject.empty() ? "no usage from " : printable(subject) + ": no known usage from ") + days + '\n';
  } else if (subject.empty()) {
    TableText table({">used", ">denied", "rule", "subject, " + days});
    for (const JsonValue& row : rows) {
      table.add({with_error(row.at("used").text, row.at("error").text),
                 with_error(row.at("denied").text, row.at("denied_error").text), row.at("rule").text,
                 row.at("subject").text});
    }
    out = table.text();
  } else {
    TableText table({"day", ">used", ">denied", "rule"});
    for (const JsonValue& row : rows) {
      table.add({row.at("day").text, with_error(row.at("used").text, row.at("error").text),
                 with_error(row.at("denied").text, row.at("denied_error").text), row.at("rule").text});
    }
    out = table.text();
  }
  for (const JsonValue& one : unknown) {
    out += printable(one.at("day").text + ": at most " + one.at("at_most").text + " used by rule " +
                     one.at("rule").text + "; not exact, as there were more subjects than --usage-subjects") +
           '\n';
  }
  return out + fleet_note(answer);
}

// Prints the note to stderr, because people who bill by the file should see it.
std::string file_of(const JsonValue& answer) {
  std::fputs(fleet_note(answer).c_str(), stderr);
  return csv_of(answer);
}

}  // namespace

UsageCommand::UsageCommand(CLI::App& app) {
  usage_ = server_.add_subcommand(app, "usage",
                                  "Show a subject's usage by rule and day, or the subjects with the most usage");
  usage_->add_option("SUBJECT", subject_,
                     "user:42, tenant:acme, api_key:KEY, ip:192.0.2.1; default: those with the most usage");
  usage_->add_option("--rule", rule_, "Only for this rule")->type_name("NAME");
  usage_->add_option("--days", days_, "Number of days, today included")
      ->type_name("N")
      ->check(whole_number_to(36'500))
      ->capture_default_str();
  usage_->add_option("--from", from_, "First day, such as 2026-11-01, in UTC")->type_name("DAY");
  usage_->add_option("--to", to_, "Last day, included")->type_name("DAY");
  usage_->add_option("--top", top_, "Without a subject: number of subjects")
      ->type_name("N")
      ->check(whole_number_to(10'000))
      ->capture_default_str();
  usage_->add_flag("--csv", csv_, "Print comma-separated values, for a spreadsheet");
}

std::optional<int> UsageCommand::run() {
  if (!*usage_) return std::nullopt;
  std::string target = "/admin/v1/usage?days=" + std::to_string(days_);
  const std::string subject = without_secret(subject_);
  if (subject.empty()) target += "&top=" + std::to_string(top_);
  for (const auto& [name, value] : {std::pair<const char*, const std::string&>{"subject", subject},
                                    {"rule", rule_},
                                    {"from", from_},
                                    {"to", to_}}) {
    if (!value.empty()) target += std::string("&") + name + '=' + in_query(value);
  }
  const auto done = server_.print(
      {"GET", target}, [&](const JsonValue& answer) { return csv_ ? file_of(answer) : words_of(answer, subject); });
  if (done) return *done;
  return complain(done.error().message, done.error().code == ErrorCode::invalid_argument ? kNotUnderstood : kCouldNot);
}

}  // namespace weir
