// `weir keys`: manages single keys of a running server: explain, reset, ban, and list the top keys.
//
// Exit codes: 0 success, 1 failure, 2 invalid command line. One thread. Tested by tests/server/commands.sh.
#include <CLI/CLI.hpp>

#include <cmath>
#include <cstdint>
#include <string>

#include "cli/command.h"
#include "cli/flags.h"
#include "cli/remote.h"
#include "cli/request_flags.h"
#include "cli/table_text.h"
#include "protocol/explain_text.h"
#include "protocol/seconds.h"
#include "weir/explanation.h"

namespace weir::cli {
namespace {

Micros wait_of(const protocol::JsonValue& value) {
  if (value.kind != protocol::JsonValue::Kind::number) return kNever;
  return Micros{static_cast<std::int64_t>(std::llround(value.number() * 1e6))};
}

DecidedBy decided_by_of(std::string_view text) {
  using enum DecidedBy;
  for (const DecidedBy one : {strict, cached, local, open, closed, overloaded, no_room}) {
    if (text == to_string(one)) return one;
  }
  return here;
}

RuleExplanation::State state_of(const protocol::JsonValue& value) {
  RuleExplanation::State state;
  state.quota = value.at("limit_text").text;
  state.algorithm = value.at("algorithm").text;
  state.worst_case = value.at("worst_case").text;
  state.on_unavailable = value.at("on_backend_error").text;
  state.cost = value.at("cost").whole();
  state.decision.allowed = value.at("allowed").is_true;
  state.decision.limit = value.at("limit").whole();
  state.decision.remaining = value.at("remaining").whole();
  state.decision.retry_after = wait_of(value.at("retry_after"));
  state.decision.reset_after = wait_of(value.at("reset_after"));
  state.decision.delay = wait_of(value.at("delay"));
  state.decision.decided_by = decided_by_of(value.at("decided_by").text);
  return state;
}

// Parses the server's to_json() of an Explanation.
Explanation explanation_of(const protocol::JsonValue& value) {
  Explanation explanation;
  explanation.allowed = value.at("allowed").is_true;
  explanation.summary = value.at("summary").text;
  explanation.path = value.at("path").text;
  explanation.client_ip = value.at("client_ip").text;
  explanation.binding = value.at("binding").text;
  for (const protocol::JsonValue& one : value.at("readings").items) {
    ReadingExplanation& reading = explanation.readings.emplace_back();
    reading.path = one.at("path").text;
    reading.outcome = one.at("outcome").text;
    for (const protocol::JsonValue& charge : one.at("charges").items) reading.charges.push_back(charge.text);
  }
  for (const protocol::JsonValue& one : value.at("rules").items) {
    RuleExplanation& rule = explanation.rules.emplace_back();
    rule.rule = one.at("rule").text;
    rule.applies = one.at("applies").is_true;
    rule.reason = one.at("reason").text;
    rule.key = one.at("key").text;
    for (const protocol::JsonValue& limit : one.at("limits").items) rule.limits.push_back(state_of(limit));
  }
  return explanation;
}

class KeysCommand {
 public:
  explicit KeysCommand(CLI::App& app);

  Result<int> run() { return server_.run(); }

 private:
  // Each prints its result and returns the exit code.
  Result<int> explain();
  Result<int> reset();
  Result<int> ban();
  Result<int> top();
  // A JSON object with the request's flags and these texts.
  Result<std::string> body(std::initializer_list<JsonText> texts, bool needs_request);

  Remote server_{"--admin", "127.0.0.1:8082"};
  RequestFlags request_;
  std::string rule_, for_ = "1h", reason_, by_ = "denied", of_rule_;
  std::uint64_t count_ = 20;
  bool force_ = false;
};

KeysCommand::KeysCommand(CLI::App& app) {
  CLI::App* const explain = server_.add_subcommand(
      app, "explain",
      "Explain for each rule whether and why it applies to a request, and what is left; charges nothing",
      [this] { return this->explain(); });
  CLI::App* const reset = server_.add_subcommand(
      app, "reset", "Reset what a rule has counted for these request attributes", [this] { return this->reset(); });
  reset->add_option("RULE", rule_, "Name of the rule")->required();
  CLI::App* const ban = server_.add_subcommand(app, "ban", "Deny requests with these attributes for some time",
                                               [this] { return this->ban(); });
  text_flag(*ban, "--for", for_, "TIME", "Duration of the ban: 10min, 1h, 7d")->check(why_not_lasting);
  text_flag(*ban, "--reason", reason_, "TEXT", "Reason, recorded with the change");
  ban->add_flag("--force", force_,
                "Allow a ban of many clients: a range wider than /8 (IPv6: /32), or a ban that names no client");
  request_.add(*explain);
  for (CLI::App* one : {reset, ban}) request_.add_attributes(*one);
  CLI::App* const top =
      server_.add_subcommand(app, "top", "List the top clients of the last minutes; approximate, see docs/metrics.md",
                             [this] { return this->top(); });
  top->add_option("--by", by_, "Sort by hits or denied; default: denied")
      ->type_name("WHAT")
      ->check(CLI::IsMember({"hits", "denied"}));
  text_flag(*top, "--rule", of_rule_, "NAME", "Only for this rule");
  number_flag(*top, "-n", count_, {1, 1'000}, "N", "Number of keys");
}

// Every member of the request is optional; `needs_request` asks for at least one.
Result<std::string> KeysCommand::body(std::initializer_list<JsonText> texts, bool needs_request) {
  const auto request = request_.request();
  if (!request) return fail(request.error());
  bool is_empty = true;
  std::string out = json_body(texts, [&](protocol::JsonWriter& json) {
    is_empty = !write_members(json, *request);
    if (force_) json.flag("force", true);
  });
  if (is_empty && needs_request) {
    return fail(ErrorCode::invalid_argument,
                "the request is missing; write --user 42, --ip 192.0.2.1, --api-key KEY, --path /x, ...");
  }
  return out;
}

Result<int> KeysCommand::explain() {
  const auto body = this->body({}, true);
  if (!body) return fail(body.error());
  return server_.print({"POST", "/admin/v1/keys/explain", *body},
                       [](const protocol::JsonValue& answer) { return protocol::to_text(explanation_of(answer)); });
}

Result<int> KeysCommand::reset() {
  const auto body = this->body({{"rule", rule_}}, false);
  if (!body) return fail(body.error());
  return server_.print({"POST", "/admin/v1/keys/reset", *body}, [this](const protocol::JsonValue& answer) {
    return rule_ + (answer.at("reset").is_true ? ": reset\n" : ": nothing to reset\n");
  });
}

Result<int> KeysCommand::ban() {
  const auto body = this->body({{"for", for_}, {"reason", reason_}}, true);
  if (!body) return fail(body.error());
  return server_.print({"POST", "/admin/v1/keys/ban", *body}, [](const protocol::JsonValue& answer) {
    const std::string& id = answer.at("id").text;
    return "banned until " + utc_text(answer.at("until").text) + " by rule " + answer.at("rule").text +
           "; end the ban with: weir rules undo " + id + "\n" + reach_of(answer);
  });
}

Result<int> KeysCommand::top() {
  std::string target = "/admin/v1/top?by=" + by_ + "&n=" + std::to_string(count_);
  if (!of_rule_.empty()) target += "&rule=" + in_query(of_rule_);
  return server_.print({"GET", target}, [](const protocol::JsonValue& answer) {
    const auto& keys = answer.at("keys").items;
    if (keys.empty()) return "no keys in the last minutes\n" + fleet_note(answer);
    TableText table(
        {">hits", ">denied", "rule", "key, in the last " + protocol::wait_text(answer.at("seconds").number())});
    for (const protocol::JsonValue& key : keys) {
      table.add({key.at("hits").text, key.at("denied").text, key.at("rule").text, key.at("key").text});
    }
    return table.text() + fleet_note(answer);
  });
}

}  // namespace

const Command kKeysCommand{"keys", "Manage keys of a running server: explain, reset, ban, top", declare<KeysCommand>};

}  // namespace weir::cli
