// What is remembered of keys, and what is not believed any more.

#include "fleet/key_memory.h"

#include <gtest/gtest.h>

#include <string>

namespace weir {
namespace {

constexpr Micros kSecond{1'000'000};

class Memory : public ::testing::Test {
 protected:
  Decision denied(Micros retry, Micros reset) const {
    return {.allowed = false, .limit = 5, .remaining = 0, .retry_after = retry, .reset_after = reset};
  }
  const Limit limit_ = compile("5/minute").value();
  const Limit other_ = compile("6/minute").value();
  KeyMemory memory_{1'000, {1, 2}};
};

TEST_F(Memory, KnowsADenialUntilItCanChange) {
  memory_.note("k", limit_, 1, denied(3 * kSecond, 9 * kSecond), 10 * kSecond);
  const auto denial = memory_.denial("k", limit_, 1, 12 * kSecond);
  ASSERT_TRUE(denial);
  EXPECT_FALSE(denial->allowed);
  EXPECT_EQ(denial->limit, 5);
  EXPECT_EQ(denial->retry_after, kSecond);
  EXPECT_EQ(denial->reset_after, 7 * kSecond);
  EXPECT_FALSE(memory_.denial("k", limit_, 1, 13 * kSecond)) << "the wait is over";
  EXPECT_FALSE(memory_.denial("other", limit_, 1, 12 * kSecond));
}

TEST_F(Memory, BelievesItOnlyOfTheSameQuestion) {
  memory_.note("k", limit_, 1, denied(3 * kSecond, 9 * kSecond), 10 * kSecond);
  EXPECT_FALSE(memory_.denial("k", limit_, 2, 12 * kSecond)) << "another cost waits for something else";
  EXPECT_FALSE(memory_.denial("k", limit_, 0, 12 * kSecond));
  EXPECT_FALSE(memory_.denial("k", other_, 1, 12 * kSecond)) << "the limit was raised";
}

TEST_F(Memory, ForgetsItWhenPermitsComeBack) {
  memory_.note("k", limit_, 1, denied(3 * kSecond, 9 * kSecond), 10 * kSecond);
  memory_.drop("k");
  EXPECT_FALSE(memory_.denial("k", limit_, 1, 12 * kSecond));
  memory_.note("k", limit_, 1, denied(3 * kSecond, 9 * kSecond), 10 * kSecond);
  memory_.note("k", limit_, 1, {.allowed = true, .limit = 5, .remaining = 1}, 11 * kSecond);
  EXPECT_FALSE(memory_.denial("k", limit_, 1, 12 * kSecond));
  memory_.note("k", limit_, 1, denied(3 * kSecond, 9 * kSecond), 10 * kSecond);
  memory_.drop_all();
  EXPECT_FALSE(memory_.denial("k", limit_, 1, 12 * kSecond));
}

TEST_F(Memory, KeepsNoDenialThatNeverEndsOrEndsAtOnce) {
  memory_.note("k", limit_, 1, denied(kNever, 9 * kSecond), 10 * kSecond);
  EXPECT_FALSE(memory_.denial("k", limit_, 1, 10 * kSecond));
  memory_.note("k", limit_, 1, denied(Micros{999}, 9 * kSecond), 10 * kSecond);
  EXPECT_FALSE(memory_.denial("k", limit_, 1, 10 * kSecond));
}

TEST_F(Memory, KeepsADenialWhenMoreIsDenied) {
  memory_.note("k", limit_, 1, denied(3 * kSecond, 9 * kSecond), 10 * kSecond);
  memory_.note("k", limit_, 2, denied(5 * kSecond, 8 * kSecond), 11 * kSecond);
  EXPECT_EQ(memory_.denial("k", limit_, 1, 12 * kSecond)->retry_after, kSecond);
  memory_.note("k", other_, 2, denied(5 * kSecond, 8 * kSecond), 11 * kSecond);
  EXPECT_FALSE(memory_.denial("k", other_, 1, 12 * kSecond)) << "that was under another limit";
}

TEST_F(Memory, GuessesWhatIsLeft) {
  memory_.note("k", limit_, 1, {.allowed = true, .limit = 5, .remaining = 3, .reset_after = kSecond}, 10 * kSecond);
  const auto guess = memory_.guess("k", limit_, 1, 10 * kSecond);
  ASSERT_TRUE(guess);
  EXPECT_TRUE(guess->allowed);
  EXPECT_EQ(guess->remaining, 3);
  EXPECT_EQ(guess->reset_after, kSecond);
  EXPECT_EQ(memory_.guess("k", limit_, 1, 11 * kSecond)->remaining, 5) << "it is full again";
  EXPECT_FALSE(memory_.guess("k", limit_, 4, 10 * kSecond)) << "how long it would wait is not known";
  EXPECT_FALSE(memory_.guess("k", other_, 1, 10 * kSecond));
  EXPECT_FALSE(memory_.guess("nobody", limit_, 1, 10 * kSecond));
}

TEST_F(Memory, TellsWhatWasLeftOnce) {
  memory_.note("k", limit_, 1, {.allowed = true, .limit = 5, .remaining = 3, .reset_after = kSecond}, 10 * kSecond);
  EXPECT_FALSE(memory_.seed("k", other_));
  const auto said = memory_.seed("k", limit_);
  ASSERT_TRUE(said);
  EXPECT_EQ(said->remaining, 3);
  EXPECT_EQ(said->reset_at, 11 * kSecond);
  EXPECT_FALSE(memory_.seed("k", limit_)) << "the others go on from there";
  memory_.note("k", limit_, 1, {.allowed = true, .limit = 5, .remaining = 2}, 12 * kSecond);
  EXPECT_EQ(memory_.seed("k", limit_)->remaining, 2) << "Redis has spoken again";
}

TEST_F(Memory, IsBoundedAndKeepsWhatMattersLongest) {
  memory_.note("spent", limit_, 1, denied(3'000 * kSecond, 3'000 * kSecond), kSecond);
  for (int i = 0; i < 100'000; ++i) {
    memory_.note("k" + std::to_string(i), limit_, 1, {.allowed = true, .limit = 5, .remaining = 4}, kSecond);
  }
  EXPECT_TRUE(memory_.denial("spent", limit_, 1, 2 * kSecond));
}

}  // namespace
}  // namespace weir
