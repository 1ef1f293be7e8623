// Tests listening addresses as text, listening on them, and the messages for invalid ones.
#include "server/loop/listener.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>

namespace weir::server::loop {
namespace {

TEST(Address, IsReadInEveryNotation) {
  EXPECT_EQ(*parse_address("127.0.0.1:8080"), (Address{"127.0.0.1", 8080, {}}));
  EXPECT_EQ(*parse_address("0.0.0.0:1"), (Address{"0.0.0.0", 1, {}}));
  EXPECT_EQ(*parse_address(":8080"), (Address{"127.0.0.1", 8080, {}}));
  EXPECT_EQ(*parse_address(":0"), (Address{"127.0.0.1", 0, {}}));
  EXPECT_EQ(*parse_address("localhost:65535"), (Address{"127.0.0.1", 65535, {}}));
  EXPECT_EQ(*parse_address("[::1]:80"), (Address{"::1", 80, {}}));
  EXPECT_EQ(parse_address("unix:/run/weir.sock")->path, "/run/weir.sock");
}

TEST(Address, KnowsWhichAddressesOnlyThisMachineReaches) {
  for (const char* text : {"127.0.0.1:1", "127.9.9.9:1", "[::1]:1", ":1", "unix:x"}) {
    EXPECT_TRUE(parse_address(text)->is_loopback()) << text;
  }
  for (const char* text : {"0.0.0.0:1", "[::]:1", "192.0.2.1:1"}) EXPECT_FALSE(parse_address(text)->is_loopback());
}

TEST(Address, IsRefusedWithTheReason) {
  for (const char* bad : {"", "8080", "127.0.0.1", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:65536", "127.0.0.1:-1",
                          "::1:80", "[]:80", "[127.0.0.1]:80", "example.org:80", "1.2.3:80", "[::1]80", "unix:"}) {
    const auto address = parse_address(bad);
    ASSERT_FALSE(address) << bad;
    EXPECT_NE(address.error().message.find("is not an address: "), std::string::npos) << address.error().message;
    EXPECT_NE(address.error().message.find("write 127.0.0.1:8080"), std::string::npos);
  }
}

TEST(Address, NamesTheMistake) {
  const auto reason = [](const char* bad) { return parse_address(bad).error().message; };
  EXPECT_NE(reason("8080").find("a port alone needs a colon before it"), std::string::npos) << reason("8080");
  EXPECT_NE(reason("[::1]").find("the port is missing"), std::string::npos) << reason("[::1]");
  EXPECT_NE(reason("http://127.0.0.1:8080").find("leave out the scheme"), std::string::npos);
  EXPECT_NE(reason("127.0.0.1:x").find("the port must be a number"), std::string::npos);
}

TEST(Address, IsWrittenAsItIsRead) {
  EXPECT_FALSE(parse_address("unix:/" + std::string(200, 'x')));
  for (const char* text : {"127.0.0.1:8080", "[::1]:80", "unix:/run/weir.sock"})
    EXPECT_EQ(to_string(*parse_address(text)), text);
}

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

TEST(Listeners, DoNotShareAPortWithAnotherServer) {
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
}  // namespace weir::server::loop
