// Calls the admin API for rules and changes, and formats its answers. See rules_command.h.
#include "cli/rules_command.h"

#include <algorithm>
#include <cstdio>
#include <vector>

#include "cli/complain.h"
#include "cli/lasting.h"
#include "cli/table_text.h"
#include "control/config_file.h"
#include "protocol/problem.h"

namespace weir {

const char* const kRulesExamples =
    "  weir rules list                                       each rule, its mode and its counts\n"
    "  weir rules mode login shadow --for 10min              deny nothing, only count, for 10 minutes\n"
    "  weir rules kill-switch on --reason 'incident 7'       all rules off; limits in requests still apply\n"
    "  weir rules changes                                    runtime changes: who, what, when, and which are in "
    "effect\n"
    "  weir rules undo                                       undo the last change; undo 7: change 7\n"
    "  weir rules apply new.yaml                             use this config instead of the file, until it is undone\n"
    "  weir rules reload                                     reload the config file now\n"
    "\n";

namespace {

std::string json_text(const std::string& text) {
  std::string out;
  append_json_text(out, text);
  return out;
}

std::string lines_of(const JsonValue& list) {
  std::string out;
  for (const JsonValue& line : list.items) out += "  " + line.text + "\n";
  return out;
}

std::string joined(const JsonValue& list) {
  std::string out;
  for (const JsonValue& one : list.items) out.append(out.empty() ? "" : ", ").append(one.text);
  return out;
}

}  // namespace

RulesCommand::RulesCommand(CLI::App& app) {
  rules_ = app.add_subcommand("rules", "Manage the rules of a running server: list, mode, kill switch, changes");
  rules_->require_subcommand(1);
  list_ = server_.add_subcommand(*rules_, "list", "List each rule, its mode and its counts");
  show_ = server_.add_subcommand(*rules_, "show", "Print the config in effect, as YAML");
  mode_ = server_.add_subcommand(*rules_, "mode", "Set the mode of a rule: enforce, shadow or off");
  mode_->add_option("RULE", rule_, "Name of the rule")->required();
  mode_->add_option("MODE", to_, "enforce, shadow or off")
      ->required()
      ->check(CLI::IsMember({"enforce", "shadow", "off"}));
  kill_ = server_.add_subcommand(
      *rules_, "kill-switch",
      "Turn all rules and bans off, or on again; limits in requests and overload protection still deny");
  kill_->add_option("STATE", to_, "on: all rules are off; off: rules apply again")
      ->required()
      ->check(CLI::IsMember({"on", "off"}));
  apply_ = server_.add_subcommand(*rules_, "apply", "Use a config instead of the config file, until it is undone");
  apply_->add_option("FILE", file_, "Config to use; - reads the standard input")->required();
  apply_->add_flag("--force", force_, "Accept changes beyond max_change");
  undo_ = server_.add_subcommand(*rules_, "undo", "Undo a change");
  undo_->add_option("ID", id_, "Number of the change; default: the last one in effect")
      ->check(whole_number_to(UINT64_MAX));
  changes_ =
      server_.add_subcommand(*rules_, "changes", "List runtime changes: who, what, when, and which are in effect");
  changes_->add_option("-n", count_, "Number of changes")
      ->type_name("N")
      ->check(whole_number_to(1'000))
      ->capture_default_str();
  reload_ = server_.add_subcommand(*rules_, "reload", "Reload the config file");
  for (CLI::App* one : {mode_, kill_}) {
    one->add_option("--for", for_, "Duration: 10min, 1h; default: until it is undone")
        ->type_name("TIME")
        ->check(why_not_lasting);
  }
  for (CLI::App* one : {mode_, kill_, apply_}) {
    one->add_option("--reason", reason_, "Reason, recorded with the change")->type_name("TEXT");
  }
}

std::optional<int> RulesCommand::run() {
  if (!*rules_) return std::nullopt;
  const auto done = [this]() -> Result<int> {
    if (*list_) return list();
    if (*show_) return show();
    if (*changes_) return changes();
    if (*apply_) return apply();
    if (*mode_) return turn("/admin/v1/rules/mode", "\"rule\":" + json_text(rule_) + ",\"mode\":\"" + to_ + "\"");
    if (*kill_) return turn("/admin/v1/kill-switch", to_ == "on" ? "\"on\":true" : "\"on\":false");
    if (*undo_) return turn("/admin/v1/undo", id_ == 0 ? "" : "\"id\":" + std::to_string(id_));
    return turn("/admin/v1/reload", "");
  }();
  if (!done) return complain(done.error().message, kCouldNot);
  return *done;
}

Result<int> RulesCommand::turn(const char* target, std::string members) {
  for (const auto& [name, value] : {std::pair{"for", &for_}, std::pair{"reason", &reason_}}) {
    if (value->empty()) continue;
    members.append(members.empty() ? "\"" : ",\"").append(name).append("\":").append(json_text(*value));
  }
  return server_.print({"POST", target, "{" + members + "}"}, [](const JsonValue& answer) {
    std::string out = "done";
    if (answer.at("id").kind == JsonValue::Kind::number) {
      const std::string& id = answer.at("id").text;
      out = "change " + id + " is in effect; undo it with: weir rules undo " + id;
    }
    return out + "\n" + reach_of(answer) + lines_of(answer.at("changes"));
  });
}

Result<int> RulesCommand::apply() {
  const auto text = read_config(file_);
  if (!text) return fail(text.error());
  return turn("/admin/v1/config/apply",
              "\"text\":" + json_text(*text) + (force_ ? ",\"force\":true" : ",\"force\":false"));
}

Result<int> RulesCommand::show() {
  return server_.print({"GET", "/admin/v1/config"}, [](const JsonValue& answer) { return answer.at("text").text; });
}

Result<int> RulesCommand::list() {
  return server_.print({"GET", "/admin/v1/rules"}, [](const JsonValue& answer) {
    TableText table({"rule", "mode", "per", "limits", ">allowed", ">denied", ">shadow denied", "last hit"});
    for (const JsonValue& rule : answer.at("rules").items) {
      std::string mode = rule.at("mode").text;
      if (mode != rule.at("configured_mode").text) mode += " (changed)";
      table.add({rule.at("name").text, mode, rule.at("per").text, joined(rule.at("limits")), rule.at("allowed").text,
                 rule.at("denied").text, rule.at("shadow_denied").text,
                 rule.at("last_hit").text.empty() ? "never" : rule.at("last_hit").text});
    }
    return table.text() + fleet_note(answer);
  });
}

Result<int> RulesCommand::changes() {
  const std::string target = "/admin/v1/changes?n=" + std::to_string(count_);
  return server_.print({"GET", target}, [](const JsonValue& answer) {
    TableText table({">id", "at", "who", "what", "in effect", "reason"});
    for (const JsonValue& change : answer.at("changes").items) {
      std::string in_effect = change.at("active").is_true ? "yes" : "no";
      if (!change.at("until").text.empty()) in_effect += ", until " + change.at("until").text;
      if (change.at("undone_by").whole() > 0) in_effect += ", undone by " + change.at("undone_by").text;
      table.add({change.at("id").text, change.at("at").text, change.at("who").text, change.at("what").text, in_effect,
                 change.at("reason").text});
    }
    return table.rows() == 0 ? std::string("no changes\n") : table.text();
  });
}

}  // namespace weir
