// The server: its listeners (HTTP, gRPC, RESP, admin) and one Limiter. Each thread has a loop with all listeners.
//
//   auto server = weir::make_server({.version = "0.1.0"}, limiter);
//   if (!server) return report(server.error().message);
//   (*server)->run();   // until SIGTERM or SIGINT
//
// All members belong to one thread, except where noted. Tested by tests/server/*.sh.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/fiber.h"
#include "control/control.h"
#include "control/usage_keeper.h"
#include "envoy/envoy_in_force.h"
#include "server/admin/admin_access.h"
#include "server/life/life.h"
#include "server/loop/address.h"
#include "server/loop/bounds.h"
#include "server/loop/far_end.h"
#include "server/loop/loop.h"
#include "server/loop/tls.h"
#include "server/observe/denial_log.h"
#include "server/observe/metrics.h"
#include "server/observe/traces.h"
#include "weir/gate.h"
#include "weir/limiter.h"
#include "weir/result.h"

namespace weir {

struct ServerOptions {
  std::optional<Address> http{}, grpc{}, resp{}, admin{};  // none: that listener is closed
  std::size_t threads = 1;
  std::size_t connections_max = 10'000;              // of each listener, so that one cannot starve another
  std::size_t refused_max = Loop::kRefusedMax;       // of each listener, beyond those: they get an error
  std::size_t buffers_max = std::size_t{256} << 20;  // bytes of unfinished requests and unread answers, in all
  Bounds bounds{};                                   // on what one client may send and leave unread
  std::string version;
  std::string password{};              // of Redis clients; empty: none
  std::vector<std::string> origins{};  // origins whose web pages may call the HTTP port
  Gate* gate = nullptr;                // the rules; must outlive the server; null: no rules
  EnvoyInForce* envoy = nullptr;       // limits of Envoy's files; must outlive it, too; null: none
  LifeSettings life{};
  std::function<void()> on_hangup{};  // what SIGHUP does beside reloading the certificate
  TlsOptions tls{};
  PeerOptions peers{};
  Gate* counting = nullptr;  // counts decisions, by rules or not; must outlive the server; null: not counted
  MetricsHooks metrics{};    // how /metrics asks other parts of the program
  DenialLogOptions denials{};
  TraceOptions traces{};
  Control* control = nullptr;    // runtime changes by the admin API; must outlive the server, too; null: none
  FleetTells fleet{};            // reports on the fleet, if the server is part of one
  UsageKeeper* usage = nullptr;  // usage for the admin API; must outlive the server, too; null: none
  AdminAccess admin_access{};    // who may use the admin API
  std::string state{};           // the state file, as shown to people
  // If decisions may wait: the fibers of each loop, and the backend they wait for. None: decisions never wait.
  std::optional<FiberOptions> fibers{};
  std::function<std::unique_ptr<FarEnd>(Fibers&)> make_far_end{};
};

struct ServerAddresses {
  std::optional<Address> http{}, grpc{}, resp{}, admin{};
  std::array<bool, kDoors> tls{};  // which listeners use TLS
};

// How many descriptors the maximum number of connections takes.
std::size_t descriptors_wanted(const ServerOptions& options);
// How many it takes so that one full listener leaves enough for the others to answer.
std::size_t descriptors_needed(const ServerOptions& options);
// For fewer than that: limits each listener to its share of the descriptors. False if there are too few to share.
bool fit_connections(ServerOptions& options, std::size_t descriptors);

class Server {
 public:
  virtual ~Server() = default;
  // The actual addresses: port 0 is replaced by a port.
  virtual const ServerAddresses& addresses() const = 0;
  // Serves until SIGTERM or SIGINT. After SIGTERM it serves on for a while, so that load balancers see that it is not
  // ready. Then it stops accepting and finishes requests in flight. A second signal ends it at once.
  virtual Stopped run() = 0;
  // Any thread; does what SIGUSR2 does. Starts the program again, gives it all listeners once it is ready, and ends.
  // The log reports the result. If it fails, this process serves on.
  virtual void upgrade() = 0;
  // Any thread. Loads the certificate from its files; an invalid one changes nothing.
  virtual void reload_certificates() = 0;
  virtual TlsStatus tls_status() const = 0;

 protected:
  Server() = default;
  Server(const Server&) = default;
  Server& operator=(const Server&) = default;
};

// make_server()
//
// Binds all listeners, or says which one cannot be bound and what to do. `limiter` must outlive the server.
Result<std::unique_ptr<Server>> make_server(ServerOptions options, Limiter& limiter);

}  // namespace weir
