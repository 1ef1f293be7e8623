// Tests addresses that need no lookup, names resolved by a thread, and unknown names.
#include "redis/resolver.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/un.h>

namespace weir::redis {
namespace {

std::vector<Resolved> wait_for_answers(Resolver& resolver) {
  pollfd poll{resolver.descriptor(), POLLIN, 0};
  EXPECT_EQ(::poll(&poll, 1, 20'000), 1);
  return resolver.take();
}

TEST(RedisResolver, KnowsAddressesAtOnce) {
  const auto v4 = Resolver::known({.host = "127.0.0.1", .port = 6379});
  ASSERT_TRUE(v4);
  EXPECT_EQ(v4->at(0).storage.ss_family, AF_INET);
  EXPECT_EQ(reinterpret_cast<const sockaddr_in&>(v4->at(0).storage).sin_port, htons(6379));
  EXPECT_EQ(Resolver::known({.host = "::1", .port = 1})->at(0).storage.ss_family, AF_INET6);
  const auto path = Resolver::known({.path = "/run/redis.sock"});
  EXPECT_STREQ(reinterpret_cast<const sockaddr_un&>(path->at(0).storage).sun_path, "/run/redis.sock");
  EXPECT_FALSE(Resolver::known({.host = "localhost", .port = 1}));
}

TEST(RedisResolver, LooksUpNamesAndReportsUnknownOnes) {
  Resolver resolver;
  resolver.ask({.host = "localhost", .port = 6379}, 5);
  auto found = wait_for_answers(resolver);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].ticket, 5u);
  EXPECT_FALSE(found[0].addresses.empty());
  resolver.ask({.host = "nowhere.invalid", .port = 6379}, 6);
  found = wait_for_answers(resolver);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_TRUE(found[0].addresses.empty());
  EXPECT_NE(found[0].failure.find("nowhere.invalid"), std::string::npos);
}

TEST(RedisResolver, EndsWithoutWaitingForItsThreads) {
  for (int i = 0; i < 8; ++i) Resolver().ask({.host = "nowhere.invalid", .port = 1}, 1);
}

}  // namespace
}  // namespace weir::redis
