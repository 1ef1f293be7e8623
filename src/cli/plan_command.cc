// Calls the admin API for plans, and formats its answers. See plan_command.h.
#include "cli/plan_command.h"

#include "cli/complain.h"
#include "cli/lasting.h"
#include "cli/table_text.h"
#include "protocol/problem.h"
#include "protocol/seconds.h"

namespace weir {

const char* const kPlanExamples =
    "  weir plan set user:42 pro                                     change the plan, in effect at once\n"
    "  weir plan override user:42 5000/minute --until 2026-12-31     custom limits until a date\n"
    "  weir plan remove user:42                                      back to the default; --override: back to its "
    "plan\n"
    "  weir plan show user:42                                        its plan and the limits in effect\n"
    "  weir plan list                                                subjects with a plan or custom limits\n"
    "  weir plan status                                              plans, database, invalid rows\n"
    "\n";

namespace {

std::string plan_member(const char* name, const std::string& value) {
  if (value.empty()) return {};
  std::string out = std::string(",\"") + name + "\":";
  append_json_text(out, value);
  return out;
}

std::string text_or(const JsonValue& value, const char* otherwise) {
  return value.kind == JsonValue::Kind::text ? value.text : otherwise;
}

// For example: user:42 is on pro: 10/second, 1000/minute
std::string view_text(const JsonValue& answer) {
  const JsonValue& now = answer.at("in_force");
  std::string out = answer.at("subject").text + " is on " + now.at("plan").text +
                    (now.at("default").is_true ? ", the default: " : ": ") + now.at("limits").text + '\n';
  if (answer.at("override").kind == JsonValue::Kind::text) {
    const std::string until = text_or(answer.at("until"), "");
    out += "custom limits: " + answer.at("override").text + (until.empty() ? "" : " until " + until) + '\n';
  }
  if (!answer.at("refused").text.empty()) {
    out += "invalid row, keeping the previous plan and limits: " + answer.at("refused").text + '\n';
  }
  return out;
}

}  // namespace

PlanCommand::PlanCommand(CLI::App& app) {
  plan_ = app.add_subcommand("plan", "Manage plans of a running server: set, override, remove, show, list, status");
  plan_->require_subcommand(1);
  set_ = server_.add_subcommand(*plan_, "set", "Put a subject on a plan");
  override_ = server_.add_subcommand(*plan_, "override", "Give a subject custom limits instead of its plan's");
  remove_ = server_.add_subcommand(*plan_, "remove", "Remove a subject's plan, or its custom limits");
  show_ = server_.add_subcommand(*plan_, "show", "Show a subject's plan and the limits in effect");
  for (CLI::App* one : {set_, override_, remove_, show_}) {
    one->add_option("SUBJECT", subject_, "user:42, tenant:acme, ip:192.0.2.1, api_key:sha256:…")->required();
  }
  set_->add_option("PLAN", name_, "Plan of the config (plans.tiers)")->required();
  override_->add_option("LIMITS", name_, "5000/minute, or several: '50/second, 5000/minute'")->required();
  override_->add_option("--until", until_, "End of these limits: 2026-12-31, or 2026-12-31T18:30:00Z")
      ->type_name("TIME");
  remove_->add_flag("--override", is_override_, "Remove the custom limits only, back to those of its plan");
  for (CLI::App* one : {set_, override_, remove_}) {
    one->add_option("--reason", reason_, "Reason, written to the log")->type_name("TEXT");
  }
  list_ = server_.add_subcommand(*plan_, "list", "List the subjects that have a plan or custom limits");
  list_->add_option("--after", after_, "Continue after this subject")->type_name("SUBJECT");
  list_->add_option("-n", count_, "Number of subjects")
      ->type_name("N")
      ->check(whole_number_to(10'000))
      ->capture_default_str();
  status_ = server_.add_subcommand(*plan_, "status", "Show the plans, the state of the database, and invalid rows");
}

std::optional<int> PlanCommand::run() {
  if (!*plan_) return std::nullopt;
  const auto done = *set_ || *override_ ? set() : *remove_ ? remove() : *show_ ? show() : *list_ ? list() : status();
  if (!done) {
    return complain(done.error().message,
                    done.error().code == ErrorCode::invalid_argument ? kNotUnderstood : kCouldNot);
  }
  return *done;
}

std::string PlanCommand::body(const std::string& further) const {
  return "{" + plan_member("subject", subject_).substr(1) + further + plan_member("reason", reason_) + "}";
}

Result<int> PlanCommand::set() const {
  if (*set_) return server_.print({"POST", "/admin/v1/plans/set", body(plan_member("plan", name_))}, view_text);
  return server_.print(
      {"POST", "/admin/v1/plans/override", body(plan_member("limits", name_) + plan_member("until", until_))},
      view_text);
}

Result<int> PlanCommand::remove() const {
  return server_.print({"POST", "/admin/v1/plans/remove", body(is_override_ ? ",\"override\":true" : "")}, view_text);
}

Result<int> PlanCommand::show() const {
  return server_.print({"GET", "/admin/v1/plans/show?subject=" + in_query(subject_)}, view_text);
}

Result<int> PlanCommand::list() const {
  std::string target = "/admin/v1/plans/list?n=" + std::to_string(count_);
  if (!after_.empty()) target += "&after=" + in_query(after_);
  return server_.print({"GET", target}, [](const JsonValue& answer) {
    const auto& rows = answer.at("plans").items;
    if (rows.empty()) return std::string("no subjects: all have the default plan\n");
    TableText table({"subject", "plan", "custom limits", "until"});
    for (const JsonValue& row : rows) {
      table.add({row.at("subject").text, text_or(row.at("plan"), "-"), text_or(row.at("override"), "-"),
                 text_or(row.at("until"), "-")});
    }
    std::string out = table.text();
    if (answer.at("more").is_true) out += "more: --after " + rows.back().at("subject").text + '\n';
    return out;
  });
}

Result<int> PlanCommand::status() const {
  return server_.print({"GET", "/admin/v1/plans"}, [](const JsonValue& answer) {
    const std::string& source = answer.at("source").text;
    std::string out = source.empty() ? std::string("no database: each request carries its plan\n") : source;
    if (!source.empty()) {
      out += answer.at("up").is_true ? ": available" : ": unavailable, " + answer.at("error").text;
      out += "; last answer " + wait_text(answer.at("age_seconds").number()) + " ago; ";
      out += counted(answer.at("subjects").text, "subject") + " known\n";
    }
    TableText table({"plan", "limits"});
    for (const JsonValue& tier : answer.at("tiers").items) {
      std::string limits = tier.at("unlimited").is_true ? "unlimited" : "";
      for (const JsonValue& limit : tier.at("limits").items) limits += (limits.empty() ? "" : ", ") + limit.text;
      const bool is_default = tier.at("plan").text == answer.at("default").text;
      table.add({tier.at("plan").text + (is_default ? " (default)" : ""), limits});
    }
    out += table.text();
    for (const JsonValue& row : answer.at("refused").items) {
      out += "invalid row: " + row.at("subject").text + ": " + row.at("error").text + '\n';
    }
    return out;
  });
}

}  // namespace weir
