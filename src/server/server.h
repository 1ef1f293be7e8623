// The server: its doors (HTTP, gRPC, RESP, admin), one Limiter, a loop on each of some threads with all doors in it.
//
//   auto server = weir::make_server({.version = "0.1.0"}, limiter);
//   if (!server) return report(server.error().message);
//   (*server)->run();   // until SIGTERM or SIGINT
//
// All members belong to one thread. Tested by tests/server/*.sh.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "admin/control.h"
#include "admin/usage_keeper.h"
#include "envoy/envoy_in_force.h"
#include "fiber.h"
#include "server/address.h"
#include "server/admin_access.h"
#include "server/bounds.h"
#include "server/denial_log.h"
#include "server/far_end.h"
#include "server/life.h"
#include "server/loop.h"
#include "server/metrics.h"
#include "server/tls.h"
#include "server/traces.h"
#include "weir/gate.h"
#include "weir/limiter.h"
#include "weir/result.h"

namespace weir {

struct ServerOptions {
  std::optional<Address> http{}, grpc{}, resp{}, admin{};  // none: that door stays shut
  std::size_t threads = 1;
  std::size_t connections_max = 10'000;              // of each door, so that one cannot starve another
  std::size_t refused_max = Loop::kRefusedMax;       // of each door, beyond those: they are told so in peace
  std::size_t buffers_max = std::size_t{256} << 20;  // bytes of unfinished requests and unread answers, of all
  Bounds bounds{};                                   // on what one client may send and leave unread
  std::string version;
  std::string password{};              // that Redis clients must give; empty: none
  std::vector<std::string> origins{};  // whose web pages may call the HTTP port
  Gate* gate = nullptr;                // the rules, which outlive the server; null: there are none
  EnvoyInForce* envoy = nullptr;       // limits of Envoy's files, which outlive it, too; null: there are none
  LifeSettings life{};
  std::function<void()> on_hangup{};  // what SIGHUP does beside reading the certificate again
  TlsOptions tls{};
  PeerOptions peers{};
  Gate* counting = nullptr;  // counts what is decided, by rules or not; outlives the server; null: nobody does
  MetricsHooks metrics{};    // what /metrics asks other parts of the program
  DenialLogOptions denials{};
  TraceOptions traces{};
  Control* control = nullptr;    // what the admin port looks after, which outlives the server, too; null: nothing
  FleetTells fleet{};            // who knows of the fleet, if it is one of it
  UsageKeeper* usage = nullptr;  // what it tells of who spent what; outlives the server, too; null: nothing
  AdminAccess admin_access{};    // who may
  std::string state{};           // the file, as it is told to people
  // Where decisions may wait: the fibers of each loop, and what they wait for there. None: nothing ever waits.
  std::optional<FiberOptions> fibers{};
  std::function<std::unique_ptr<FarEnd>(Fibers&)> make_far_end{};
};

struct ServerAddresses {
  std::optional<Address> http{}, grpc{}, resp{}, admin{};
  std::array<bool, kDoors> tls{};  // which speak it
};

// How many descriptors it takes to serve as many connections as may be.
std::size_t descriptors_wanted(const ServerOptions& options);
// With how many one door that is full leaves the others enough to answer.
std::size_t descriptors_needed(const ServerOptions& options);
// With fewer than that: each door may have as many connections as are left to it if all others have theirs. False if
// there are too few to be shared out.
bool fit_connections(ServerOptions& options, std::size_t descriptors);

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
  // Any thread: puts the certificate in force that is in its files now; one that is no good changes nothing.
  virtual void reload_certificates() = 0;
  virtual TlsStatus tls_status() const = 0;

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
