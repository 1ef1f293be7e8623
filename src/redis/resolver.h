// Names to addresses, on threads that may wait for it as long as they like.
//
// An IP address or a unix socket is known at once. For a name a thread is started, which leaves what it found in a
// mailbox and makes descriptor() readable; the thread outlives the resolver if the name server is slow, and then nobody
// hears of it. One thread calls. Tested by resolver_test.cc.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "redis/url.h"

namespace weir::redis {

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t size = 0;
};

struct Resolved {
  std::uint64_t ticket = 0;
  std::vector<SocketAddress> addresses{};
  std::string failure{};  // if there are none
};

class Resolver {
 public:
  Resolver();

  // What needs no asking.
  static std::optional<std::vector<SocketAddress>> known(const Endpoint& endpoint);

  // The answer will bear the ticket.
  void ask(const Endpoint& endpoint, std::uint64_t ticket);
  int descriptor() const;
  std::vector<Resolved> take();

 private:
  struct Mailbox;
  std::shared_ptr<Mailbox> mailbox_;
};

}  // namespace weir::redis
