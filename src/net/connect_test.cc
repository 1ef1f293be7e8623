// Tests connecting where no server listens, and to servers that do not accept.
#include "net/connect.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/un.h>

#include <cerrno>

namespace weir::net {
namespace {

constexpr std::chrono::milliseconds kShort{200};

// A listener that accepts nothing, with a full backlog: the kernel drops what else arrives.
class FullListener {
 public:
  FullListener() {
    sockaddr_in place{};
    place.sin_family = AF_INET;
    place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof place;
    EXPECT_EQ(::bind(socket_.get(), reinterpret_cast<sockaddr*>(&place), size), 0);
    EXPECT_EQ(::listen(socket_.get(), 0), 0);
    EXPECT_EQ(::getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&place), &size), 0);
    endpoint_ = {.host = "127.0.0.1", .port = ntohs(place.sin_port)};
    for (base::Descriptor& one : clients_) {
      int error = 0;
      one = begin_connect(resolve(endpoint_)->front(), error);
    }
  }
  const base::Endpoint& endpoint() const { return endpoint_; }

 private:
  base::Descriptor socket_{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  base::Descriptor clients_[4];
  base::Endpoint endpoint_;
};

TEST(Connect, ReportsThatNoServerListens) {
  const auto socket = connect_to({.path = "/nonexistent/weir.sock"}, Deadline(kShort));
  ASSERT_FALSE(socket);
  EXPECT_EQ(socket.error().message, "no server listens on unix:/nonexistent/weir.sock; start one first");
}

TEST(Connect, ReportsThatTheProcessMayOpenNoMoreFiles) {
  const auto address = resolve({.host = "127.0.0.1", .port = 1});
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{.rlim_cur = 0, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  int error = 0;
  const base::Descriptor socket = begin_connect(address->front(), error);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_FALSE(socket);
  EXPECT_EQ(error, EMFILE) << "not the error of a later call with the missing socket";
}

// A connect that blocked would take minutes.
TEST(Connect, EndsWithTheDeadlineIfTheServerDoesNotAccept) {
  const FullListener server;
  const auto socket = connect_to(server.endpoint(), Deadline(kShort));
  ASSERT_FALSE(socket);
  EXPECT_EQ(socket.error().message,
            "cannot connect to " + base::to_string(server.endpoint()) + ": Connection timed out");
}

// On a unix socket, a full backlog is reported at once instead.
TEST(Connect, WaitsForAUnixSocketWhoseBacklogIsFull) {
  const std::string path = testing::TempDir() + "weir-full-" + std::to_string(::getpid()) + ".sock";
  base::Descriptor listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const SocketAddress address = resolve({.path = path})->front();
  ASSERT_EQ(::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address.storage), address.size), 0);
  ASSERT_EQ(::listen(listener.get(), 0), 0);
  const auto first = connect_to({.path = path}, Deadline(kShort));
  EXPECT_TRUE(first);
  const auto second = connect_to({.path = path}, Deadline(kShort));
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().message, "cannot connect to unix:" + path + ": Connection timed out");
  ::unlink(path.c_str());
}

TEST(Connect, EndsSoonAfterTheCallerIsEnding) {
  const FullListener server;
  const std::atomic<bool> is_ending = true;
  EXPECT_FALSE(connect_to(server.endpoint(), Deadline(std::chrono::hours{1}, &is_ending)));
}

}  // namespace
}  // namespace weir::net
