// The admin route that reports the servers of a fleet and their Redis. See admin_api.h.
//
// Tested by admin_api_test.cc and tests/server/fleet_admin.sh.
#include "server/admin/admin_api.h"

namespace weir::server::admin {
namespace {

// Seconds with three decimal places.
std::string seconds(Micros time) {
  const std::int64_t ms = std::abs(time.count()) / 1'000;
  std::string places = std::to_string(ms % 1'000);
  return (time.count() < 0 && ms > 0 ? "-" : "") + std::to_string(ms / 1'000) + '.' +
         std::string(3 - places.size(), '0') + places;
}

void append_node(protocol::JsonWriter& json, const observe::FleetNodeView& node) {
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
}

void append_redis(protocol::JsonWriter& json, const base::RedisHealth& one) {
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
}

}  // namespace

http::HttpNext nodes_route(const http::HttpCall&, http::HttpContext& context, http::HttpWork&) {
  const observe::FleetReports& fleet = admin_of(context).fleet;
  return answer_object(context, [&](protocol::JsonWriter& json) {
    if (!fleet.view) {
      json.text("store", "memory");
    } else {
      const std::vector<base::RedisHealth> servers = fleet.inspect ? fleet.inspect() : std::vector<base::RedisHealth>{};
      const observe::FleetView view = fleet.view();
      json.text("store", view.store);
      json.text("prefix", view.prefix);
      json.flag("up", view.is_up);
      json.flag("joined", view.has_joined);
      json.number("share_of", view.share_of);
      json.raw("since_seconds", seconds(view.since));
      json.text("last_error", view.last_error);
      view.last_error.empty() ? json.null("last_error_age_seconds")
                              : json.raw("last_error_age_seconds", seconds(view.last_error_age));
      json.text("channel_error", view.channel_error);
      json.text("heartbeat_error", view.heartbeat_error);
      json.text("other_version", view.other_version);
      json.flag("barred", view.is_barred);
      json.raw("heard_seconds", seconds(view.heard));
      json.text("changes_error", view.changes_error);
      json.raw("clock_skew_seconds", seconds(view.clock_skew));
      json.number("strict", view.counts.strict.get());
      json.number("cached", view.counts.cached.get());
      json.number("fallback", view.counts.fallback.get());
      json.number("unsynced_keys", view.unsynced_keys);
      json.flag("mixed",
                view.kinds(&observe::FleetNodeView::policy) > 1 || view.kinds(&observe::FleetNodeView::version) > 1);
      append_objects(json, "nodes", view.nodes, [&](const observe::FleetNodeView& node) { append_node(json, node); });
      append_objects(json, "redis", servers, [&](const base::RedisHealth& one) { append_redis(json, one); });
    }
  });
}

}  // namespace weir::server::admin
