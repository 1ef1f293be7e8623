// Tests listening on valid addresses, and the messages for invalid ones.
#include "server/loop/listener.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>

namespace weir {
namespace {

std::string why(const Address& address) {
  const auto listening = listen_on(address, "--http", 1);
  return listening ? "listening" : listening.error().message;
}

TEST(Listeners, ShareAPortAmongTheLoopsOfOneServer) {
  const auto listening = listen_on({"127.0.0.1", 0, {}}, "--http", 3);
  ASSERT_TRUE(listening) << listening.error().message;
  EXPECT_EQ(listening->sockets.size(), 3U);
  EXPECT_NE(listening->address.port, 0);
}

TEST(Listeners, DoNotShareItWithAnotherServer) {
  const auto first = listen_on({"127.0.0.1", 0, {}}, "--http", 2);
  ASSERT_TRUE(first);
  EXPECT_NE(why(first->address).find("the port is in use. Choose another, or any free one with --http 127.0.0.1:0"),
            std::string::npos)
      << why(first->address);
}

TEST(Listeners, NameWhatIsWrongWithAnAddress) {
  EXPECT_NE(why({"192.0.2.1", 8080, {}}).find("this machine has no such address. Try --http 127.0.0.1:8080"),
            std::string::npos)
      << why({"192.0.2.1", 8080, {}});
  EXPECT_NE(why({{}, 0, "/nowhere/weir.sock"}).find("No such file or directory"), std::string::npos);
}

TEST(Listeners, TakeOverTheSocketFileOfADeadServerOnly) {
  const std::string path = std::filesystem::temp_directory_path() / ("weir" + std::to_string(getpid()) + ".sock");
  const Address address{{}, 0, path};
  {
    const auto first = listen_on(address, "--resp", 2);
    ASSERT_TRUE(first) << first.error().message;
    EXPECT_EQ(first->sockets.size(), 1U);
    EXPECT_NE(why(address).find("another server is listening there"), std::string::npos) << why(address);
  }
  EXPECT_EQ(why(address), "listening");
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace weir
