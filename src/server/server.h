// The server: an HTTP and a RESP listener, one Limiter, one loop on the calling thread.
//
//   auto server = weir::make_server({.version = "0.1.0"}, limiter);
//   if (!server) return report(server.error().message);
//   (*server)->run();   // until SIGTERM or SIGINT
//
// Boost stays behind this header. All members belong to one thread. Tested by tests/server/*.sh.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "server/address.h"
#include "weir/gate.h"
#include "weir/limiter.h"
#include "weir/result.h"

namespace weir {

struct ServerOptions {
  Address http{"127.0.0.1", 8080};
  Address resp{"127.0.0.1", 6380};
  std::size_t connections_max = 10'000;              // of each listener, so that one cannot starve the other
  std::size_t buffers_max = std::size_t{256} << 20;  // bytes of unfinished requests and unread answers, of all
  std::string version;
  Gate* gate = nullptr;               // the rules, which outlive the server; null: there are none
  std::function<void()> on_hangup{};  // what SIGHUP does; nothing if it is empty
};

enum class Stopped : std::uint8_t {
  drained,  // everything in flight was answered
  forced,   // by a second signal, or because the drain took too long
};

// How many descriptors it takes to serve as many connections as may be.
std::size_t descriptors_wanted(const ServerOptions& options);

class Server {
 public:
  virtual ~Server() = default;
  // Where it really listens: port 0 has become a port.
  virtual Address http_address() const = 0;
  virtual Address resp_address() const = 0;
  // Serves until SIGTERM or SIGINT, then stops accepting and finishes what is in flight.
  virtual Stopped run() = 0;

 protected:
  Server() = default;
  Server(const Server&) = default;
  Server& operator=(const Server&) = default;
};

// make_server()
//
// Binds both listeners, or says which one cannot be had and what to do. `limiter` outlives the server.
Result<std::unique_ptr<Server>> make_server(ServerOptions options, Limiter& limiter);

}  // namespace weir
