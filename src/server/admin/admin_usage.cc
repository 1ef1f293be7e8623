// The admin route for usage: what subjects used, by rule and day. See admin_api.h and weir/usage.h.
//
// Tested by admin_api_test.cc and tests/server/usage.sh.
#include "server/admin/admin_api.h"

#include <utility>

#include "control/usage_control.h"

namespace weir::server::admin {
namespace {

constexpr std::size_t kTopMost = 10'000;
constexpr std::size_t kDaysMost = 36'500;

constexpr std::string_view kParameters =
    "use subject=user:42, rule=NAME, from=2026-09-01, to=2026-09-30, days=30 or top=20";

Result<UsageQuery> query_of(const http::HttpCall& call) {
  UsageQuery query;
  const std::pair<std::string_view, std::string&> texts[] = {
      {"subject", query.subject}, {"rule", query.rule}, {"from", query.from}, {"to", query.to}};
  return read_query(call, kParameters,
                    [&](const protocol::Parameter& parameter) -> Result<bool> {
                      if (parameter.name == "days") return take_count(parameter, kDaysMost, query.days);
                      if (parameter.name == "top") return take_count(parameter, kTopMost, query.top);
                      for (const auto& [name, text] : texts) {
                        if (parameter.name != name) continue;
                        text = parameter.value;
                        return true;
                      }
                      return false;
                    })
      .map([&] { return std::move(query); });
}

void append_row(protocol::JsonWriter& json, const UsageRow& row, bool has_day) {
  if (has_day) json.text("day", row.day);
  json.text("rule", row.rule);
  json.text("subject", row.subject);
  json.raw("used", std::to_string(row.used));
  json.number("error", row.error);
  json.number("denied", row.denied);
  json.number("denied_error", row.denied_error);
}

}  // namespace

http::HttpNext usage_route(const http::HttpCall& call, http::HttpContext& context, http::HttpWork&) {
  const auto query = query_of(call);
  if (!query) return refuse_body(context, query.error());
  if (admin_of(context).usage == nullptr) {
    return refuse_change(
        context,
        {ErrorCode::not_found, "usage is not counted; set the number of usage subjects above 0 (--usage-subjects)", 0});
  }
  const auto report = admin_of(context).usage->report(*query);
  if (!report && report.error().code == ErrorCode::invalid_argument) return refuse_body(context, report.error());
  if (!report) return refuse_change(context, report.error());
  return answer_object(context, [&](protocol::JsonWriter& json) {
    json.text("from", report->from);
    json.text("to", report->to);
    append_nodes(json, admin_of(context));
    append_objects(json, "rows", report->rows,
                   [&](const UsageRow& row) { append_row(json, row, !query->subject.empty()); });
    append_objects(json, "unknown", report->unknown, [&](const UsageUnknown& one) {
      json.text("day", one.day);
      json.text("rule", one.rule);
      json.number("at_most", one.at_most);
    });
  });
}

}  // namespace weir::server::admin
