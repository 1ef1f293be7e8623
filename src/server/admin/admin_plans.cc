// Admin routes for plans: look up, list and change a subject's plan. See admin_api.h.
//
// Changes are written to the plan database, which owns the plans, not to the journal. Tested by
// tests/server/plans.sh.
#include "server/admin/admin_api.h"

#include <array>

namespace weir::server::admin {
namespace {

using enum AdminMember::Type;
using enum AdminMember::Need;
using Kind = plans::PlanChange::Kind;

constexpr std::size_t kListedMax = 10'000;

constexpr std::array<AdminMember, 3> kSet = {{{"subject", text, needed}, {"plan", text, needed}, {"reason", text}}};
constexpr std::array<AdminMember, 4> kOverride = {
    {{"subject", text, needed}, {"limits", text, needed}, {"until", text}, {"reason", text}}};
constexpr std::array<AdminMember, 3> kRemove = {{{"subject", text, needed}, {"override", flag}, {"reason", text}}};

void write_optional(protocol::JsonWriter& json, std::string_view name, const std::optional<std::string>& value) {
  value ? json.text(name, *value) : json.null(name);
}

// The row as the database has it, valid or not.
void write_row(protocol::JsonWriter& json, const plans::PlanRow& row) {
  json.text("subject", row.subject);
  write_optional(json, "plan", row.plan);
  write_optional(json, "override", row.limits);
  write_optional(json, "until", row.until);
}

http::HttpNext answer_view(http::HttpContext& context, const Result<control::PlanView>& view) {
  if (!view) return refuse_change(context, view.error());
  return answer_object(context, [&](protocol::JsonWriter& json) {
    write_row(json, view->row);
    json.text("refused", view->refused);
    json.begin_object("in_force");
    json.text("plan", view->plan);
    json.flag("default", view->is_default);
    json.text("limits", view->limits);
    json.end_object();
  });
}

// Parses the body and the author; `change_of` gives the change to write.
template <class ChangeOf>
http::HttpNext write(const http::HttpCall& call, http::HttpContext& context, std::span<const AdminMember> members,
                     ChangeOf change_of) {
  return make_change(call, context, members, [&](const AdminBody& body, const control::Author& author) {
    plans::PlanChange change = change_of(body);
    change.subject = body.text("subject");
    return answer_view(context, control_of(context).plans().write(std::move(change), author));
  });
}

}  // namespace

http::HttpNext plans_route(const http::HttpCall&, http::HttpContext& context, http::HttpWork&) {
  const control::PlanControl& plan_control = control_of(context).plans();
  const PlanPolicy plans = plan_control.policy();
  const auto directory = plan_control.directory();
  const plans::PlanStatus status = directory == nullptr ? plans::PlanStatus{} : directory->status();
  return answer_object(context, [&](protocol::JsonWriter& json) {
    json.text("source", plans.source);
    json.text("query", plans.query);
    json.flag("up", status.is_up);
    json.text("error", status.error);
    json.number("age_seconds", static_cast<std::uint64_t>(status.age.count() / 1'000'000));
    json.number("subjects", status.subjects);
    json.number("pending", status.pending);
    json.text("default", plans.fallback);
    append_objects(json, "tiers", plans.tiers, [&](const PlanTier& tier) {
      json.text("plan", tier.name);
      json.flag("unlimited", tier.unlimited);
      std::vector<std::string> limits;
      for (const RuleLimit& limit : tier.limits) limits.push_back(limit.text);
      json.texts("limits", limits);
    });
    append_objects(json, "refused", status.refused_rows, [&](const plans::PlanEvent& row) {
      json.text("subject", row.subject);
      json.text("error", row.message);
    });
  });
}

http::HttpNext list_plans_route(const http::HttpCall& call, http::HttpContext& context, http::HttpWork&) {
  std::string after;
  std::size_t most = 100;
  const auto read =
      read_query(call, "use after=SUBJECT or n=100", [&](const protocol::Parameter& parameter) -> Result<bool> {
        if (parameter.name == "n") return take_count(parameter, kListedMax, most);
        if (parameter.name != "after") return false;
        after = parameter.value;
        return true;
      });
  if (!read) return refuse_body(context, read.error());
  const auto rows = control_of(context).plans().list(after, most);
  if (!rows) return refuse_change(context, rows.error());
  return answer_object(context, [&](protocol::JsonWriter& json) {
    append_objects(json, "plans", *rows, [&](const plans::PlanRow& row) { write_row(json, row); });
    json.flag("more", rows->size() == most);
  });
}

http::HttpNext show_plan_route(const http::HttpCall& call, http::HttpContext& context, http::HttpWork&) {
  const auto parameters = protocol::parse_query(protocol::split_target(call.target).query);
  if (!parameters) return refuse_body(context, parameters.error());
  if (parameters->size() != 1 || parameters->front().name != "subject") {
    return refuse_body(context, {ErrorCode::invalid_argument, "send one parameter, the subject: ?subject=user:42", 0});
  }
  return answer_view(context, control_of(context).plans().show(parameters->front().value));
}

http::HttpNext set_plan_route(const http::HttpCall& call, http::HttpContext& context, http::HttpWork&) {
  return write(call, context, kSet, [](const AdminBody& body) {
    return plans::PlanChange{.kind = Kind::set_plan, .plan = std::string(body.text("plan"))};
  });
}

http::HttpNext override_plan_route(const http::HttpCall& call, http::HttpContext& context, http::HttpWork&) {
  return write(call, context, kOverride, [](const AdminBody& body) {
    plans::PlanChange change{.kind = Kind::set_override, .limits = std::string(body.text("limits"))};
    if (body.has("until")) change.until = body.text("until");
    return change;
  });
}

http::HttpNext remove_plan_route(const http::HttpCall& call, http::HttpContext& context, http::HttpWork&) {
  return write(call, context, kRemove, [](const AdminBody& body) {
    return plans::PlanChange{.kind = body.flag("override") ? Kind::remove_override : Kind::remove_plan};
  });
}

}  // namespace weir::server::admin
