// `weir rules`: shows the rules of a running server and their counts, and makes runtime changes.
//
// Exit codes: 0 success, 1 failure, 2 invalid command line. One thread. Tested by tests/server/commands.sh.
#include <CLI/CLI.hpp>

#include <cstdint>
#include <string>

#include "cli/command.h"
#include "cli/flags.h"
#include "cli/remote.h"
#include "cli/table_text.h"
#include "control/config_file.h"

namespace weir::cli {
namespace {

std::string lines_of(const protocol::JsonValue& list) {
  std::string out;
  for (const protocol::JsonValue& line : list.items) out += "  " + line.text + "\n";
  return out;
}

class RulesCommand {
 public:
  explicit RulesCommand(CLI::App& app);

  Result<int> run() { return server_.run(); }

 private:
  // Each prints its result and returns the exit code.
  Result<int> list();
  Result<int> show();
  Result<int> changes();
  Result<int> apply();
  // Posts a JSON object with these members, the reason and the duration, and prints the result.
  Result<int> change(const char* target, std::initializer_list<JsonText> texts, const WriteMembers& further = {});

  Remote server_{"--admin", "127.0.0.1:8082"};
  std::string rule_, to_, for_, reason_, file_;
  std::uint64_t id_ = 0, count_ = 20;
  bool force_ = false;
};

RulesCommand::RulesCommand(CLI::App& app) {
  server_.add_subcommand(app, "list", "List each rule, its mode and its counts", [this] { return list(); });
  server_.add_subcommand(app, "show", "Print the config in effect, as YAML", [this] { return show(); });
  auto* const mode = server_.add_subcommand(app, "mode", "Set the mode of a rule: enforce, shadow or off", [this] {
    return change("/admin/v1/rules/mode", {{"rule", rule_}, {"mode", to_}});
  });
  mode->add_option("RULE", rule_, "Name of the rule")->required();
  mode->add_option("MODE", to_, "enforce, shadow or off")
      ->required()
      ->check(CLI::IsMember({"enforce", "shadow", "off"}));
  auto* const kill = server_.add_subcommand(
      app, "kill-switch",
      "Turn all rules and bans off, or on again; limits in requests and overload protection still deny", [this] {
        return change("/admin/v1/kill-switch", {},
                      [this](protocol::JsonWriter& json) { json.flag("on", to_ == "on"); });
      });
  kill->add_option("STATE", to_, "on: all rules are off; off: rules apply again")
      ->required()
      ->check(CLI::IsMember({"on", "off"}));
  auto* const apply = server_.add_subcommand(
      app, "apply", "Use a config instead of the config file, until it is undone", [this] { return this->apply(); });
  apply->add_option("FILE", file_, "Config to use; - reads the standard input")->required();
  apply->add_flag("--force", force_, "Accept changes beyond max_change");
  auto* const undo = server_.add_subcommand(app, "undo", "Undo a change", [this] {
    return change("/admin/v1/undo", {}, [this](protocol::JsonWriter& json) {
      if (id_ > 0) json.number("id", id_);
    });
  });
  undo->add_option("ID", id_, "Number of the change; default: the last one in effect")
      ->check(whole_number_to(UINT64_MAX));
  auto* const changes =
      server_.add_subcommand(app, "changes", "List runtime changes: who, what, when, and which are in effect",
                             [this] { return this->changes(); });
  number_flag(*changes, "-n", count_, {1, 1'000}, "N", "Number of changes");
  server_.add_subcommand(app, "reload", "Reload the config file", [this] { return change("/admin/v1/reload", {}); });
  for (CLI::App* one : {mode, kill}) {
    text_flag(*one, "--for", for_, "TIME", "Duration: 10min, 1h; default: until it is undone")->check(why_not_lasting);
  }
  for (CLI::App* one : {mode, kill, apply}) {
    text_flag(*one, "--reason", reason_, "TEXT", "Reason, recorded with the change");
  }
}

Result<int> RulesCommand::change(const char* target, std::initializer_list<JsonText> texts,
                                 const WriteMembers& further) {
  const std::string body = json_body(texts, [&](protocol::JsonWriter& json) {
    if (further) further(json);
    write_texts(json, {{"for", for_}, {"reason", reason_}});
  });
  return server_.print({"POST", target, body}, [](const protocol::JsonValue& answer) {
    std::string out = "done";
    if (answer.at("id").kind == protocol::JsonValue::Kind::number) {
      const std::string& id = answer.at("id").text;
      out = "change " + id + " is in effect; undo it with: weir rules undo " + id;
    }
    return out + "\n" + reach_of(answer) + lines_of(answer.at("changes"));
  });
}

Result<int> RulesCommand::apply() {
  const auto text = control::read_config(file_);
  if (!text) return complain(text.error().message, kCouldNot);
  return change("/admin/v1/config/apply", {}, [&](protocol::JsonWriter& json) {
    json.text("text", *text);
    json.flag("force", force_);
  });
}

Result<int> RulesCommand::show() {
  return server_.print({"GET", "/admin/v1/config"},
                       [](const protocol::JsonValue& answer) { return answer.at("text").text; });
}

Result<int> RulesCommand::list() {
  return server_.print({"GET", "/admin/v1/rules"}, [](const protocol::JsonValue& answer) {
    TableText table({"rule", "mode", "per", "limits", ">allowed", ">denied", ">shadow denied", "last hit"});
    for (const protocol::JsonValue& rule : answer.at("rules").items) {
      std::string mode = rule.at("mode").text;
      if (mode != rule.at("configured_mode").text) mode += " (changed)";
      table.add({rule.at("name").text, mode, rule.at("per").text, joined(rule.at("limits")), rule.at("allowed").text,
                 rule.at("denied").text, rule.at("shadow_denied").text,
                 rule.at("last_hit").text.empty() ? "never" : utc_text(rule.at("last_hit").text)});
    }
    return table.text() + fleet_note(answer);
  });
}

Result<int> RulesCommand::changes() {
  const std::string target = "/admin/v1/changes?n=" + std::to_string(count_);
  return server_.print({"GET", target}, [](const protocol::JsonValue& answer) {
    TableText table({">id", "at", "who", "what", "in effect", "reason"});
    for (const protocol::JsonValue& change : answer.at("changes").items) {
      std::string in_effect = change.at("active").is_true ? "yes" : "no";
      if (!change.at("until").text.empty()) in_effect += ", until " + utc_text(change.at("until").text);
      if (change.at("undone_by").whole() > 0) in_effect += ", undone by " + change.at("undone_by").text;
      table.add({change.at("id").text, utc_text(change.at("at").text), change.at("who").text, change.at("what").text,
                 in_effect, change.at("reason").text});
    }
    return table.rows() == 0 ? std::string("no changes\n") : table.text();
  });
}

}  // namespace

const Command kRulesCommand{"rules", "Manage the rules of a running server: list, mode, kill switch, changes",
                            declare<RulesCommand>};

}  // namespace weir::cli
