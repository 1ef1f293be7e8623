// Tests which original request is found in a forward-auth call.
#include "protocol/forward_auth.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace weir::protocol {
namespace {

Request found(std::string_view target, const std::vector<Attribute>& fields) {
  const auto request = original_request("GET", target, fields, "192.0.2.1");
  EXPECT_TRUE(request) << request.error().message;
  return request.value_or(Request{});
}

TEST(ForwardAuth, IsThePathAuthAndEverythingBelowIt) {
  for (const char* path : {"/auth", "/auth/", "/auth/a/b"}) EXPECT_TRUE(is_forward_auth(path)) << path;
  for (const char* path : {"/", "/aut", "/authx", "/Auth", "/x/auth", ""}) EXPECT_FALSE(is_forward_auth(path)) << path;
}

TEST(ForwardAuth, TakesTheOriginalFromTheFields) {
  const std::vector<Attribute> fields = {{"Host", "weir"},
                                         {"x-forwarded-uri", "/a?b"},
                                         {"X-FORWARDED-METHOD", "PUT"},
                                         {"X-Forwarded-Host", "api.example.com"},
                                         {"X-Api-Key", "k"}};
  const Request request = found("/auth?b", fields);
  EXPECT_EQ(request.path, "/a?b");
  EXPECT_EQ(request.method, "PUT");
  EXPECT_EQ(request.host, "api.example.com");
  EXPECT_EQ(request.api_key, "k");
  EXPECT_EQ(request.ip, "192.0.2.1");
  EXPECT_EQ(request.user, "");
  EXPECT_EQ(request.headers.size(), 5u);
  EXPECT_EQ(request.cost, 1);
}

TEST(ForwardAuth, TakesTheCallItselfWithoutTheseFields) {
  const std::vector<Attribute> fields = {{"Host", "api.example.com"}};
  EXPECT_EQ(found("/auth/a/b?c=d", fields).path, "/a/b?c=d");
  EXPECT_EQ(found("http://weir/auth/a", fields).path, "/a");
  EXPECT_EQ(found("/auth/", fields).path, "/");
  EXPECT_EQ(found("/auth", fields).path, "/");
  EXPECT_EQ(found("/auth?c=d", fields).path, "/") << "the query of /auth is ignored";
  EXPECT_EQ(found("/auth", fields).method, "GET");
  EXPECT_EQ(found("/auth", fields).host, "api.example.com");
}

TEST(ForwardAuth, RefusesFieldsThatContradictEachOther) {
  for (const std::vector<Attribute>& fields :
       {std::vector<Attribute>{{"X-Forwarded-Uri", "/a"}, {"X-Original-URI", "/b"}},
        std::vector<Attribute>{{"X-Original-URL", "/a"}, {"X-Original-Uri", "/b"}},
        std::vector<Attribute>{{"X-Forwarded-Uri", "/a"}, {"X-Forwarded-Uri", ""}},
        std::vector<Attribute>{{"X-Forwarded-Method", "GET"}, {"X-Original-Method", "PUT"}},
        std::vector<Attribute>{{"X-Forwarded-Host", "a"}, {"X-Forwarded-Host", "b"}}}) {
    const auto request = original_request("GET", "/auth", fields, "192.0.2.1");
    ASSERT_FALSE(request);
    EXPECT_NE(request.error().message.find(fields[1].name), std::string::npos) << request.error().message;
  }
}

}  // namespace
}  // namespace weir::protocol
