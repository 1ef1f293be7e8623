// Resolves names and connects, with a deadline: for clients that may block.
//
// Any thread. Tested by connect_test.cc.
#pragma once

#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <vector>

#include "base/descriptor.h"
#include "base/endpoint.h"
#include "weir/result.h"

namespace weir::net {

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t size = 0;
};

// At least one address. The resolver of the system may block for longer than any deadline. `flags` are those of
// getaddrinfo().
Result<std::vector<SocketAddress>> resolve(const base::Endpoint& endpoint, int flags = 0);

// Returns a non-blocking socket, with TCP_NODELAY, that begins to connect. Sets `error` to 0 if it is connected, and
// to EINPROGRESS if it will be.
base::Descriptor begin_connect(const SocketAddress& address, int& error);
// The error of a socket that became writable; 0 if it is connected.
int connect_error(int socket);

// When a call must end; once `is_ending` is set, after a second at most.
class Deadline {
 public:
  explicit Deadline(std::chrono::nanoseconds timeout, const std::atomic<bool>* is_ending = nullptr);

  // The first of `sharers` consecutive attempts gets an equal share, so that none uses up the time of the later ones.
  Deadline share(std::size_t sharers) const;
  bool is_over();
  // Waits for a socket; false when the time is over.
  bool wait_for(int socket, short events);

 private:
  const std::atomic<bool>* is_ending_;
  std::chrono::nanoseconds at_;
  bool is_last_ = false;
};

// Returns a connected socket from begin_connect(). The addresses of a name are tried one after the other.
Result<base::Descriptor> connect_to(const base::Endpoint& endpoint, Deadline deadline);

}  // namespace weir::net
