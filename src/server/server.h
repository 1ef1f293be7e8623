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
#include "server/denial_log.h"
#include "server/loop.h"
#include "server/traces.h"
#include "weir/gate.h"
#include "weir/limiter.h"
#include "weir/result.h"

namespace weir {

struct ServerOptions {
  std::optional<Address> http{}, grpc{}, resp{}, admin{};  // none: that door stays shut
  std::size_t threads = 1;
  std::size_t connections_max = 10'000;              // of each door, so that one cannot starve another
  std::size_t buffers_max = std::size_t{256} << 20;  // bytes of unfinished requests and unread answers, of all
  std::string version;
  std::string password{};             // that Redis clients must give; empty: none
  Gate* gate = nullptr;               // the rules, which outlive the server; null: there are none
  std::function<void()> on_hangup{};  // what SIGHUP does; nothing if it is empty
  DenialLogOptions denials{};
  TraceOptions traces{};
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
  // Serves until SIGTERM or SIGINT, then stops accepting and finishes what is in flight.
  virtual Stopped run() = 0;

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
