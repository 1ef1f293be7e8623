// Runs getaddrinfo() on one thread per name. See resolver.h.
#include "redis/resolver.h"

#include <netdb.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <system_error>
#include <thread>
#include <utility>

#include "base/descriptor.h"
#include "base/mutex.h"

namespace weir::redis {
namespace {

Resolved look_up(const base::Endpoint& endpoint, int flags) {
  auto addresses = net::resolve(endpoint, flags);
  if (!addresses) return {.failure = std::move(addresses.error().message)};
  return {.addresses = *std::move(addresses)};
}

}  // namespace

struct Resolver::Mailbox {
  base::Descriptor bell{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  base::Mutex mutex;
  std::vector<Resolved> found GUARDED_BY(mutex);

  void put(Resolved one) {
    const base::MutexLock lock(mutex);
    found.push_back(std::move(one));
    const std::uint64_t ring = 1;
    (void)!::write(bell.get(), &ring, sizeof ring);
  }
};

Resolver::Resolver() : mailbox_(std::make_shared<Mailbox>()) {}

std::optional<std::vector<net::SocketAddress>> Resolver::known(const base::Endpoint& endpoint) {
  Resolved found = look_up(endpoint, AI_NUMERICHOST);
  if (found.addresses.empty()) return std::nullopt;
  return std::move(found.addresses);
}

void Resolver::ask(const base::Endpoint& endpoint, std::uint64_t ticket) {
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
  const base::MutexLock lock(mailbox_->mutex);
  return std::exchange(mailbox_->found, {});
}

}  // namespace weir::redis
