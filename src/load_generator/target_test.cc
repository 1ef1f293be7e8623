// Tests the forms of addresses, and the error if no server listens.
#include "load_generator/target.h"

#include <gtest/gtest.h>

namespace weir::load {
namespace {

TEST(Target, IsReadAsPeopleWriteIt) {
  EXPECT_EQ(to_string(*parse_target("127.0.0.1:6380")), "127.0.0.1:6380");
  EXPECT_EQ(to_string(*parse_target(":6380")), "127.0.0.1:6380");
  EXPECT_EQ(to_string(*parse_target("localhost:1")), "localhost:1");
  EXPECT_EQ(to_string(*parse_target("[::1]:6380")), "[::1]:6380");
  EXPECT_EQ(parse_target("[::1]:6380")->host, "::1");
  EXPECT_EQ(to_string(*parse_target("unix:/run/weir.sock")), "unix:/run/weir.sock");
  EXPECT_EQ(parse_target("/run/weir.sock")->path, "/run/weir.sock");
}

TEST(Target, MayHaveTheSchemeThatAServerPrints) {
  EXPECT_EQ(to_string(*parse_target("redis://127.0.0.1:6380")), "127.0.0.1:6380");
  EXPECT_EQ(to_string(*parse_target("http://127.0.0.1:8080/")), "127.0.0.1:8080");
}

TEST(Target, ThatIsNoneIsToldWhatWouldBe) {
  for (const std::string_view text : {"", "6380", "127.0.0.1", "h:", "h:x", "h:70000", "h:123456", "[::1]"}) {
    const auto target = parse_target(text);
    ASSERT_FALSE(target) << text;
    EXPECT_NE(target.error().message.find("write 127.0.0.1:6380"), std::string::npos) << text;
  }
  EXPECT_FALSE(parse_target("unix:/" + std::string(200, 'x')));
}

TEST(Target, WhereNobodyListensIsSaidSo) {
  const auto fd = connect_to(*parse_target("unix:/nonexistent/weir.sock"));
  ASSERT_FALSE(fd);
  EXPECT_EQ(fd.error().message, "no server listens on unix:/nonexistent/weir.sock; start one first");
}

TEST(Target, KnowsThisMachine) {
  for (const char* here : {":1", "127.0.0.1:1", "127.8.9.1:1", "[::1]:1", "localhost:1", "unix:/run/weir.sock"}) {
    EXPECT_TRUE(is_on_this_machine(*parse_target(here))) << here;
  }
  for (const char* there : {"10.0.0.7:1", "128.0.0.1:1", "[2001:db8::1]:1", "weir:1", "127.example:1"}) {
    EXPECT_FALSE(is_on_this_machine(*parse_target(there))) << there;
  }
}

}  // namespace
}  // namespace weir::load
