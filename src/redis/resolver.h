// Resolves host names on background threads, which may block.
//
// IP addresses and unix sockets need no lookup. For a name, a thread is started. It puts its result into a mailbox
// and makes descriptor() readable. If the name server is slow, the thread outlives the resolver, and its result is
// discarded. One thread may call it. Tested by resolver_test.cc.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/redis_url.h"

namespace weir::redis {

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t size = 0;
};

struct Resolved {
  std::uint64_t ticket = 0;
  std::vector<SocketAddress> addresses{};
  std::string failure{};  // set if there are no addresses
};

class Resolver {
 public:
  Resolver();

  // Returns the addresses if no lookup is needed.
  static std::optional<std::vector<SocketAddress>> known(const Endpoint& endpoint);

  // Starts a lookup. Its result has the given ticket.
  void ask(const Endpoint& endpoint, std::uint64_t ticket);
  int descriptor() const;
  std::vector<Resolved> take();

 private:
  struct Mailbox;
  std::shared_ptr<Mailbox> mailbox_;
};

}  // namespace weir::redis
