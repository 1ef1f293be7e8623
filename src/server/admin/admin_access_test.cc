// Tests access to the admin API: tokens, Host names, pages of other sites, HTML forms.
#include "server/admin/admin_access.h"

#include <gtest/gtest.h>

namespace weir::server::admin {
namespace {

int refused(const AdminAccess& access, std::vector<Attribute> fields, std::string_view method = "GET",
            std::string_view target = "/admin/v1/status") {
  const auto refusal = refuse_admin(access, {method, target, {}, fields, "127.0.0.1"});
  return refusal ? refusal->status : 0;
}

TEST(AdminAccess, AcceptsAddressesLocalhostAndListedNames) {
  const AdminAccess access{.hosts = {"Admin.example.com"}};
  for (const char* host : {"127.0.0.1", "127.0.0.1:8082", "localhost", "LOCALHOST:8082", "localhost.:1", "[::1]:8082",
                           "[2001:db8::1]", "10.0.0.7:80", "admin.example.com", "admin.example.com:8082"}) {
    EXPECT_TRUE(is_known_host(access, host)) << host;
  }
  for (const char* host : {"", "evil.example.com", "evil.example.com:8082", "localhost.evil.com", "127.0.0.1.evil.com",
                           "[::1", "[evil]", "0x7f000001", "2130706433", "127.1", "localhost@evil.com"}) {
    EXPECT_FALSE(is_known_host(access, host)) << host;
  }
  EXPECT_TRUE(is_known_host({.any_host = true}, "evil.example.com"));
}

TEST(AdminAccess, RequiresTheToken) {
  const AdminAccess access{.token = "0123456789abcdef"};
  EXPECT_EQ(refused(access, {{"Host", "localhost"}}), 401);
  EXPECT_EQ(refused(access, {{"Host", "localhost"}, {"Authorization", "Bearer wrong"}}), 401);
  EXPECT_EQ(refused(access, {{"Host", "localhost"}, {"Authorization", "0123456789abcdef"}}), 401);
  EXPECT_EQ(refused(access, {{"Host", "localhost"}, {"Authorization", "Basic 0123456789abcdef"}}), 401);
  EXPECT_EQ(refused(access, {{"Host", "localhost"}, {"authorization", "bearer 0123456789abcdef"}}), 0);
  EXPECT_EQ(
      refused(access,
              {{"Host", "localhost"}, {"Authorization", "Bearer 0123456789abcdef"}, {"Authorization", "Bearer x"}}),
      401);
}

TEST(AdminAccess, RefusesOtherSitesAndForms) {
  const AdminAccess access;
  EXPECT_EQ(refused(access, {{"Host", "localhost:8082"}, {"Origin", "http://localhost:8082"}}), 0);
  for (const char* origin :
       {"http://evil.example.com", "null", "http://localhost", "http://localhost:8082.evil.com", ""}) {
    EXPECT_EQ(refused(access, {{"Host", "localhost:8082"}, {"Origin", origin}}), 403) << origin;
  }
  EXPECT_EQ(refused(access, {{"Host", "localhost"}}, "GET", "http://evil/admin/v1/status"), 403);
  const Attribute host{"Host", "localhost"};
  EXPECT_EQ(refused(access, {host}, "POST"), 415);
  EXPECT_EQ(refused(access, {host, {"Content-Type", "text/plain"}}, "POST"), 415);
  EXPECT_EQ(refused(access, {host, {"Content-Type", "application/x-www-form-urlencoded"}}, "POST"), 415);
  EXPECT_EQ(refused(access, {host, {"Content-Type", "text/plain; application/json"}}, "POST"), 415);
  EXPECT_EQ(refused(access, {host, {"Content-Type", "application/json; charset=utf-8"}}, "POST"), 0);
  EXPECT_EQ(refused(access, {host, {"Content-Type", "APPLICATION/JSON"}}, "PUT"), 0);
}

}  // namespace
}  // namespace weir::server::admin
