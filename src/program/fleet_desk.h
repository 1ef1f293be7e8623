// Between a server and the fleet that it is one of: what it says of itself, what it tells of the others, and the list
// of changes that all of them have.
//
// Any thread. Tested by tests/server/fleet_admin.sh.
#pragma once

#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "admin/control.h"
#include "admin/shared_changes.h"
#include "fleet/fleet_store.h"
#include "server/fleet_view.h"

namespace weir {

class FleetDesk final : public SharedChanges {
 public:
  explicit FleetDesk(FleetStore& store) : store_(store) {}  // which outlives it
  FleetDesk(const FleetDesk&) = delete;
  FleetDesk& operator=(const FleetDesk&) = delete;

  // From now on the server says what is in force there; until it is to be silent.
  void speak_for(const Control& control);
  void hush() { store_.keeper().set_says({}); }
  FleetTells tells();
  // What of Redis would let limits begin anew, in the log. Waits for it, half a second at most.
  void warn_of_redis();

  Result<Lines> since(std::uint64_t number) override;
  Result<bool> append(std::uint64_t after, std::uint64_t number, const std::string& line) override;
  Result<void> drop(const std::vector<std::uint64_t>& numbers) override;

 private:
  // Why Redis does not let it be done, and when it said so the last time.
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

// One line of the log when Redis cannot be asked any more, and one when it can.
void log_fleet_change(bool is_away, std::string_view why);
// One when it refuses the channel of the fleet, whose name begins so, and one when it does not any more.
void log_deaf_fleet(std::string_view prefix, std::string_view why);
// The same of the heartbeat.
void log_unheard(std::string_view prefix, std::string_view why);
// The same of servers with another version of the key format.
void log_strangers(std::string_view prefix, const Strangers& strangers, bool is_barred);

// Why this server must not start: servers with another version of the key format use the same Redis and prefix. Waits
// until Redis has said who is there, half a second at most; nothing if Redis cannot be asked.
std::optional<std::string> refuse_to_join(FleetStore& store);

}  // namespace weir
