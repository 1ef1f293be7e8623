// Tests the comparison of secrets, and how often wrong ones are logged.
#include "server/observe/wrong_secret.h"

#include <gtest/gtest.h>

namespace weir::server::observe {
namespace {

TEST(WrongSecret, DiffersFromTheRightSecretInAnyByte) {
  EXPECT_TRUE(is_same_secret("0123456789abcdef", "0123456789abcdef"));
  for (const char* given : {"", "0", "0123456789abcde", "0123456789abcdeF", "0123456789abcdef0", "x123456789abcdef"}) {
    EXPECT_FALSE(is_same_secret(given, "0123456789abcdef")) << given;
  }
}

TEST(WrongSecret, IsLoggedOnceASecondWithTheNumberOfAttempts) {
  WrongSecrets wrong;
  testing::internal::CaptureStderr();
  for (const int ms : {0, 1, 999, 1000, 1500, 3000}) wrong.note("wrong", "192.0.2.1", Micros{ms * 1000});
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "weir: wrong from=192.0.2.1 times=1\n"
            "weir: wrong from=192.0.2.1 times=3\n"
            "weir: wrong from=192.0.2.1 times=2\n");
}

}  // namespace
}  // namespace weir::server::observe
