// The admin route that reports the servers of a fleet and their Redis. See admin_api.h.
//
// Tested by admin_api_test.cc and tests/server/fleet_admin.sh.
#include <cstdint>
#include <string>

#include "protocol/json_writer.h"
#include "server/admin/admin_api.h"
#include "server/admin/admin_service.h"

namespace weir {
namespace {

// Seconds with three decimal places.
std::string seconds(Micros time) {
  const std::int64_t ms = std::abs(time.count()) / 1'000;
  std::string places = std::to_string(ms % 1'000);
  return (time.count() < 0 && ms > 0 ? "-" : "") + std::to_string(ms / 1'000) + '.' +
         std::string(3 - places.size(), '0') + places;
}

void append_node(JsonWriter& json, const FleetNodeView& node) {
  json.begin_object();
  json.text("id", node.id);
  json.flag("self", node.is_self);
  json.raw("age_seconds", seconds(node.age));
  json.text("version", node.version);
  json.text("config", node.policy);
  json.text("rules", node.rules);
  json.text("change", node.change);
  json.text("own_changes", node.own);
  json.text("host", node.host);
  json.text("pid", node.pid);
  json.end_object();
}

void append_redis(JsonWriter& json, const RedisView& one) {
  json.begin_object();
  json.text("address", one.address);
  json.text("error", one.error);
  json.text("software", one.software);
  json.text("version", one.version);
  json.text("role", one.role);
  json.text("eviction", one.eviction);
  json.number("memory", one.memory);
  json.number("memory_max", one.memory_max);
  json.number("evicted", one.evicted);
  json.number("replicas", one.replicas);
  json.number("behind_bytes", one.behind);
  json.number("lag_seconds", one.lag_seconds);
  json.flag("saving_broken", one.is_saving_broken);
  json.flag("loading", one.is_loading);
  json.end_object();
}

}  // namespace

HttpNext nodes_route(const HttpCall&, HttpService& service, HttpWork&) {
  const FleetTells& fleet = service.admin->fleet;
  JsonWriter json(service.answer.body);
  json.begin_object();
  if (!fleet.view) {
    json.text("store", "memory");
  } else {
    const std::vector<RedisView> servers = fleet.inspect ? fleet.inspect() : std::vector<RedisView>{};
    const FleetView view = fleet.view();
    json.text("store", view.store);
    json.text("prefix", view.prefix);
    json.flag("up", view.is_up);
    json.flag("joined", view.has_joined);
    json.number("share_of", view.share_of);
    json.raw("since_seconds", seconds(view.since));
    json.text("last_error", view.why);
    view.why.empty() ? json.null("last_error_age_seconds") : json.raw("last_error_age_seconds", seconds(view.why_age));
    json.text("channel_error", view.deaf_why);
    json.text("heartbeat_error", view.beat_why);
    json.text("other_version", view.strangers);
    json.flag("barred", view.is_barred);
    json.raw("heard_seconds", seconds(view.heard));
    json.text("changes_error", view.changes_why);
    json.raw("skew_seconds", seconds(view.clock_skew));
    json.number("strict", view.strict);
    json.number("cached", view.cached);
    json.number("fallback", view.fallback);
    json.number("unsynced_keys", view.unsynced_keys);
    json.flag("mixed", view.kinds(&FleetNodeView::policy) > 1 || view.kinds(&FleetNodeView::version) > 1);
    json.begin_array("nodes");
    for (const FleetNodeView& node : view.nodes) append_node(json, node);
    json.end_array();
    json.begin_array("redis");
    for (const RedisView& one : servers) append_redis(json, one);
    json.end_array();
  }
  json.end_object();
  service.answer.body += '\n';
  return HttpNext::answer;
}

}  // namespace weir
