// What the admin API reports about its server, and what it works with.
//
// One per server. Only the admin thread uses it; it calls the functions while all other threads run. Tested by
// admin_api_test.cc.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "control/control.h"
#include "control/usage_keeper.h"
#include "protocol/json_writer.h"
#include "server/admin/admin_access.h"
#include "server/admin/fleet_view.h"
#include "server/admin/wrong_secret.h"
#include "weir/clock.h"

namespace weir {

struct DoorView {
  std::string_view name{};
  std::string address{};
  std::size_t connections = 0, connections_max = 0;
  std::uint64_t requests = 0;
};

struct AdminService {
  Control* control = nullptr;    // null: no runtime changes
  UsageKeeper* usage = nullptr;  // null: no usage by client
  FleetTells fleet{};
  AdminAccess access{};
  std::string version{};
  std::string state{};  // the state file's path; empty: none
  std::size_t threads = 1;
  Micros started{0};
  std::function<std::vector<DoorView>()> doors{};
  WrongSecrets wrong{};  // wrong and missing tokens
};

// The counts in the answer are this server's alone. The number of nodes tells the reader how many servers to add up.
// Appends nothing without a fleet.
inline void append_nodes(JsonWriter& json, const AdminService& admin) {
  if (!admin.fleet.view) return;
  json.number("nodes", std::max<std::uint64_t>(1, admin.fleet.view().nodes.size()));
}

}  // namespace weir
