// Tests error texts as several versions of Redis write them.
#include "redis/fault.h"

#include <gtest/gtest.h>

namespace weir::redis {
namespace {

TEST(RedisFault, IsKnownByItsFirstWord) {
  EXPECT_EQ(kind_of_error("LOADING Redis is loading the dataset in memory"), FaultKind::loading);
  EXPECT_EQ(kind_of_error("BUSY Redis is busy running a script. You can only call SCRIPT KILL"), FaultKind::busy);
  EXPECT_EQ(kind_of_error("WRONGPASS invalid username-password pair or user is disabled."), FaultKind::noauth);
  EXPECT_EQ(kind_of_error("CLUSTERDOWN Hash slot not served"), FaultKind::cluster_down);
  EXPECT_EQ(kind_of_error("OOM command not allowed when used memory > 'maxmemory'. script: ab, on @user_script:1."),
            FaultKind::oom);
  EXPECT_EQ(kind_of_error("ERR no such key"), FaultKind::error);
  EXPECT_EQ(kind_of_error("OOMPH"), FaultKind::error);
  EXPECT_EQ(kind_of_error(""), FaultKind::error);
}

TEST(RedisFault, IsFoundInsideAScriptsErrorOfRedisSix) {
  EXPECT_EQ(
      kind_of_error("ERR Error running script (call to f_f9a4): @user_script:1: @user_script: 1: -OOM command not "
                    "allowed when used memory > 'maxmemory'."),
      FaultKind::oom);
  EXPECT_EQ(kind_of_error("ERR Error running script (call to f_f9a4): @user_script:12: -READONLY You can't write"),
            FaultKind::readonly);
  EXPECT_EQ(kind_of_error("ERR Error running script (call to f_f9a4): @user_script:1: user_script:1: oops"),
            FaultKind::error);
  EXPECT_EQ(kind_of_error("ERR Error running script"), FaultKind::error);
  EXPECT_EQ(kind_of_error("ERR Error running script @user_script: "), FaultKind::error);
}

TEST(RedisFault, RecognizesAMissingPermissionAlsoInAScript) {
  EXPECT_TRUE(is_forbidden("NOPERM User weir has no permissions to run the 'evalsha' command"));
  EXPECT_TRUE(is_forbidden("r:1: ERR The user executing the script can't run this command or subcommand script: ab"));
  EXPECT_TRUE(is_forbidden("ERR The user executing the script can't access at least one of the keys"));
  EXPECT_TRUE(is_forbidden("ERR ACL failure in script: User weir has no permissions to run the 'zadd' command"));
  EXPECT_FALSE(is_forbidden("no answer in time"));
}

TEST(RedisFault, IsPrintedWithinBoundsAndWithoutControlCharacters) {
  EXPECT_EQ(fit_for_log("ERR a\r\nb\x1b[1m\xff"), "ERR a??b?[1m?");
  const std::string cut = fit_for_log(std::string(70'000, 'x'));
  EXPECT_EQ(cut.size(), kFaultTextMax + 3);
  EXPECT_TRUE(cut.ends_with("..."));
}

TEST(RedisFault, HasANameForEachKind) {
  EXPECT_EQ(name_of(FaultKind::timeout), "timeout");
  EXPECT_EQ(name_of(FaultKind::moved_too_often), "moved_too_often");
  EXPECT_EQ(name_of(FaultKind::error), "error");
}

}  // namespace
}  // namespace weir::redis
