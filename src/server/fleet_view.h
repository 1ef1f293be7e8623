// What a server tells of the Redis that it shares with others, and of those: plain values, for the admin port and the
// page of metrics. Tested by admin_api_test.cc, metrics_test.cc and tests/server/fleet_admin.sh.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "weir/clock.h"

namespace weir {

// A server of the fleet, as it was last heard of.
struct FleetNodeView {
  std::string id{};
  bool is_self = false;
  Micros age{0};
  std::string version{}, policy{}, host{};  // empty: it does not say
  std::string pid{}, rules{}, change{};     // numbers; the last is that of the newest change
  std::string own{};                        // how many changes it has that the others do not; empty: none
};

// A server of Redis.
struct RedisView {
  std::string address{};
  std::string error{};  // why nothing is known
  std::string software{}, version{}, role{}, eviction{};
  std::uint64_t memory = 0, memory_max = 0, evicted = 0, replicas = 0, behind = 0, lag_seconds = 0;
  bool is_saving_broken = false, is_loading = false;
};

struct FleetView {
  std::string store{}, prefix{};
  bool is_up = false;                                // Redis is asked
  bool has_joined = true;                            // it has heard from Redis, since its start, who else lives
  std::uint32_t share_of = 1;                        // nodes that a limit is shared among while Redis is unavailable
  Micros since{0};                                   // for so long
  std::string why{};                                 // the last fault; empty: there was none
  Micros why_age{0};                                 // so long ago
  std::string deaf_why{};                            // denials are not remembered; empty: they are
  std::string beat_why{};                            // Redis refuses the heartbeat; empty: it does not
  std::string strangers{};                           // servers with another version of the key format; empty: none
  bool is_barred = false;                            // it does not join the fleet because of them
  Micros heard{0};                                   // so long ago Redis told who lives
  std::string changes_why{};                         // Redis refuses the list of changes; empty: it does not
  Micros skew{0};                                    // of this machine's clock to that of Redis
  std::uint64_t strict = 0, cached = 0, fallen = 0;  // decisions
  std::uint64_t calls = 0, timeouts = 0, late = 0, crowded = 0, openings = 0, connects = 0;
  std::uint64_t released = 0, stuck = 0;
  std::uint64_t owed_keys = 0, paid_back = 0, unpaid = 0, shed = 0;
  std::vector<FleetNodeView> nodes{};

  // How many different ones there are among those that say so: more than one is a rollout, or a mistake.
  std::size_t kinds(std::string FleetNodeView::*member) const {
    std::set<std::string> found;
    for (const FleetNodeView& node : nodes) {
      if (!(node.*member).empty()) found.insert(node.*member);
    }
    return found.size();
  }
};

// Who can tell. Without a fleet both are empty.
struct FleetTells {
  std::function<FleetView()> view{};                  // at once
  std::function<std::vector<RedisView>()> inspect{};  // waits for Redis, a second at most
};

}  // namespace weir
