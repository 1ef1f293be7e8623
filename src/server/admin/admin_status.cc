// Admin routes that report the server's status, and the rules with their counts. See admin_api.h.
//
// Tested by admin_api_test.cc and tests/server/admin.sh.
#include "server/admin/admin_api.h"

#include <unistd.h>

#include <algorithm>
#include <map>

namespace weir::server::admin {
namespace {

// part/whole with four decimal places.
std::string fraction(std::uint64_t part, std::uint64_t whole) {
  const std::uint64_t parts = whole == 0 ? 0 : part * 10'000 / whole;
  std::string places = std::to_string(parts % 10'000);
  return std::to_string(parts / 10'000) + '.' + std::string(4 - places.size(), '0') + places;
}

void append_policy(protocol::JsonWriter& json, const control::ControlStatus& status) {
  json.begin_object("config");
  json.text("file", status.file);
  json.text("hash", status.hash);
  json.number("rules", status.rules);
  json.raw("in_force_since", time_or_null(status.in_force_since));
  json.begin_object("last_reload");
  json.flag("ok", status.last_reload.ok);
  json.raw("at", time_or_null(status.last_reload.at));
  json.text("error", status.last_reload.error);
  json.end_object();
  json.number("reloads_ok", status.reloads_ok);
  json.number("reloads_failed", status.reloads_failed);
  json.number("envoy_limits", status.envoy_limits);
  status.file_waits_for > 0 ? json.number("file_waits_for", status.file_waits_for) : json.null("file_waits_for");
  json.end_object();
}

void append_listeners(protocol::JsonWriter& json, const AdminService& admin) {
  const std::vector<ListenerView> listeners = admin.listeners ? admin.listeners() : std::vector<ListenerView>{};
  append_objects(json, "listeners", listeners, [&](const ListenerView& listener) {
    json.text("name", listener.name);
    json.text("address", listener.address);
    json.number("connections", listener.connections);
    json.number("connections_max", listener.connections_max);
    json.number("requests", listener.requests);
  });
}

// The decisions that no rule of the config made; each rule reports its own.
void append_others(protocol::JsonWriter& json, const OtherCounts& others) {
  json.begin_object("decisions");
  json.number("inline_allowed", others.inline_limits.allowed);
  json.number("inline_denied", others.inline_limits.denied);
  json.number("no_rule", others.no_rule);
  json.number("skipped", others.skipped);
  json.number("error", others.failed);
  json.end_object();
}

void append_rule(protocol::JsonWriter& json, const control::RuleView& view, const RuleCounts& numbers) {
  const Rule& rule = view.rule;
  std::string per;
  for (const Dimension& one : rule.per) per.append(per.empty() ? "" : ", ").append(to_string(one));
  std::vector<std::string> limits;
  for (const RuleLimit& limit : rule.limits) limits.push_back(limit.text);
  if (rule.unlimited) limits.emplace_back("unlimited");
  if (rule.by_plan) limits.emplace_back("plan");
  json.text("name", rule.name);
  json.text("mode", view.mode);
  json.text("configured_mode", view.configured_mode);
  json.text("per", per.empty() ? "global" : per);
  json.texts("limits", limits);
  const auto first = std::ranges::find_if(rule.tiers, [](const PlanTier& tier) { return !tier.limits.empty(); });
  const std::vector<RuleLimit>& counted = first == rule.tiers.end() ? rule.limits : first->limits;
  json.text("algorithm", counted.empty() ? "" : to_string(counted.back().quota.algorithm));
  json.text("owner", rule.owner);
  json.text("reason", rule.reason);
  json.raw("expires_at", time_or_null(rule.expires_at.value_or(Micros{0})));
  json.number("allowed", numbers.allowed);
  json.number("denied", numbers.denied);
  json.number("shadow_denied", numbers.shadow_denied);
  json.raw("last_hit", time_or_null(numbers.last_hit));
}

}  // namespace

http::HttpNext status_route(const http::HttpCall&, http::HttpContext& context, http::HttpWork&) {
  const AdminService& admin = admin_of(context);
  const control::ControlStatus status = admin.control->status();
  const LimiterStats table = context.service.limiter.stats();
  return answer_object(context, [&](protocol::JsonWriter& json) {
    json.text("version", admin.version);
    json.number("pid", static_cast<std::uint64_t>(getpid()));
    json.number("uptime_seconds", static_cast<std::uint64_t>((context.now - admin.started).count() / 1'000'000));
    json.flag("ready", context.service.stopping == nullptr || !context.service.stopping->load());
    json.flag("kill_switch", status.kill_switch);
    json.text("log_level", log::to_string(status.log_level));
    json.number("threads", admin.threads);
    append_listeners(json, admin);
    append_policy(json, status);
    append_others(json, admin.control->gate().other_counts());
    json.number("changes_active", status.changes_active);
    json.text("changes_file", status.changes_file);
    json.begin_object("table");
    json.number("keys", table.keys);
    json.number("capacity", table.capacity);
    json.raw("fill", fraction(table.keys, table.capacity));
    json.end_object();
    json.text("state", admin.state);
  });
}

http::HttpNext rules_route(const http::HttpCall&, http::HttpContext& context, http::HttpWork&) {
  std::map<std::string, RuleCounts> numbers;
  for (RuleCounts& one : control_of(context).gate().rule_counts()) numbers.emplace(one.rule, one);
  return answer_object(context, [&](protocol::JsonWriter& json) {
    append_nodes(json, admin_of(context));
    append_objects(json, "rules", control_of(context).rules(), [&](const control::RuleView& view) {
      const auto of_rule = numbers.find(view.rule.name);
      append_rule(json, view, of_rule == numbers.end() ? RuleCounts{} : of_rule->second);
    });
  });
}

}  // namespace weir::server::admin
