// Tests addresses as operators write them, and the error for each mistake.
#include "base/redis_url.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>

namespace weir::base::redis {
namespace {

std::string error_of(const std::string& url) {
  const auto target = parse_url(url);
  return target ? "none" : target.error().message;
}

TEST(RedisUrl, NamesOneServer) {
  const auto target = parse_url("redis://limiter:p%40ss%2F@redis.example:6380/2");
  ASSERT_TRUE(target) << target.error().message;
  EXPECT_EQ(target->layout, Layout::single);
  EXPECT_EQ(target->endpoints, (std::vector<Endpoint>{{.host = "redis.example", .port = 6380}}));
  EXPECT_EQ(target->credentials.user, "limiter");
  EXPECT_EQ(target->credentials.password, "p@ss/");
  EXPECT_EQ(target->db, 2);
  EXPECT_FALSE(target->tls.is_on);
  EXPECT_EQ(to_string(*target), "redis://limiter@redis.example:6380/2");
}

TEST(RedisUrl, HasDefaults) {
  EXPECT_EQ(to_string(*parse_url("redis://a")), "redis://a:6379");
  EXPECT_EQ(to_string(*parse_url("redis://a/")), "redis://a:6379");
  EXPECT_EQ(to_string(*parse_url("rediss://[::1]/0")), "rediss://[::1]:6379");
  EXPECT_EQ(parse_url("redis://:secret@a")->credentials.password, "secret");
  EXPECT_EQ(parse_url("redis://:secret@a")->credentials.user, "");
  EXPECT_EQ(to_string(*parse_url("redis+sentinel://a,b:1,[fe80::1%25eth0]/main")).substr(0, 33),
            "redis+sentinel://a:26379,b:1,[fe8");
  EXPECT_EQ(to_string(*parse_url("redis+cluster://a,b:7000")), "redis+cluster://a:6379,b:7000");
}

TEST(RedisUrl, NamesAMasterBehindSentinels) {
  const auto target = parse_url(
      "rediss+sentinel://a,b/main/3?sentinel_user=watch&sentinel_password_file=/run/s&password_file=/run/"
      "p&user=limiter");
  ASSERT_TRUE(target) << target.error().message;
  EXPECT_EQ(target->layout, Layout::sentinel);
  EXPECT_EQ(target->master_name, "main");
  EXPECT_EQ(target->db, 3);
  EXPECT_TRUE(target->tls.is_on);
  EXPECT_EQ(target->sentinel_credentials.user, "watch");
  EXPECT_EQ(target->sentinel_credentials.password_file, "/run/s");
  EXPECT_EQ(target->credentials.password_file, "/run/p");
}

TEST(RedisUrl, NamesFilesOfTls) {
  const auto target = parse_url("rediss://a?ca=/etc/ca.pem&cert=/c%20d.pem&key=/k.pem&server_name=redis&verify=no");
  ASSERT_TRUE(target) << target.error().message;
  EXPECT_EQ(target->tls.ca, "/etc/ca.pem");
  EXPECT_EQ(target->tls.certificate, "/c d.pem");
  EXPECT_EQ(target->tls.key, "/k.pem");
  EXPECT_EQ(target->tls.server_name, "redis");
  EXPECT_FALSE(target->tls.is_verified);
}

TEST(RedisUrl, NamesAUnixSocket) {
  const auto target = parse_url("redis+unix://limiter:pw@/run/redis%201.sock?db=4");
  ASSERT_TRUE(target) << target.error().message;
  EXPECT_EQ(target->endpoints[0].path, "/run/redis 1.sock");
  EXPECT_EQ(target->db, 4);
  EXPECT_EQ(to_string(*target), "redis+unix://limiter@/run/redis%201.sock?db=4");
}

TEST(RedisUrl, ReportsWhatIsWrongAndTheFix) {
  EXPECT_NE(error_of("redis://a?pasword_file=/x").find("did you mean 'password_file'?"), std::string::npos);
  EXPECT_NE(error_of("rediis://a").find("did you mean redis://?"), std::string::npos);
  EXPECT_NE(error_of("localhost:6379").find("write redis://host:6379"), std::string::npos);
  EXPECT_NE(error_of("redis://a,b").find("redis+cluster://"), std::string::npos);
  EXPECT_NE(error_of("redis+sentinel://a,b").find("master's name"), std::string::npos);
  EXPECT_NE(error_of("redis+cluster://a/1").find("only database 0"), std::string::npos);
  EXPECT_NE(error_of("redis://a?ca=/x").find("rediss://"), std::string::npos);
  EXPECT_NE(error_of("rediss://a?cert=/x").find("belong together"), std::string::npos);
  EXPECT_NE(error_of("redis://a?verify=maybe").find("yes or no"), std::string::npos);
  EXPECT_NE(error_of("redis://me@a").find("a user needs a password"), std::string::npos);
  EXPECT_NE(error_of("redis://me:x@a?password_file=/p").find("remove one of them"), std::string::npos);
  EXPECT_NE(error_of("redis://a?sentinel_user=x").find("redis+sentinel://"), std::string::npos);
  for (const char* bad : {"redis://",        "redis://a:0",     "redis://a:65536",
                          "redis://a:x",     "redis://a:",      "redis://[::1",
                          "redis://[x]",     "redis://[::1]x",  "redis://a/x",
                          "redis://a/-1",    "redis://a/99999", "redis://a b",
                          "redis://a,,b",    "redis+unix://",   "redis+unix://host/run",
                          "redis://a?db=1",  "redis://a?ca",    "redis://a%zz",
                          "redis://x:%zz@a", "redis://x:%00@a", "redis+sentinel://a/%zz"}) {
    EXPECT_NE(error_of(bad), "none") << bad;
  }
  EXPECT_NE(error_of("redis://" + std::string(5'000, 'a')), "none");
  std::string many = "redis+cluster://a";
  for (int i = 0; i < 64; ++i) many += ",a";
  EXPECT_NE(error_of(many), "none");
  EXPECT_NE(error_of("redis+unix:///" + std::string(120, 'a')), "none");
}

TEST(RedisUrl, NeverPrintsAPassword) {
  for (const char* url : {"redis://u:sesame@a:x", "redis://u:sesame@a?nope=1", "redis://u:sesame@a,b",
                          "redis://u:sesame%zz@a", "redis+cluster://u:sesame@a/3", "redis://u:sesame@[x]"}) {
    EXPECT_EQ(error_of(url).find("sesame"), std::string::npos) << error_of(url);
  }
  EXPECT_EQ(to_string(*parse_url("redis://u:sesame@a")).find("sesame"), std::string::npos);
}

TEST(RedisUrl, ReadsThePasswordFromItsFileEachTime) {
  const std::string file = "/tmp/weir-password-" + std::to_string(::getpid());
  const Credentials credentials{.password_file = file};
  EXPECT_NE(read_password(credentials).error().message.find(file), std::string::npos);
  const std::pair<std::string, std::string> kinds[] = {{"one\n", "one"},
                                                       {"two", "two"},
                                                       {"three\r\n", "three"},
                                                       {" four \n\n", " four \n"},
                                                       {std::string(4'096, 'x'), std::string(4'096, 'x')}};
  for (const auto& kind : kinds) {
    std::ofstream(file) << kind.first;
    EXPECT_EQ(read_password(credentials).value(), kind.second);
  }
  for (const std::string& bad :
       {std::string(), std::string("\n"), std::string(4'097, 'x'), std::string(100'000, 'x')}) {
    std::ofstream(file) << bad;
    EXPECT_FALSE(read_password(credentials));
  }
  std::remove(file.c_str());
  EXPECT_FALSE(read_password({.password_file = "/tmp"}));
  EXPECT_EQ(read_password({.password = "given"}).value(), "given");
}

}  // namespace
}  // namespace weir::base::redis
