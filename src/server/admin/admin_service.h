// The admin API: its routes, what it works with, and what it reports about its server.
//
// One per server, the HttpApi of the admin listener. Only the admin thread uses it, and calls its functions while
// all other threads run. Tested by admin_api_test.cc.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "control/control.h"
#include "control/usage_control.h"
#include "protocol/json_writer.h"
#include "server/admin/admin_access.h"
#include "server/observe/fleet_view.h"
#include "server/observe/metrics.h"
#include "server/observe/wrong_secret.h"
#include "weir/clock.h"

namespace weir::server::admin {

struct ListenerView {
  std::string_view name{};
  std::string address{};
  std::size_t connections = 0, connections_max = 0;
  std::uint64_t requests = 0;
};

struct AdminService : http::HttpApi {
  AdminService();

  control::Control* control = nullptr;               // null: no runtime changes
  control::UsageControl* usage = nullptr;            // null: no usage by client
  const observe::MetricsSources* metrics = nullptr;  // what /metrics shows; null: nothing
  observe::FleetReports fleet{};
  AdminAccess access{};
  std::string version{};
  std::string state{};  // the state file's path; empty: none
  std::size_t threads = 1;
  Micros started{0};
  std::function<std::vector<ListenerView>()> listeners{};
  observe::WrongSecrets wrong{};  // wrong and missing tokens
};

inline AdminService& admin_of(http::HttpContext& context) { return static_cast<AdminService&>(*context.service.api); }
// For the routes of the API only: without a Control, guard_admin() answers their calls.
inline control::Control& control_of(http::HttpContext& context) { return *admin_of(context).control; }

// The counts in the answer are this server's alone. The number of nodes says how many servers to add up.
// Appends nothing without a fleet.
inline void append_nodes(protocol::JsonWriter& json, const AdminService& admin) {
  if (!admin.fleet.view) return;
  json.number("nodes", std::max<std::uint64_t>(1, admin.fleet.view().nodes.size()));
}

}  // namespace weir::server::admin
