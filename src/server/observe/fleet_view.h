// What a server reports about its Redis and its fleet: plain values, for the admin API and /metrics.
//
// Tested by admin_api_test.cc, metrics_test.cc and tests/server/fleet_admin.sh.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "base/fleet_counts.h"
#include "base/redis_health.h"
#include "weir/clock.h"

namespace weir::server::observe {

// A node of the fleet, as of its last heartbeat.
struct FleetNodeView {
  std::string id{};
  bool is_self = false;
  Micros age{0};
  std::string version{}, policy{}, host{};  // empty: not reported
  std::string pid{}, rules{}, change{};     // numbers as text; `change` is the id of the newest change
  std::string own{};                        // number of changes that the other nodes do not have; empty: none
};

struct FleetView {
  std::string store{}, prefix{};
  bool is_up = false;             // Redis is in use
  bool has_joined = true;         // since its start, the node has read the list of nodes from Redis
  std::uint32_t share_of = 1;     // nodes that share a limit while Redis is unavailable
  Micros since{0};                // time since is_up last changed
  std::string last_error{};       // of Redis; empty: none
  Micros last_error_age{0};       // time since then
  std::string channel_error{};    // why denials are not cached; empty: they are
  std::string heartbeat_error{};  // why Redis refuses the heartbeat; empty: it does not
  std::string other_version{};    // servers with another version of the key format; empty: none
  bool is_barred = false;         // it does not join the fleet because of them
  Micros heard{0};                // age of the last list of nodes from Redis
  std::string changes_error{};    // why Redis refuses the list of changes; empty: it does not
  Micros clock_skew{0};           // difference of this machine's clock to that of Redis
  base::FleetCounts counts{};
  base::PipelineCounts pipelines{};  // of all threads
  std::uint64_t unsynced_keys = 0, synced_permits = 0, dropped_permits = 0;
  std::vector<FleetNodeView> nodes{};

  // The number of different values among the nodes that report one. More than one means a rollout, or a mistake.
  std::size_t kinds(std::string FleetNodeView::*member) const {
    std::set<std::string> found;
    for (const FleetNodeView& node : nodes) {
      if (!(node.*member).empty()) found.insert(node.*member);
    }
    return found.size();
  }
};

// Functions that report on the fleet. Both are empty without a fleet.
struct FleetReports {
  std::function<FleetView()> view{};                          // does not wait
  std::function<std::vector<base::RedisHealth>()> inspect{};  // waits for Redis, a second at most
};

}  // namespace weir::server::observe
