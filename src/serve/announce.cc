// Prints listeners and example commands. See announce.h.
#include "serve/announce.h"

#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <optional>

#include "base/text.h"
#include "server/loop/listener.h"

namespace weir::serve {
namespace {

// The address for a local client of a server that listens on all addresses: loopback.
server::loop::Address reachable(server::loop::Address address) {
  if (address.host == "0.0.0.0") address.host = "127.0.0.1";
  if (address.host == "::") address.host = "::1";
  return address;
}

// Prints a listener's address, if it is open, with the URL scheme of its clients.
void announce_listener(const char* name, const char* scheme, const std::optional<server::loop::Address>& address) {
  if (!address) return;
  std::printf("%-5s %s%s\n", name, address->is_unix() ? "" : scheme, server::loop::to_string(*address).c_str());
}

// The protocol of a listener.
enum class Transport : std::uint8_t { plain, tls, tls_with_certificate };

// A curl command for this address. It has -k, because the certificate may not name the machine's own address.
std::string curl(const server::loop::Address& address, Transport transport) {
  if (address.is_unix()) return "curl -i --unix-socket " + address.path + " http://weir";
  if (transport == Transport::plain) return "curl -i http://" + server::loop::to_string(reachable(address));
  const std::string own = transport == Transport::tls ? "" : " --cert CLIENT.pem --key CLIENT.key";
  return "curl -ik" + own + " https://" + server::loop::to_string(reachable(address));
}

std::string redis_cli(const server::loop::Address& address, Transport transport) {
  if (address.is_unix()) return "redis-cli -s " + address.path;
  const std::string where = "-h " + reachable(address).host + " -p " + std::to_string(address.port);
  if (transport == Transport::plain) return "redis-cli " + where;
  const std::string own = transport == Transport::tls ? "" : "--cert CLIENT.pem --key CLIENT.key ";
  return "redis-cli --tls --insecure " + own + where;
}

}  // namespace

void announce(const server::Server& server, const Announced& what) {
  const server::ServerAddresses& listeners = server.addresses();
  const auto transport = [&](server::loop::ListenerName listener) {
    if (!listeners.tls[listener]) return Transport::plain;
    return what.needs_client_certificate ? Transport::tls_with_certificate : Transport::tls;
  };
  const auto scheme = [&](server::loop::ListenerName listener) {
    return transport(listener) == Transport::plain ? "http://" : "https://";
  };
  announce_listener("http", scheme(server::loop::ListenerName::http), listeners.http);
  announce_listener("grpc", scheme(server::loop::ListenerName::grpc), listeners.grpc);
  announce_listener("resp", transport(server::loop::ListenerName::resp) == Transport::plain ? "redis://" : "rediss://",
                    listeners.resp);
  announce_listener("admin", scheme(server::loop::ListenerName::admin), listeners.admin);
  if (!what.store.empty()) std::printf("store %s, shared; list its servers with weir nodes\n", what.store.c_str());
  if (!what.state.empty()) std::printf("state %s\n", what.state.c_str());
  if (!what.config.empty()) {
    std::printf("config %s, %s; %s kill -HUP %d\n", what.config.c_str(), base::counted(what.rules, "rule").c_str(),
                what.is_watched ? "reloads when the file changes, and on" : "reloads on", getpid());
  }
  if (!what.envoy.empty()) {
    std::printf("envoy %s; reloads %s\n", what.envoy.c_str(), what.is_watched ? "when a file changes" : "on SIGHUP");
  }
  if (!what.config.empty() || !what.envoy.empty()) {
    const bool is_kept = !what.changes.empty();
    std::printf("changes %s\n",
                is_kept ? what.changes.c_str() : "in memory only; keep them with --state or --changes FILE");
  }
  std::printf("\n");
  if (listeners.http) {
    const std::string check =
        "try   " + curl(*listeners.http, transport(server::loop::ListenerName::http)) + "/v1/check";
    if (!what.config.empty()) {
      std::printf("%s -d '{\"user\":\"42\",\"path\":\"/api/search\",\"ip\":\"192.0.2.1\"}'\n", check.c_str());
    }
    std::printf("%s -d '{\"key\":\"user:42\",\"limit\":\"100/minute\"}'\n", check.c_str());
  }
  if (listeners.resp)
    std::printf("try   %s CL.THROTTLE user:42 15 30 60\n",
                redis_cli(*listeners.resp, transport(server::loop::ListenerName::resp)).c_str());
  std::printf("ready\n");
  std::fflush(stdout);
}

}  // namespace weir::serve
