// Tests the forms of addresses.
#include "base/endpoint.h"

#include <gtest/gtest.h>

namespace weir::base {
namespace {

TEST(Endpoint, IsReadAsPeopleWriteIt) {
  EXPECT_EQ(to_string(*parse_endpoint("127.0.0.1:6380")), "127.0.0.1:6380");
  EXPECT_EQ(to_string(*parse_endpoint(":6380")), "127.0.0.1:6380");
  EXPECT_EQ(to_string(*parse_endpoint("localhost:1")), "localhost:1");
  EXPECT_EQ(to_string(*parse_endpoint("[::1]:6380")), "[::1]:6380");
  EXPECT_EQ(parse_endpoint("[::1]:6380")->host, "::1");
  EXPECT_EQ(to_string(*parse_endpoint("unix:/run/weir.sock")), "unix:/run/weir.sock");
  EXPECT_EQ(parse_endpoint("/run/weir.sock")->path, "/run/weir.sock");
}

TEST(Endpoint, MayHaveTheSchemeThatAServerPrints) {
  EXPECT_EQ(to_string(*parse_endpoint("redis://127.0.0.1:6380")), "127.0.0.1:6380");
  EXPECT_EQ(to_string(*parse_endpoint("http://127.0.0.1:8080/")), "127.0.0.1:8080");
}

TEST(Endpoint, IsReportedWithExamplesIfItIsInvalid) {
  for (const std::string_view text : {"", "6380", "127.0.0.1", "h:", "h:x", "h:70000", "h:123456", "[::1]"}) {
    const auto target = parse_endpoint(text);
    ASSERT_FALSE(target) << text;
    EXPECT_NE(target.error().message.find("write 127.0.0.1:6380"), std::string::npos) << text;
  }
  EXPECT_FALSE(parse_endpoint("unix:/" + std::string(200, 'x')));
}

TEST(Endpoint, KnowsThisMachine) {
  for (const char* here : {":1", "127.0.0.1:1", "127.8.9.1:1", "[::1]:1", "localhost:1", "unix:/run/weir.sock"}) {
    EXPECT_TRUE(is_on_this_machine(*parse_endpoint(here))) << here;
  }
  for (const char* there : {"10.0.0.7:1", "128.0.0.1:1", "[2001:db8::1]:1", "weir:1", "127.example:1"}) {
    EXPECT_FALSE(is_on_this_machine(*parse_endpoint(there))) << there;
  }
}

}  // namespace
}  // namespace weir::base
