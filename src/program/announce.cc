// The announcement. See announce.h.
#include "program/announce.h"

#include <unistd.h>

#include <cstdio>
#include <optional>

#include "server/address.h"

namespace weir {
namespace {

// A client on this machine reaches a server that listens everywhere by the loopback address.
Address reachable(Address address) {
  if (address.host == "0.0.0.0") address.host = "127.0.0.1";
  if (address.host == "::") address.host = "::1";
  return address;
}

// A door, if it is open, with the scheme that its clients know it by.
void announce_door(const char* name, const char* scheme, const std::optional<Address>& address) {
  if (!address) return;
  std::printf("%-5s %s%s\n", name, address->is_unix() ? "" : scheme, to_string(*address).c_str());
}

// How curl is told where to go.
std::string curl(const Address& address) {
  if (address.is_unix()) return "curl -i --unix-socket " + address.path + " http://weir";
  return "curl -i http://" + to_string(reachable(address));
}

std::string redis_cli(const Address& address) {
  if (address.is_unix()) return "redis-cli -s " + address.path;
  return "redis-cli -h " + reachable(address).host + " -p " + std::to_string(address.port);
}

}  // namespace

void announce(const Server& server, const Announced& what) {
  const ServerAddresses& doors = server.addresses();
  announce_door("http", "http://", doors.http);
  announce_door("grpc", "http://", doors.grpc);
  announce_door("resp", "redis://", doors.resp);
  announce_door("admin", "http://", doors.admin);
  if (!what.state.empty()) std::printf("state %s\n", what.state.c_str());
  if (!what.config.empty()) {
    std::printf("rules %s, %zu of them; read again when it changes, and by kill -HUP %d\n", what.config.c_str(),
                what.rules, getpid());
    const bool is_kept = !what.changes.empty();
    std::printf("turns %s\n", is_kept ? what.changes.c_str() : "in memory only; --state or --changes FILE keeps them");
  }
  std::printf("\n");
  if (doors.http && !what.config.empty()) {
    std::printf("try   %s/v1/check -d '{\"user\":\"42\",\"path\":\"/api/search\",\"ip\":\"192.0.2.1\"}'\n",
                curl(*doors.http).c_str());
  }
  if (doors.http) {
    std::printf("try   %s/v1/check -d '{\"key\":\"user:42\",\"limit\":\"100/minute\"}'\n", curl(*doors.http).c_str());
  }
  if (doors.resp) std::printf("try   %s CL.THROTTLE user:42 15 30 60\n", redis_cli(*doors.resp).c_str());
  std::printf("ready\n");
  std::fflush(stdout);
}

}  // namespace weir
