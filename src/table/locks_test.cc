// Two openings of one file in one process exclude each other as two processes would.

#include "table/locks.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace weir::table::locks_test {
namespace {

class Locks : public ::testing::Test {
 protected:
  Locks() {
    std::string name = ::testing::TempDir() + "weir_locks_XXXXXX";
    first_ = mkstemp(name.data());
    second_ = open(name.c_str(), O_RDWR | O_CLOEXEC);
    std::remove(name.c_str());
  }
  ~Locks() override {
    close(first_);
    close(second_);
  }
  int first_, second_;
};

TEST_F(Locks, TheFirstUserIsSoleUntilItShares) {
  EXPECT_FALSE(has_users(first_));
  EXPECT_EQ(lock_users(first_), Use::sole);
  EXPECT_TRUE(has_users(second_));
  EXPECT_FALSE(has_users(first_)) << "there is no other user";
  EXPECT_EQ(lock_users(second_, 1), Use::none);
  share_users(first_);
  EXPECT_EQ(lock_users(second_, 0), Use::shared);
  EXPECT_FALSE(try_sole_users(second_));
  EXPECT_EQ(lock_users(second_, 0), Use::shared) << "a failed attempt does not change the lock";
  close(first_);
  first_ = -1;
  EXPECT_TRUE(try_sole_users(second_));
}

TEST_F(Locks, OfParticipantsAndOfTheSweepAreIndependent) {
  EXPECT_TRUE(try_lock_owner(first_));
  EXPECT_TRUE(try_lock_participant(first_, 0));
  EXPECT_FALSE(try_lock_owner(second_));
  EXPECT_FALSE(try_lock_participant(second_, 0));
  EXPECT_TRUE(try_lock_participant(second_, 1));
  EXPECT_TRUE(try_lock_participant(second_, 255));
  unlock_participant(first_, 0);
  unlock_owner(first_);
  EXPECT_TRUE(try_lock_participant(second_, 0));
  EXPECT_TRUE(try_lock_owner(second_));
}

TEST_F(Locks, AreReleasedWhenTheirProcessDies) {
  const pid_t child = fork();
  if (child == 0) {
    const auto own = reopen(first_);
    if (own && try_lock_participant(*own, 7)) kill(getpid(), SIGKILL);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_TRUE(try_lock_participant(first_, 7));
}

TEST(LocksOfMemory, AlwaysSucceed) {
  EXPECT_EQ(lock_users(-1), Use::sole);
  EXPECT_TRUE(try_lock_owner(-1) && try_lock_participant(-1, 3));
}

TEST(LocksOfMemory, CannotBeOpenedAgain) { EXPECT_FALSE(reopen(-1)); }

}  // namespace
}  // namespace weir::table::locks_test
