// What only the socket itself can be asked.
#include "redis/wire.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>

namespace weir::redis {
namespace {

// A socket that dials a port of its own machine may be given that very port, and then talks to itself: it would hear
// its own words as replies. Linux gives even and odd ports to those who dial and those who bind, hence the other one;
// it comes by within some thousand tries.
TEST(RedisWire, DoesNotTakeItselfForAServer) {
  Descriptor holder(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in place{};
  place.sin_family = AF_INET;
  place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof place;
  ASSERT_EQ(::bind(holder.get(), reinterpret_cast<sockaddr*>(&place), size), 0);
  ASSERT_EQ(::getsockname(holder.get(), reinterpret_cast<sockaddr*>(&place), &size), 0);
  holder.close();
  const auto address =
      Resolver::known({.host = "127.0.0.1", .port = static_cast<std::uint16_t>(ntohs(place.sin_port) ^ 1U)});
  Wire wire;
  for (int i = 0; i < 70'000; ++i) {
    Wire::Step step = wire.open(address->front(), nullptr);
    if (step == Wire::Step::again) {
      pollfd poll{wire.descriptor(), POLLOUT, 0};
      ::poll(&poll, 1, 1'000);
      step = wire.advance();
    }
    ASSERT_EQ(step, Wire::Step::failed) << "after " << i << " tries";
  }
}

}  // namespace
}  // namespace weir::redis
