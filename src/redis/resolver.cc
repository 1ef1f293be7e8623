// Runs getaddrinfo() on one thread per name. See resolver.h.
#include "redis/resolver.h"

#include <netdb.h>
#include <sys/eventfd.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "base/descriptor.h"

namespace weir::redis {
namespace {

constexpr std::size_t kAddressesMax = 16;

Resolved look_up(const Endpoint& endpoint, int flags) {
  Resolved found;
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* list = nullptr;
  const int error = ::getaddrinfo(endpoint.host.c_str(), std::to_string(endpoint.port).c_str(), &hints, &list);
  if (error != 0) {
    found.failure = "cannot resolve " + endpoint.host + ": " + ::gai_strerror(error);
    return found;
  }
  for (const addrinfo* one = list; one != nullptr && found.addresses.size() < kAddressesMax; one = one->ai_next) {
    SocketAddress address{.size = one->ai_addrlen};
    std::memcpy(&address.storage, one->ai_addr, std::min<std::size_t>(one->ai_addrlen, sizeof address.storage));
    found.addresses.push_back(address);
  }
  ::freeaddrinfo(list);
  if (found.addresses.empty()) found.failure = "cannot resolve " + endpoint.host + ": it has no address";
  return found;
}

}  // namespace

struct Resolver::Mailbox {
  Descriptor bell{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  std::mutex mutex;  // guards `found`
  std::vector<Resolved> found;

  void put(Resolved one) {
    const std::lock_guard lock(mutex);
    found.push_back(std::move(one));
    const std::uint64_t ring = 1;
    (void)!::write(bell.get(), &ring, sizeof ring);
  }
};

Resolver::Resolver() : mailbox_(std::make_shared<Mailbox>()) {}

std::optional<std::vector<SocketAddress>> Resolver::known(const Endpoint& endpoint) {
  if (!endpoint.host.empty()) {
    Resolved found = look_up(endpoint, AI_NUMERICHOST);
    if (found.addresses.empty()) return std::nullopt;
    return std::move(found.addresses);
  }
  SocketAddress address{.size = sizeof(sockaddr_un)};
  auto& place = reinterpret_cast<sockaddr_un&>(address.storage);
  place.sun_family = AF_UNIX;
  std::memcpy(place.sun_path, endpoint.path.data(), std::min(endpoint.path.size(), sizeof place.sun_path - 1));
  return std::vector{address};
}

void Resolver::ask(const Endpoint& endpoint, std::uint64_t ticket) {
  try {
    std::thread([mailbox = mailbox_, endpoint, ticket] {
      Resolved found = look_up(endpoint, 0);
      found.ticket = ticket;
      mailbox->put(std::move(found));
    }).detach();
  } catch (const std::system_error& error) {
    mailbox_->put(
        {.ticket = ticket, .failure = std::string("cannot start a thread for a DNS lookup: ") + error.what()});
  }
}

int Resolver::descriptor() const { return mailbox_->bell.get(); }

std::vector<Resolved> Resolver::take() {
  std::uint64_t rings = 0;
  (void)!::read(mailbox_->bell.get(), &rings, sizeof rings);
  const std::lock_guard lock(mailbox_->mutex);
  return std::exchange(mailbox_->found, {});
}

}  // namespace weir::redis
