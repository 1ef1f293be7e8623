// `weir usage`: a subject's usage by rule and day, or the subjects with the most usage, from a running server.
//
// Exit codes: 0 success, 1 failure, 2 invalid command line. One thread. Tested by tests/server/usage.sh.
#include <CLI/CLI.hpp>

#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "base/sha256.h"
#include "cli/command.h"
#include "cli/flags.h"
#include "cli/remote.h"
#include "cli/table_text.h"

namespace weir::cli {
namespace {

constexpr std::string_view kApiKey = "api_key:";
constexpr std::string_view kHashed = "sha256:";

// An API key is a secret, so the request contains its hash.
std::string without_secret(const std::string& subject) {
  const std::string_view key = std::string_view(subject).substr(std::min(subject.size(), kApiKey.size()));
  if (!subject.starts_with(kApiKey) || key.starts_with(kHashed)) return subject;
  return std::string(kApiKey) + std::string(kHashed) + base::hex(base::sha256(key));
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

std::string csv_of(const protocol::JsonValue& answer) {
  std::string out = "from,to,rule,subject,used,error,denied,denied_error\r\n";
  for (const protocol::JsonValue& row : answer.at("rows").items) {
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

std::string words_of(const protocol::JsonValue& answer, const std::string& subject) {
  const std::string days = answer.at("from").text + " to " + answer.at("to").text;
  const auto &rows = answer.at("rows").items, &unknown = answer.at("unknown").items;
  std::string out;
  if (rows.empty()) {
    out = (subject.empty() ? "no usage from " : printable(subject) + ": no known usage from ") + days + '\n';
  } else {
    const bool is_top = subject.empty();
    TableText table(is_top ? std::vector<std::string>{">used", ">denied", "rule", "subject, " + days}
                           : std::vector<std::string>{"day", ">used", ">denied", "rule"});
    for (const protocol::JsonValue& row : rows) {
      std::vector<std::string> cells = {with_error(row.at("used").text, row.at("error").text),
                                        with_error(row.at("denied").text, row.at("denied_error").text),
                                        row.at("rule").text};
      cells.insert(is_top ? cells.end() : cells.begin(), row.at(is_top ? "subject" : "day").text);
      table.add(std::move(cells));
    }
    out = table.text();
  }
  for (const protocol::JsonValue& one : unknown) {
    out += printable(one.at("day").text + ": at most " + one.at("at_most").text + " used by rule " +
                     one.at("rule").text + "; not exact, as there were more subjects than --usage-subjects") +
           '\n';
  }
  return out + fleet_note(answer);
}

// Prints the note to stderr, because people who bill by the file should see it.
std::string file_of(const protocol::JsonValue& answer) {
  std::fputs(fleet_note(answer).c_str(), stderr);
  return csv_of(answer);
}

class UsageCommand {
 public:
  explicit UsageCommand(CLI::App& app);

  Result<int> run();

 private:
  Remote server_{"--admin", "127.0.0.1:8082"};
  std::string subject_, rule_, from_, to_;
  std::uint64_t days_ = 30, top_ = 20;
  bool csv_ = false;
};

UsageCommand::UsageCommand(CLI::App& app) {
  server_.add_admin(app);
  app.add_option("SUBJECT", subject_,
                 "user:42, tenant:acme, api_key:KEY, ip:192.0.2.1; default: those with the most usage");
  text_flag(app, "--rule", rule_, "NAME", "Only for this rule");
  number_flag(app, "--days", days_, {1, 36'500}, "N", "Number of days, today included");
  text_flag(app, "--from", from_, "DAY", "First day, such as 2026-11-01, in UTC");
  text_flag(app, "--to", to_, "DAY", "Last day, included");
  number_flag(app, "--top", top_, {1, 10'000}, "N", "Without a subject: number of subjects");
  app.add_flag("--csv", csv_, "Print comma-separated values, for a spreadsheet");
}

Result<int> UsageCommand::run() {
  std::string target = "/admin/v1/usage?days=" + std::to_string(days_);
  const std::string subject = without_secret(subject_);
  if (subject.empty()) target += "&top=" + std::to_string(top_);
  for (const auto& [name, value] : {std::pair<const char*, const std::string&>{"subject", subject},
                                    {"rule", rule_},
                                    {"from", from_},
                                    {"to", to_}}) {
    if (!value.empty()) target += std::string("&") + name + '=' + in_query(value);
  }
  return server_.print({"GET", target}, [&](const protocol::JsonValue& answer) {
    return csv_ ? file_of(answer) : words_of(answer, subject);
  });
}

}  // namespace

const Command kUsageCommand{"usage", "Show a subject's usage by rule and day, or the subjects with the most usage",
                            declare<UsageCommand>};

}  // namespace weir::cli
