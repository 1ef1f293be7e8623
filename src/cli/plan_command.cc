// `weir plan`: shows and changes the plans of subjects, on a running server.
//
// Exit codes: 0 success, 1 failure, 2 invalid command line. One thread. Tested by tests/server/plans.sh.
#include <CLI/CLI.hpp>

#include <cstdint>
#include <string>

#include "cli/command.h"
#include "cli/flags.h"
#include "cli/remote.h"
#include "cli/table_text.h"
#include "protocol/seconds.h"

namespace weir::cli {
namespace {

std::string text_or(const protocol::JsonValue& value, const char* otherwise) {
  return value.kind == protocol::JsonValue::Kind::text ? value.text : otherwise;
}

// For example: user:42 is on pro: 10/second, 1000/minute
std::string view_text(const protocol::JsonValue& answer) {
  const protocol::JsonValue& now = answer.at("in_force");
  std::string out = answer.at("subject").text + " is on " + now.at("plan").text +
                    (now.at("default").is_true ? ", the default: " : ": ") + now.at("limits").text + '\n';
  if (answer.at("override").kind == protocol::JsonValue::Kind::text) {
    const std::string until = text_or(answer.at("until"), "");
    out += "custom limits: " + answer.at("override").text + (until.empty() ? "" : " until " + until) + '\n';
  }
  if (!answer.at("refused").text.empty()) {
    out += "invalid row, keeping the previous plan and limits: " + answer.at("refused").text + '\n';
  }
  return out;
}

class PlanCommand {
 public:
  explicit PlanCommand(CLI::App& app);

  Result<int> run() { return server_.run(); }

 private:
  Result<int> list() const;
  Result<int> status() const;
  // Posts a JSON object with the subject, these texts and the reason, and prints what is in effect then.
  Result<int> change(const char* target, std::initializer_list<JsonText> texts) const;

  Remote server_{"--admin", "127.0.0.1:8082"};
  std::string subject_, name_, until_, reason_, after_;
  std::uint64_t count_ = 100;
  bool is_override_ = false;
};

PlanCommand::PlanCommand(CLI::App& app) {
  auto* const set = server_.add_subcommand(app, "set", "Put a subject on a plan", [this] {
    return change("/admin/v1/plans/set", {{"plan", name_}});
  });
  auto* const custom =
      server_.add_subcommand(app, "override", "Give a subject custom limits instead of its plan's", [this] {
        return change("/admin/v1/plans/override", {{"limits", name_}, {"until", until_}});
      });
  auto* const remove = server_.add_subcommand(app, "remove", "Remove a subject's plan, or its custom limits",
                                              [this] { return change("/admin/v1/plans/remove", {}); });
  auto* const show = server_.add_subcommand(app, "show", "Show a subject's plan and the limits in effect", [this] {
    return server_.print({"GET", "/admin/v1/plans/show?subject=" + in_query(subject_)}, view_text);
  });
  for (CLI::App* one : {set, custom, remove, show}) {
    one->add_option("SUBJECT", subject_, "user:42, tenant:acme, ip:192.0.2.1, api_key:sha256:…")->required();
  }
  set->add_option("PLAN", name_, "Plan of the config (plans.tiers)")->required();
  custom->add_option("LIMITS", name_, "5000/minute, or several: '50/second, 5000/minute'")->required();
  text_flag(*custom, "--until", until_, "TIME", "End of these limits: 2026-12-31, or 2026-12-31T18:30:00Z");
  remove->add_flag("--override", is_override_, "Remove only the custom limits; those of its plan apply again");
  for (CLI::App* one : {set, custom, remove}) {
    text_flag(*one, "--reason", reason_, "TEXT", "Reason, written to the log");
  }
  auto* const list = server_.add_subcommand(app, "list", "List the subjects that have a plan or custom limits",
                                            [this] { return this->list(); });
  text_flag(*list, "--after", after_, "SUBJECT", "Continue after this subject");
  number_flag(*list, "-n", count_, {1, 10'000}, "N", "Number of subjects");
  server_.add_subcommand(app, "status", "Show the plans, the state of the database, and invalid rows",
                         [this] { return status(); });
}

Result<int> PlanCommand::change(const char* target, std::initializer_list<JsonText> texts) const {
  const std::string body = json_body({{"subject", subject_}, {"reason", reason_}}, [&](protocol::JsonWriter& json) {
    write_texts(json, texts);
    if (is_override_) json.flag("override", true);
  });
  return server_.print({"POST", target, body}, view_text);
}

Result<int> PlanCommand::list() const {
  std::string target = "/admin/v1/plans/list?n=" + std::to_string(count_);
  if (!after_.empty()) target += "&after=" + in_query(after_);
  return server_.print({"GET", target}, [](const protocol::JsonValue& answer) {
    const auto& rows = answer.at("plans").items;
    if (rows.empty()) return std::string("no subjects: all have the default plan\n");
    TableText table({"subject", "plan", "custom limits", "until"});
    for (const protocol::JsonValue& row : rows) {
      table.add({row.at("subject").text, text_or(row.at("plan"), "-"), text_or(row.at("override"), "-"),
                 text_or(row.at("until"), "-")});
    }
    std::string out = table.text();
    if (answer.at("more").is_true) out += "more: --after " + rows.back().at("subject").text + '\n';
    return out;
  });
}

Result<int> PlanCommand::status() const {
  return server_.print({"GET", "/admin/v1/plans"}, [](const protocol::JsonValue& answer) {
    const std::string& source = answer.at("source").text;
    std::string out = source.empty() ? std::string("no database: each request carries its plan\n") : source;
    if (!source.empty()) {
      out += answer.at("up").is_true ? ": available" : ": unavailable, " + answer.at("error").text;
      out += "; last answer " + protocol::wait_text(answer.at("age_seconds").number()) + " ago; ";
      out += base::counted(answer.at("subjects").text, "subject") + " known\n";
    }
    TableText table({"plan", "limits"});
    for (const protocol::JsonValue& tier : answer.at("tiers").items) {
      const std::string limits = tier.at("unlimited").is_true ? "unlimited" : joined(tier.at("limits"));
      const bool is_default = tier.at("plan").text == answer.at("default").text;
      table.add({tier.at("plan").text + (is_default ? " (default)" : ""), limits});
    }
    out += table.text();
    for (const protocol::JsonValue& row : answer.at("refused").items) {
      out += "invalid row: " + row.at("subject").text + ": " + row.at("error").text + '\n';
    }
    return out;
  });
}

}  // namespace

const Command kPlanCommand{"plan", "Manage plans of a running server: set, override, remove, show, list, status",
                           declare<PlanCommand>};

}  // namespace weir::cli
