// Calls the admin API for keys, and formats its answers. See keys_command.h.
#include "cli/keys_command.h"

#include <cmath>
#include <cstdio>
#include <utility>

#include "cli/complain.h"
#include "cli/lasting.h"
#include "cli/table_text.h"
#include "protocol/explain_text.h"
#include "protocol/problem.h"
#include "protocol/seconds.h"
#include "weir/explanation.h"

namespace weir {

const char* const kKeysExamples =
    "  weir keys explain --user 42 --path /api/search         each rule: does it apply, and what is left\n"
    "  weir keys reset login --ip 192.0.2.1                   reset what the rule has counted for this address\n"
    "  weir keys ban --ip 192.0.2.1 --for 1h --reason abuse   deny this address for 1 h; weir rules undo ends the ban\n"
    "  weir keys top --by denied                              most denied clients of the last minutes; live: weir top\n"
    "\n";

namespace {

Micros wait_of(const JsonValue& value) {
  if (value.kind != JsonValue::Kind::number) return kNever;
  return Micros{static_cast<std::int64_t>(std::llround(value.number() * 1e6))};
}

DecidedBy decided_by_of(std::string_view text) {
  using enum DecidedBy;
  for (const DecidedBy one : {strict, cached, local, open, closed, overloaded, no_room}) {
    if (text == to_string(one)) return one;
  }
  return here;
}

RuleExplanation::State state_of(const JsonValue& value) {
  RuleExplanation::State state;
  state.quota = value.at("limit_text").text;
  state.algorithm = value.at("algorithm").text;
  state.worst_case = value.at("worst_case").text;
  state.when_away = value.at("when_away").text;
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
Explanation explanation_of(const JsonValue& value) {
  Explanation explanation;
  explanation.allowed = value.at("allowed").is_true;
  explanation.summary = value.at("summary").text;
  explanation.path = value.at("path").text;
  explanation.client_ip = value.at("client_ip").text;
  explanation.binding = value.at("binding").text;
  for (const JsonValue& one : value.at("readings").items) {
    ReadingExplanation& reading = explanation.readings.emplace_back();
    reading.path = one.at("path").text;
    reading.outcome = one.at("outcome").text;
    for (const JsonValue& charge : one.at("charges").items) reading.charges.push_back(charge.text);
  }
  for (const JsonValue& one : value.at("rules").items) {
    RuleExplanation& rule = explanation.rules.emplace_back();
    rule.rule = one.at("rule").text;
    rule.applies = one.at("applies").is_true;
    rule.reason = one.at("reason").text;
    rule.key = one.at("key").text;
    for (const JsonValue& limit : one.at("limits").items) rule.limits.push_back(state_of(limit));
  }
  return explanation;
}

std::string member(const char* name, const std::string& value) {
  if (value.empty()) return {};
  std::string out = std::string(",\"") + name + "\":";
  append_json_text(out, value);
  return out;
}

}  // namespace

KeysCommand::KeysCommand(CLI::App& app) {
  keys_ = app.add_subcommand("keys", "Manage keys of a running server: explain, reset, ban, top");
  keys_->require_subcommand(1);
  explain_ = server_.add_subcommand(
      *keys_, "explain",
      "Explain for each rule whether and why it applies to a request, and what is left; charges nothing");
  reset_ = server_.add_subcommand(*keys_, "reset", "Reset what a rule has counted for these request attributes");
  reset_->add_option("RULE", rule_, "Name of the rule")->required();
  ban_ = server_.add_subcommand(*keys_, "ban", "Deny requests with these attributes for some time");
  ban_->add_option("--for", for_, "Duration of the ban: 10min, 1h, 7d")
      ->type_name("TIME")
      ->check(why_not_lasting)
      ->capture_default_str();
  ban_->add_option("--reason", reason_, "Reason, recorded with the change")->type_name("TEXT");
  ban_->add_flag("--force", force_,
                 "Allow a ban of many: a range wider than /8 (IPv6: /32), or one that names no client");
  for (CLI::App* one : {explain_, reset_, ban_}) request_.add(*one);
  top_ = server_.add_subcommand(*keys_, "top",
                                "List the top clients of the last minutes; approximate, see docs/metrics.md");
  top_->add_option("--by", by_, "Sort by hits or denied; default: denied")
      ->type_name("WHAT")
      ->check(CLI::IsMember({"hits", "denied"}));
  top_->add_option("--rule", of_rule_, "Only for this rule")->type_name("NAME");
  top_->add_option("-n", count_, "Number of keys")
      ->type_name("N")
      ->check(whole_number_to(1'000))
      ->capture_default_str();
}

std::optional<int> KeysCommand::run() {
  if (!*keys_) return std::nullopt;
  const auto done = *explain_ ? explain() : *reset_ ? reset() : *ban_ ? ban() : top();
  if (!done) {
    return complain(done.error().message,
                    done.error().code == ErrorCode::invalid_argument ? kNotUnderstood : kCouldNot);
  }
  return *done;
}

Result<std::string> KeysCommand::body(std::string further) {
  auto members = request_.json_members();
  if (!members) return members;
  // A rule that counts by nothing can be reset without attributes.
  if (members->empty() && !*reset_) {
    return fail(ErrorCode::invalid_argument,
                "the request is missing; write --user 42, --ip 192.0.2.1, --api-key KEY, --path /x, ...");
  }
  if (members->empty()) further.erase(0, 1);  // the comma
  return "{" + *members + further + "}";
}

Result<int> KeysCommand::explain() {
  const auto body = this->body({});
  if (!body) return fail(body.error());
  return server_.print({"POST", "/admin/v1/keys/explain", *body},
                       [](const JsonValue& answer) { return to_text(explanation_of(answer)); });
}

Result<int> KeysCommand::reset() {
  const auto body = this->body(member("rule", rule_));
  if (!body) return fail(body.error());
  return server_.print({"POST", "/admin/v1/keys/reset", *body}, [this](const JsonValue& answer) {
    return rule_ + (answer.at("reset").is_true ? ": reset\n" : ": nothing to reset\n");
  });
}

Result<int> KeysCommand::ban() {
  const auto body = this->body(member("for", for_) + member("reason", reason_) + (force_ ? ",\"force\":true" : ""));
  if (!body) return fail(body.error());
  return server_.print({"POST", "/admin/v1/keys/ban", *body}, [](const JsonValue& answer) {
    const std::string& id = answer.at("id").text;
    return "banned until " + answer.at("until").text + " by rule " + answer.at("rule").text +
           "; end the ban with: weir rules undo " + id + "\n" + reach_of(answer);
  });
}

Result<int> KeysCommand::top() {
  std::string target = "/admin/v1/top?by=" + by_ + "&n=" + std::to_string(count_);
  if (!of_rule_.empty()) target += "&rule=" + in_query(of_rule_);
  return server_.print({"GET", target}, [](const JsonValue& answer) {
    const auto& keys = answer.at("keys").items;
    if (keys.empty()) return "no keys in the last minutes\n" + fleet_note(answer);
    TableText table({">hits", ">denied", "rule", "key, in the last " + wait_text(answer.at("seconds").number())});
    for (const JsonValue& key : keys) {
      table.add({key.at("hits").text, key.at("denied").text, key.at("rule").text, key.at("key").text});
    }
    return table.text() + fleet_note(answer);
  });
}

}  // namespace weir
