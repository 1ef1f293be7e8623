// What the admin port shows of its server, and works with.
//
// One for a server; the thread of the admin port alone uses it, and calls the functions while all others run. Tested by
// admin_api_test.cc.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "admin/control.h"
#include "admin/usage_keeper.h"
#include "protocol/json_writer.h"
#include "server/admin_access.h"
#include "server/fleet_view.h"
#include "server/wrong_secret.h"
#include "weir/clock.h"

namespace weir {

struct DoorView {
  std::string_view name{};
  std::string address{};
  std::size_t connections = 0, connections_max = 0;
  std::uint64_t requests = 0;
};

struct AdminService {
  Control* control = nullptr;    // null: nothing can be changed
  UsageKeeper* usage = nullptr;  // null: nobody knows who spent what
  FleetTells fleet{};
  AdminAccess access{};
  std::string version{};
  std::string state{};  // the file; empty: none
  std::size_t threads = 1;
  Micros started{0};
  std::function<std::vector<DoorView>()> doors{};
  WrongSecrets wrong{};  // tokens, missing ones included
};

// What is counted here is this server's alone: who adds up knows by this of how many. Nothing without a fleet.
inline void append_nodes(JsonWriter& json, const AdminService& admin) {
  if (!admin.fleet.view) return;
  json.number("nodes", std::max<std::uint64_t>(1, admin.fleet.view().nodes.size()));
}

}  // namespace weir
