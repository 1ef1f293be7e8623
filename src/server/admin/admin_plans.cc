// Admin routes for plans: look up, list and change a subject's plan. See admin_api.h.
//
// Changes are written to the plan database, which owns the plans, not to the journal. Tested by
// tests/server/plans.sh.
#include <array>
#include <string>

#include "base/nearest.h"
#include "protocol/json_writer.h"
#include "protocol/query.h"
#include "server/admin/admin_api.h"
#include "server/admin/admin_service.h"

namespace weir {
namespace {

using enum AdminMember::Type;
using enum AdminMember::Need;
using Kind = PlanChange::Kind;

constexpr std::size_t kListedMax = 10'000;

constexpr std::array<AdminMember, 3> kSet = {{{"subject", text, needed}, {"plan", text, needed}, {"reason", text}}};
constexpr std::array<AdminMember, 4> kOverride = {
    {{"subject", text, needed}, {"limits", text, needed}, {"until", text}, {"reason", text}}};
constexpr std::array<AdminMember, 3> kRemove = {{{"subject", text, needed}, {"override", flag}, {"reason", text}}};

void write_optional(JsonWriter& json, std::string_view name, const std::optional<std::string>& value) {
  if (value) {
    json.text(name, *value);
  } else {
    json.null(name);
  }
}

// The row as the database has it, valid or not.
void write_row(JsonWriter& json, const PlanRow& row) {
  json.text("subject", row.subject);
  write_optional(json, "plan", row.plan);
  write_optional(json, "override", row.limits);
  write_optional(json, "until", row.until);
}

HttpNext answer_view(HttpService& service, const Result<PlanView>& view) {
  if (!view) return refuse_change(service, view.error());
  JsonWriter json(service.answer.body);
  json.begin_object();
  write_row(json, view->row);
  json.text("refused", view->refused);
  json.begin_object("in_force");
  json.text("plan", view->plan);
  json.flag("default", view->is_default);
  json.text("limits", view->limits);
  json.end_object();
  json.end_object();
  service.answer.body += '\n';
  return HttpNext::answer;
}

// Parses the body and the author; `change_of` gives the change to write.
template <class ChangeOf>
HttpNext write(const HttpCall& call, HttpService& service, std::span<const AdminMember> members, ChangeOf change_of) {
  const auto body = AdminBody::read(call.body, members);
  if (!body) return refuse_body(service, body.error());
  const auto author = author_of(call, *body);
  if (!author) return refuse_body(service, author.error());
  PlanChange change = change_of(*body);
  change.subject = body->text("subject");
  return answer_view(service, service.admin->control->plans().write(std::move(change), *author));
}

}  // namespace

HttpNext plans_route(const HttpCall&, HttpService& service, HttpWork&) {
  const PlanDesk& desk = service.admin->control->plans();
  const PlanPolicy plans = desk.policy();
  const auto directory = desk.directory();
  const PlanStatus status = directory == nullptr ? PlanStatus{} : directory->status();
  JsonWriter json(service.answer.body);
  json.begin_object();
  json.text("source", plans.source);
  json.text("query", plans.query);
  json.flag("up", status.is_up);
  json.text("error", status.error);
  json.number("age_seconds", static_cast<std::uint64_t>(status.age.count() / 1'000'000));
  json.number("subjects", status.subjects);
  json.number("pending", status.pending);
  json.text("default", plans.fallback);
  json.begin_array("tiers");
  for (const PlanTier& tier : plans.tiers) {
    json.begin_object();
    json.text("plan", tier.name);
    json.flag("unlimited", tier.unlimited);
    std::vector<std::string> limits;
    for (const RuleLimit& limit : tier.limits) limits.push_back(limit.text);
    json.texts("limits", limits);
    json.end_object();
  }
  json.end_array();
  json.begin_array("refused");
  for (const PlanEvent& row : status.refused_rows) {
    json.begin_object();
    json.text("subject", row.subject);
    json.text("error", row.message);
    json.end_object();
  }
  json.end_array();
  json.end_object();
  service.answer.body += '\n';
  return HttpNext::answer;
}

HttpNext list_plans_route(const HttpCall& call, HttpService& service, HttpWork&) {
  const auto parameters = parse_query(split_target(call.target).query);
  if (!parameters) return refuse_body(service, parameters.error());
  std::string after;
  std::size_t most = 100;
  for (const Parameter& parameter : *parameters) {
    if (parameter.name == "after") {
      after = parameter.value;
    } else if (parameter.name == "n") {
      const auto n = count_of("n", parameter.value, kListedMax);
      if (!n) return refuse_body(service, n.error());
      most = *n;
    } else {
      return refuse_body(service,
                         {ErrorCode::invalid_argument,
                          "unknown parameter " + in_quotes(parameter.name) + "; use after=SUBJECT or n=100", 0});
    }
  }
  const auto rows = service.admin->control->plans().list(after, most);
  if (!rows) return refuse_change(service, rows.error());
  JsonWriter json(service.answer.body);
  json.begin_object();
  json.begin_array("plans");
  for (const PlanRow& row : *rows) {
    json.begin_object();
    write_row(json, row);
    json.end_object();
  }
  json.end_array();
  json.flag("more", rows->size() == most);
  json.end_object();
  service.answer.body += '\n';
  return HttpNext::answer;
}

HttpNext show_plan_route(const HttpCall& call, HttpService& service, HttpWork&) {
  const auto parameters = parse_query(split_target(call.target).query);
  if (!parameters) return refuse_body(service, parameters.error());
  if (parameters->size() != 1 || parameters->front().name != "subject") {
    return refuse_body(service, {ErrorCode::invalid_argument, "send one parameter, the subject: ?subject=user:42", 0});
  }
  return answer_view(service, service.admin->control->plans().show(parameters->front().value));
}

HttpNext set_plan_route(const HttpCall& call, HttpService& service, HttpWork&) {
  return write(call, service, kSet, [](const AdminBody& body) {
    return PlanChange{.kind = Kind::set_plan, .plan = std::string(body.text("plan"))};
  });
}

HttpNext override_plan_route(const HttpCall& call, HttpService& service, HttpWork&) {
  return write(call, service, kOverride, [](const AdminBody& body) {
    PlanChange change{.kind = Kind::set_override, .limits = std::string(body.text("limits"))};
    if (body.has("until")) change.until = body.text("until");
    return change;
  });
}

HttpNext remove_plan_route(const HttpCall& call, HttpService& service, HttpWork&) {
  return write(call, service, kRemove, [](const AdminBody& body) {
    return PlanChange{.kind = body.flag("override") ? Kind::remove_override : Kind::remove_plan};
  });
}

}  // namespace weir
