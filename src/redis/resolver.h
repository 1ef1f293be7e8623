// Resolves host names on background threads, which may block.
//
// IP addresses and unix sockets need no lookup. For a name, a thread is started. It puts its result into a mailbox
// and makes descriptor() readable. If the name server is slow, the thread outlives the resolver, and its result is
// discarded. One thread may call it. Tested by resolver_test.cc.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/redis_url.h"
#include "net/connect.h"

namespace weir::redis {

struct Resolved {
  std::uint64_t ticket = 0;
  std::vector<net::SocketAddress> addresses{};
  std::string failure{};  // set if there are no addresses
};

class Resolver {
 public:
  Resolver();

  // Returns the addresses if no lookup is needed.
  static std::optional<std::vector<net::SocketAddress>> known(const base::Endpoint& endpoint);

  // Starts a lookup. Its result has the given ticket.
  void ask(const base::Endpoint& endpoint, std::uint64_t ticket);
  int descriptor() const;
  std::vector<Resolved> take();

 private:
  struct Mailbox;
  std::shared_ptr<Mailbox> mailbox_;
};

}  // namespace weir::redis
