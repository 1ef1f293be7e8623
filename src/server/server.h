// The server: its doors (HTTP, gRPC, RESP, admin), one Limiter, a loop on each of some threads with all doors in it.
//
//   auto server = weir::make_server({.version = "0.1.0"}, limiter);
//   if (!server) return report(server.error().message);
//   (*server)->run();   // until SIGTERM or SIGINT
//
// All members belong to one thread. Tested by tests/server/*.sh.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "server/address.h"
#include "server/inheritance.h"
#include "server/loop.h"
#include "server/service_manager.h"
#include "server/successor.h"
#include "weir/gate.h"
#include "weir/limiter.h"
#include "weir/result.h"

namespace weir {

// How it begins, ends, and is succeeded.
struct LifeSettings {
  Inheritance inherited{};            // sockets to serve on, whatever the addresses below say
  ServiceManager* manager = nullptr;  // which wants to hear of all this; it outlives the server
  Micros drain_delay{2'000'000};      // after SIGTERM: it is not ready, and goes on
  Micros drain_max{10'000'000};       // then, to finish what is in flight
  Micros upgrade_max{30'000'000};     // for a successor to be ready
  Succession succession{};
  bool keeps_state = false;  // a successor would know all counts
};

struct ServerOptions {
  std::optional<Address> http{}, grpc{}, resp{}, admin{};  // none: that door stays shut
  std::size_t threads = 1;
  std::size_t connections_max = 10'000;              // of each door, so that one cannot starve another
  std::size_t buffers_max = std::size_t{256} << 20;  // bytes of unfinished requests and unread answers, of all
  std::string version;
  std::string password{};  // that Redis clients must give; empty: none
  Gate* gate = nullptr;    // the rules, which outlive the server; null: there are none
  LifeSettings life{};
  std::function<void()> on_hangup{};  // what SIGHUP does; nothing if it is empty
};

struct ServerAddresses {
  std::optional<Address> http{}, grpc{}, resp{}, admin{};
};

// How many descriptors it takes to serve as many connections as may be.
std::size_t descriptors_wanted(const ServerOptions& options);

class Server {
 public:
  virtual ~Server() = default;
  // Where its doors really are: port 0 has become a port.
  virtual const ServerAddresses& addresses() const = 0;
  // Serves until SIGTERM or SIGINT. After SIGTERM it goes on for a while, so that load balancers see that it is not
  // ready; then it stops accepting and finishes what is in flight. A second signal ends it at once.
  virtual Stopped run() = 0;
  // From any thread, as SIGUSR2 does: starts the program anew, hands it all doors once it is ready, and ends. What
  // comes of it is told in the log; without success it goes on.
  virtual void upgrade() = 0;

 protected:
  Server() = default;
  Server(const Server&) = default;
  Server& operator=(const Server&) = default;
};

// make_server()
//
// Binds all doors, or says which one cannot be had and what to do. `limiter` outlives the server.
Result<std::unique_ptr<Server>> make_server(ServerOptions options, Limiter& limiter);

}  // namespace weir
