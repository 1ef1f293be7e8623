// What the admin port shows of its server, and works with.
//
// One for a server; the functions may be called from the thread of the admin port while all others run. Tested by
// admin_api_test.cc.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "admin/control.h"
#include "server/admin_access.h"
#include "weir/clock.h"

namespace weir {

struct DoorView {
  std::string_view name{};
  std::string address{};
  std::size_t connections = 0, connections_max = 0;
  std::uint64_t requests = 0;
};

struct AdminService {
  Control* control = nullptr;  // null: nothing can be changed
  AdminAccess access{};
  std::string version{};
  std::string state{};  // the file; empty: none
  std::size_t threads = 1;
  Micros started{0};
  std::function<std::vector<DoorView>()> doors{};
  std::atomic<std::uint64_t> refused{0};  // calls without the right token
};

}  // namespace weir
