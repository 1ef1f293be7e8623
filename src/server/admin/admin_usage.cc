// The admin route for usage: what subjects used, by rule and day. See admin_api.h and weir/spending.h.
//
// Tested by admin_api_test.cc and tests/server/usage.sh.
#include <string>

#include "base/nearest.h"
#include "control/usage_keeper.h"
#include "protocol/json_writer.h"
#include "protocol/query.h"
#include "server/admin/admin_api.h"
#include "server/admin/admin_service.h"

namespace weir {
namespace {

constexpr std::size_t kTopMost = 10'000;
constexpr std::size_t kDaysMost = 36'500;

Result<SpendingQuery> query_of(std::string_view target) {
  const auto parameters = parse_query(split_target(target).query);
  if (!parameters) return fail(parameters.error());
  SpendingQuery query;
  for (const Parameter& parameter : *parameters) {
    if (parameter.name == "subject") {
      query.subject = parameter.value;
    } else if (parameter.name == "rule") {
      query.rule = parameter.value;
    } else if (parameter.name == "from") {
      query.from = parameter.value;
    } else if (parameter.name == "to") {
      query.to = parameter.value;
    } else if (parameter.name == "days" || parameter.name == "top") {
      const bool is_top = parameter.name == "top";
      const auto count = count_of(parameter.name, parameter.value, is_top ? kTopMost : kDaysMost);
      if (!count) return fail(count.error());
      (is_top ? query.top : query.days) = *count;
    } else {
      return fail(ErrorCode::invalid_argument,
                  "unknown parameter " + in_quotes(parameter.name + '=' + parameter.value) +
                      "; use subject=user:42, rule=NAME, from=2026-09-01, to=2026-09-30, days=30 or top=20");
    }
  }
  return query;
}

void append_row(JsonWriter& json, const Spending& row, bool has_day) {
  json.begin_object();
  if (has_day) json.text("day", row.day);
  json.text("rule", row.rule);
  json.text("subject", row.subject);
  json.raw("used", std::to_string(row.spent));
  json.number("error", row.error);
  json.number("denied", row.denied);
  json.number("denied_error", row.denied_error);
  json.end_object();
}

}  // namespace

HttpNext usage_route(const HttpCall& call, HttpService& service, HttpWork&) {
  const auto query = query_of(call.target);
  if (!query) return refuse_body(service, query.error());
  if (service.admin->usage == nullptr) {
    return refuse_change(
        service,
        {ErrorCode::not_found, "usage is not counted; set the number of usage subjects above 0 (--usage-subjects)", 0});
  }
  const auto report = service.admin->usage->report(*query);
  if (!report && report.error().code == ErrorCode::invalid_argument) return refuse_body(service, report.error());
  if (!report) return refuse_change(service, report.error());
  JsonWriter json(service.answer.body);
  json.begin_object();
  json.text("from", report->from);
  json.text("to", report->to);
  append_nodes(json, *service.admin);
  json.begin_array("rows");
  for (const Spending& row : report->rows) append_row(json, row, !query->subject.empty());
  json.end_array();
  json.begin_array("unknown");
  for (const SpendingUnknown& one : report->unknown) {
    json.begin_object();
    json.text("day", one.day);
    json.text("rule", one.rule);
    json.number("at_most", one.at_most);
    json.end_object();
  }
  json.end_array();
  json.end_object();
  service.answer.body += '\n';
  return HttpNext::answer;
}

}  // namespace weir
