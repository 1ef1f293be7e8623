// Tests the bytes of the health service.
#include "protocol/health.h"

#include <gtest/gtest.h>

namespace weir {
namespace {

TEST(Health, AsksByName) {
  EXPECT_EQ(read_health_request("\x0a\x01x"), "x");
  EXPECT_EQ(read_health_request(""), "");
  EXPECT_EQ(read_health_request("\x10\x01\x0a\x01x"), "x");
  EXPECT_FALSE(read_health_request("\x0a\x02x"));
}

TEST(Health, AnswersInTwoBytes) {
  std::string out;
  append_health_response(ServingStatus::serving, out);
  append_health_response(ServingStatus::not_serving, out);
  EXPECT_EQ(out, "\x08\x01\x08\x02");
}

TEST(Health, ListsEveryName) {
  std::string out;
  append_health_list(ServingStatus::serving, out);
  EXPECT_TRUE(out.starts_with(std::string("\x0a\x06\x0a\x00\x12\x02\x08\x01", 8)));
  EXPECT_TRUE(out.ends_with(std::string("\x0a\x0f\x0a\x09ratelimit\x12\x02\x08\x01")));
  EXPECT_TRUE(is_health_service("ratelimit"));
  EXPECT_FALSE(is_health_service("ratelimits"));
}

}  // namespace
}  // namespace weir
