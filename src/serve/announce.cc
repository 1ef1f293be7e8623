// Prints listeners and example commands. See announce.h.
#include "serve/announce.h"

#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <optional>

#include "base/counted.h"
#include "server/loop/address.h"

namespace weir {
namespace {

// The address for a local client of a server that listens on all addresses: loopback.
Address reachable(Address address) {
  if (address.host == "0.0.0.0") address.host = "127.0.0.1";
  if (address.host == "::") address.host = "::1";
  return address;
}

// Prints a listener's address, if it is open, with the URL scheme of its clients.
void announce_door(const char* name, const char* scheme, const std::optional<Address>& address) {
  if (!address) return;
  std::printf("%-5s %s%s\n", name, address->is_unix() ? "" : scheme, to_string(*address).c_str());
}

// The protocol of a listener.
enum class Speech : std::uint8_t { plain, tls, tls_with_certificate };

// A curl command for this address. The certificate need not match the machine's own address, hence -k.
std::string curl(const Address& address, Speech speech) {
  if (address.is_unix()) return "curl -i --unix-socket " + address.path + " http://weir";
  if (speech == Speech::plain) return "curl -i http://" + to_string(reachable(address));
  const std::string own = speech == Speech::tls ? "" : " --cert CLIENT.pem --key CLIENT.key";
  return "curl -ik" + own + " https://" + to_string(reachable(address));
}

std::string redis_cli(const Address& address, Speech speech) {
  if (address.is_unix()) return "redis-cli -s " + address.path;
  const std::string where = "-h " + reachable(address).host + " -p " + std::to_string(address.port);
  if (speech == Speech::plain) return "redis-cli " + where;
  const std::string own = speech == Speech::tls ? "" : "--cert CLIENT.pem --key CLIENT.key ";
  return "redis-cli --tls --insecure " + own + where;
}

}  // namespace

void announce(const Server& server, const Announced& what) {
  const ServerAddresses& doors = server.addresses();
  const auto speech = [&](DoorName door) {
    if (!doors.tls[static_cast<std::size_t>(door)]) return Speech::plain;
    return what.asks_clients ? Speech::tls_with_certificate : Speech::tls;
  };
  const auto scheme = [&](DoorName door) { return speech(door) == Speech::plain ? "http://" : "https://"; };
  announce_door("http", scheme(DoorName::http), doors.http);
  announce_door("grpc", scheme(DoorName::grpc), doors.grpc);
  announce_door("resp", speech(DoorName::resp) == Speech::plain ? "redis://" : "rediss://", doors.resp);
  announce_door("admin", scheme(DoorName::admin), doors.admin);
  if (!what.store.empty()) std::printf("store %s, shared; list its servers with weir nodes\n", what.store.c_str());
  if (!what.state.empty()) std::printf("state %s\n", what.state.c_str());
  if (!what.config.empty()) {
    std::printf("config %s, %s; %s kill -HUP %d\n", what.config.c_str(), counted(what.rules, "rule").c_str(),
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
  if (doors.http && !what.config.empty()) {
    std::printf("try   %s/v1/check -d '{\"user\":\"42\",\"path\":\"/api/search\",\"ip\":\"192.0.2.1\"}'\n",
                curl(*doors.http, speech(DoorName::http)).c_str());
  }
  if (doors.http) {
    std::printf("try   %s/v1/check -d '{\"key\":\"user:42\",\"limit\":\"100/minute\"}'\n",
                curl(*doors.http, speech(DoorName::http)).c_str());
  }
  if (doors.resp)
    std::printf("try   %s CL.THROTTLE user:42 15 30 60\n", redis_cli(*doors.resp, speech(DoorName::resp)).c_str());
  std::printf("ready\n");
  std::fflush(stdout);
}

}  // namespace weir
