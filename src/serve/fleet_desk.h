// Connects a server with its fleet: what the server reports about itself, the view of the other nodes, and the shared
// list of changes.
//
// Any thread. Tested by tests/server/fleet_admin.sh.
#pragma once

#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "control/control.h"
#include "control/shared_changes.h"
#include "fleet/fleet_store.h"
#include "server/admin/fleet_view.h"

namespace weir {

class FleetDesk final : public SharedChanges {
 public:
  explicit FleetDesk(FleetStore& store) : store_(store) {}  // must outlive it
  FleetDesk(const FleetDesk&) = delete;
  FleetDesk& operator=(const FleetDesk&) = delete;

  // From now on the node's heartbeat reports the rules in effect, until hush().
  void speak_for(const Control& control);
  void hush() { store_.keeper().set_says({}); }
  FleetTells tells();
  // Logs settings of Redis that would reset limits. Waits for Redis, half a second at most.
  void warn_of_redis();

  Result<Lines> since(std::uint64_t number) override;
  Result<bool> append(std::uint64_t after, std::uint64_t number, const std::string& line) override;
  Result<void> drop(const std::vector<std::uint64_t>& numbers) override;

 private:
  // Why Redis refused a command, and when it last did.
  struct Refusal {
    std::string why{};
    Micros at{0};
  };

  FleetView view();
  std::vector<RedisView> inspect();
  Error noted(Error error, Refusal FleetDesk::*refusal, std::string_view what);
  void forget(Refusal FleetDesk::*refusal);
  std::string changes_why() const;
  std::string named_addresses() const;

  FleetStore& store_;
  mutable std::mutex mutex_;  // guards what follows
  Refusal reading_, writing_;
};

// Logs one line when Redis becomes unavailable, and one when it is available again.
void log_fleet_change(bool is_away, std::string_view why);
// Logs one line when Redis refuses the fleet's channel, whose name begins with `prefix`, and one when it is permitted
// again.
void log_deaf_fleet(std::string_view prefix, std::string_view why);
// The same for the heartbeat.
void log_unheard(std::string_view prefix, std::string_view why);
// The same for servers with another version of the key format.
void log_strangers(std::string_view prefix, const Strangers& strangers, bool is_barred);

// Why this server must not start: servers with another version of the key format use the same Redis and prefix. Waits
// until Redis has answered, half a second at most. Nothing if there are none, or if Redis is unavailable.
std::optional<std::string> refuse_to_join(FleetStore& store);

}  // namespace weir
