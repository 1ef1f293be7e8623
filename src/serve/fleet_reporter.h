// Connects a server with its fleet: what the server reports about itself, the view of the other nodes, and the shared
// list of changes.
//
// Any thread. Tested by tests/server/fleet_admin.sh.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "base/redis_health.h"
#include "control/control.h"
#include "control/shared_changes.h"
#include "fleet/fleet_store.h"
#include "server/observe/fleet_view.h"

namespace weir::serve {

class FleetReporter final : public control::SharedChanges {
 public:
  explicit FleetReporter(fleet::FleetStore& store) : store_(store) {}  // must outlive it
  FleetReporter(const FleetReporter&) = delete;
  FleetReporter& operator=(const FleetReporter&) = delete;

  // From now on the node's heartbeat reports the rules in effect, until stop_reporting().
  void report_rules_of(const control::Control& control);
  void stop_reporting() { store_.background().membership().set_description({}); }
  server::observe::FleetReports reports();
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

  server::observe::FleetView view();
  std::vector<base::RedisHealth> inspect();
  Error noted_refusal(Error error, Refusal FleetReporter::*refusal, std::string_view what);
  void clear(Refusal FleetReporter::*refusal);
  std::string changes_error() const;
  std::string named_addresses() const;

  fleet::FleetStore& store_;
  mutable base::Mutex mutex_;
  Refusal reading_ GUARDED_BY(mutex_), writing_ GUARDED_BY(mutex_);
};

// Makes the store log events of the fleet: Redis is unavailable, or refuses something; servers use another version of
// the key format. Each event is a line when it begins and one when it ends. Set the prefix before.
void log_fleet_events(fleet::FleetStoreOptions& options);

// Why this server must not start: servers with another version of the key format use the same Redis and prefix. Waits
// until Redis has answered, half a second at most. Nothing if there are none, or if Redis is unavailable.
std::optional<std::string> refuse_to_join(fleet::FleetStore& store);

}  // namespace weir::serve
