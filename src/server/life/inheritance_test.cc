// Tests the variables of inherited sockets: those for another process, and invalid ones.
#include "server/life/inheritance.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>

namespace weir::server::life {
namespace {

Result<Inheritance> given(const std::string& pid, const std::string& count, const char* names = nullptr) {
  setenv("LISTEN_PID", pid.c_str(), 1);
  setenv("LISTEN_FDS", count.c_str(), 1);
  if (names != nullptr) setenv("LISTEN_FDNAMES", names, 1);
  return take_inheritance();
}

std::string own_pid() { return std::to_string(getpid()); }

TEST(Inheritance, IsEmptyWithoutVariables) {
  const auto taken = take_inheritance();
  ASSERT_TRUE(taken);
  EXPECT_TRUE(taken->sockets.empty());
  EXPECT_FALSE(taken->predecessor);
}

TEST(Inheritance, OfAnotherProcessIsIgnoredAndRemovedFromTheEnvironment) {
  const auto taken = given(std::to_string(getppid()), "2", "http:grpc");
  ASSERT_TRUE(taken);
  EXPECT_TRUE(taken->sockets.empty());
  for (const char* name : {"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"}) EXPECT_EQ(std::getenv(name), nullptr) << name;
}

TEST(Inheritance, RefusesAnInvalidNumberOfSockets) {
  for (const char* count : {"", "-1", "many", "5000", "99999999999999", "1x"}) {
    const auto taken = given(own_pid(), count);
    ASSERT_FALSE(taken) << count;
    EXPECT_NE(taken.error().message.find("is not a whole number from 0 to 4096"), std::string::npos) << count;
  }
}

}  // namespace
}  // namespace weir::server::life
