// The server: its listeners (HTTP, gRPC, RESP, admin) and one Limiter. Each thread has a loop with all listeners.
//
//   auto server = weir::server::make_server({.version = "0.1.0"}, limiter);
//   if (!server) return report(server.error().message);
//   (*server)->run();   // until SIGTERM or SIGINT
//
// All members belong to one thread, except where noted. Tested by tests/server/*.sh.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/fiber.h"
#include "control/control.h"
#include "control/usage_control.h"
#include "envoy/envoy_in_force.h"
#include "server/admin/admin_access.h"
#include "server/life/life.h"
#include "server/loop/bounds.h"
#include "server/loop/fiber_task.h"
#include "server/loop/listener.h"
#include "server/loop/loop.h"
#include "server/loop/tls.h"
#include "server/observe/denial_log.h"
#include "server/observe/fleet_view.h"
#include "server/observe/traces.h"
#include "weir/gate.h"
#include "weir/limiter.h"
#include "weir/result.h"

namespace weir::server {

struct ServerOptions {
  std::optional<loop::Address> http{}, grpc{}, resp{}, admin{};  // none: that listener is closed
  std::size_t threads = 1;
  std::size_t connections_max = 10'000;               // of each listener, so that one cannot starve another
  std::size_t refused_max = loop::Loop::kRefusedMax;  // of each listener, beyond those: they receive an error
  std::size_t buffers_max = std::size_t{256} << 20;   // bytes of unfinished requests and unread answers, in all
  loop::Bounds bounds{};                              // on what one client may send and leave unread
  std::string version;
  std::string password{};                // of Redis clients; empty: none
  std::vector<std::string> origins{};    // origins whose web pages may call the HTTP port
  Gate* gate = nullptr;                  // the rules; must outlive the server; null: no rules
  envoy::EnvoyInForce* envoy = nullptr;  // limits of Envoy's files; must outlive it, too; null: none
  life::LifeSettings life{};
  std::function<void()> on_hangup{};  // what SIGHUP does beside reloading the certificate
  loop::TlsOptions tls{};
  loop::PeerOptions peers{};
  Gate* counting = nullptr;  // counts decisions, by rules or not; must outlive the server; null: not counted
  observe::DenialLogOptions denials{};
  observe::TraceOptions traces{};
  control::Control* control = nullptr;     // runtime changes by the admin API; must outlive the server, too; null: none
  observe::FleetReports fleet{};           // reports on the fleet, if the server is part of one
  control::UsageControl* usage = nullptr;  // usage for the admin API; must outlive the server, too; null: none
  admin::AdminAccess admin_access{};       // who may use the admin API
  std::string state{};                     // the state file, as shown to people
  // If decisions may wait: the fibers of each loop, and the backend they wait for. None: decisions never wait.
  std::optional<base::FiberOptions> fibers{};
  std::function<std::unique_ptr<loop::AsyncBackend>(base::Fibers&)> make_backend{};
};

struct ServerAddresses {
  std::optional<loop::Address> http{}, grpc{}, resp{}, admin{};
  loop::PerListener<bool> tls{};  // which listeners use TLS
};

// How many descriptors the maximum number of connections takes.
std::size_t descriptors_wanted(const ServerOptions& options);
// How many are needed so that, while one listener has its maximum of connections, the others can still answer.
std::size_t descriptors_needed(const ServerOptions& options);
// For fewer than that: limits each listener to its share of the descriptors. False if there are too few to share.
bool fit_connections(ServerOptions& options, std::size_t descriptors);

class Server {
 public:
  virtual ~Server() = default;
  // The actual addresses: port 0 is replaced by a port.
  virtual const ServerAddresses& addresses() const = 0;
  // Serves until SIGTERM or SIGINT. After SIGTERM it continues to serve for a while, so that load balancers see that it
  // is not ready. Then it stops accepting and finishes requests in flight. A second signal ends it at once.
  virtual loop::Stopped run() = 0;
  // Any thread; does what SIGUSR2 does. Starts the program again, gives it all listeners once it is ready, and ends.
  // The log reports the result. If it fails, this process continues to serve.
  virtual void upgrade() = 0;
  // Any thread. Loads the certificate from its files; an invalid one changes nothing.
  virtual void reload_certificates() = 0;
  virtual loop::TlsStatus tls_status() const = 0;

 protected:
  Server() = default;
  Server(const Server&) = default;
  Server& operator=(const Server&) = default;
};

// make_server()
//
// Binds all listeners, or says which one cannot be bound and what to do. `limiter` must outlive the server.
Result<std::unique_ptr<Server>> make_server(ServerOptions options, Limiter& limiter);

}  // namespace weir::server
