// Tests what can only be checked on a real socket.
#include "net/wire.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>

namespace weir::net {
namespace {

// If nothing listens on a port of this machine, a connect to it may get that same port as its source. The client
// would then read its own commands as replies. Linux gives ports of different parity to connecting and to bound
// sockets, so the test uses the other parity. A self-connection then occurs within a few thousand tries.
TEST(Wire, DetectsASelfConnection) {
  base::Descriptor holder(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in place{};
  place.sin_family = AF_INET;
  place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof place;
  ASSERT_EQ(::bind(holder.get(), reinterpret_cast<sockaddr*>(&place), size), 0);
  ASSERT_EQ(::getsockname(holder.get(), reinterpret_cast<sockaddr*>(&place), &size), 0);
  holder.close();
  const auto address = resolve({.host = "127.0.0.1", .port = static_cast<std::uint16_t>(ntohs(place.sin_port) ^ 1U)});
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
}  // namespace weir::net
