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
  KeyMark mark(std::string_view name) const { return memory_.mark_of(name); }
  void note(std::string_view name, const Limit& limit, std::int64_t cost, const Decision& decision, Micros now) {
    memory_.note(mark(name), limit, cost, decision, memory_.ask(now), now);
  }
  std::optional<Said> seed(std::string_view name, const Limit& limit) {
    std::optional<Said> found;
    memory_.seed(mark(name), limit, [&](const Said& said) { found = said; });
    return found;
  }
  const Limit limit_ = compile("5/minute").value();
  const Limit other_ = compile("6/minute").value();
  KeyMemory memory_{1'000, {1, 2}};
};

TEST_F(Memory, KnowsADenialUntilItCanChange) {
  note("k", limit_, 1, denied(3 * kSecond, 9 * kSecond), 10 * kSecond);
  const auto denial = memory_.denial(mark("k"), limit_, 1, 12 * kSecond);
  ASSERT_TRUE(denial);
  EXPECT_FALSE(denial->allowed);
  EXPECT_EQ(denial->limit, 5);
  EXPECT_EQ(denial->retry_after, kSecond);
  EXPECT_EQ(denial->reset_after, 7 * kSecond);
  EXPECT_FALSE(memory_.denial(mark("k"), limit_, 1, 13 * kSecond)) << "the wait is over";
  EXPECT_FALSE(memory_.denial(mark("other"), limit_, 1, 12 * kSecond));
}

TEST_F(Memory, BelievesItOnlyOfTheSameQuestion) {
  note("k", limit_, 1, denied(3 * kSecond, 9 * kSecond), 10 * kSecond);
  EXPECT_FALSE(memory_.denial(mark("k"), limit_, 2, 12 * kSecond)) << "another cost waits for something else";
  EXPECT_FALSE(memory_.denial(mark("k"), limit_, 0, 12 * kSecond));
  EXPECT_FALSE(memory_.denial(mark("k"), other_, 1, 12 * kSecond)) << "the limit was raised";
}

TEST_F(Memory, ForgetsItWhenPermitsComeBack) {
  note("k", limit_, 1, denied(3 * kSecond, 9 * kSecond), 10 * kSecond);
  memory_.drop(mark("k"));
  EXPECT_FALSE(memory_.denial(mark("k"), limit_, 1, 12 * kSecond));
  note("k", limit_, 1, denied(3 * kSecond, 9 * kSecond), 10 * kSecond);
  note("k", limit_, 1, {.allowed = true, .limit = 5, .remaining = 1}, 11 * kSecond);
  EXPECT_FALSE(memory_.denial(mark("k"), limit_, 1, 12 * kSecond));
  note("k", limit_, 1, denied(3 * kSecond, 9 * kSecond), 10 * kSecond);
  memory_.drop_all();
  EXPECT_FALSE(memory_.denial(mark("k"), limit_, 1, 12 * kSecond));
}

TEST_F(Memory, KeepsNoDenialThatNeverEndsOrEndsAtOnce) {
  note("k", limit_, 1, denied(kNever, 9 * kSecond), 10 * kSecond);
  EXPECT_FALSE(memory_.denial(mark("k"), limit_, 1, 10 * kSecond));
  note("k", limit_, 1, denied(Micros{999}, 9 * kSecond), 10 * kSecond);
  EXPECT_FALSE(memory_.denial(mark("k"), limit_, 1, 10 * kSecond));
}

// The answer was on its way when permits came back.
TEST_F(Memory, KeepsNoDenialThatWasVoidBeforeItCame) {
  const auto asked = memory_.ask(10 * kSecond);
  memory_.drop(mark("k"));
  memory_.note(mark("k"), limit_, 1, denied(3 * kSecond, 9 * kSecond), asked, 10 * kSecond);
  EXPECT_FALSE(memory_.denial(mark("k"), limit_, 1, 11 * kSecond));
  const auto again = memory_.ask(10 * kSecond);
  memory_.drop_all();
  memory_.note(mark("k"), limit_, 1, denied(3 * kSecond, 9 * kSecond), again, 10 * kSecond);
  EXPECT_FALSE(memory_.denial(mark("k"), limit_, 1, 11 * kSecond));
  note("k", limit_, 1, denied(3 * kSecond, 9 * kSecond), 10 * kSecond);
  EXPECT_TRUE(memory_.denial(mark("k"), limit_, 1, 11 * kSecond));
}

TEST_F(Memory, BelievesNoDenialWhileNobodyWouldSayThatItIsVoid) {
  const auto asked_before = memory_.ask(10 * kSecond);
  note("k", limit_, 1, denied(9 * kSecond, 9 * kSecond), 10 * kSecond);
  memory_.believe(true);
  EXPECT_TRUE(memory_.denial(mark("k"), limit_, 1, 11 * kSecond)) << "it was believed already";
  memory_.believe(false);
  EXPECT_FALSE(memory_.denial(mark("k"), limit_, 1, 11 * kSecond));
  note("k", limit_, 1, denied(9 * kSecond, 9 * kSecond), 10 * kSecond);
  EXPECT_FALSE(memory_.denial(mark("k"), limit_, 1, 11 * kSecond));
  memory_.believe(true);
  EXPECT_FALSE(memory_.denial(mark("k"), limit_, 1, 11 * kSecond)) << "what was said meanwhile is not known";
  memory_.note(mark("k"), limit_, 1, denied(9 * kSecond, 9 * kSecond), asked_before, 10 * kSecond);
  EXPECT_FALSE(memory_.denial(mark("k"), limit_, 1, 11 * kSecond)) << "nor what was said before this came";
  note("k", limit_, 1, denied(9 * kSecond, 9 * kSecond), 11 * kSecond);
  EXPECT_TRUE(memory_.denial(mark("k"), limit_, 1, 12 * kSecond));
}

TEST_F(Memory, CountsTheWaitFromTheQuestion) {
  memory_.note(mark("k"), limit_, 1, denied(3 * kSecond, 9 * kSecond), memory_.ask(10 * kSecond), 12 * kSecond);
  EXPECT_FALSE(memory_.denial(mark("k"), limit_, 1, 13 * kSecond));
}

TEST_F(Memory, KnowsWhatWasLeftThoughDenialsAreVoid) {
  note("k", limit_, 1, denied(3 * kSecond, 9 * kSecond), 10 * kSecond);
  memory_.drop_all();
  EXPECT_EQ(seed("k", limit_)->remaining, 0);
}

TEST_F(Memory, KeepsADenialWhenMoreIsDenied) {
  note("k", limit_, 1, denied(3 * kSecond, 9 * kSecond), 10 * kSecond);
  note("k", limit_, 2, denied(5 * kSecond, 8 * kSecond), 11 * kSecond);
  EXPECT_EQ(memory_.denial(mark("k"), limit_, 1, 12 * kSecond)->retry_after, kSecond);
  note("k", other_, 2, denied(5 * kSecond, 8 * kSecond), 11 * kSecond);
  EXPECT_FALSE(memory_.denial(mark("k"), other_, 1, 12 * kSecond)) << "that was under another limit";
}

TEST_F(Memory, GuessesWhatIsLeft) {
  note("k", limit_, 1, {.allowed = true, .limit = 5, .remaining = 3, .reset_after = kSecond}, 10 * kSecond);
  const auto guess = memory_.guess(mark("k"), limit_, 1, 10 * kSecond);
  ASSERT_TRUE(guess);
  EXPECT_TRUE(guess->allowed);
  EXPECT_EQ(guess->remaining, 3);
  EXPECT_EQ(guess->reset_after, kSecond);
  EXPECT_EQ(memory_.guess(mark("k"), limit_, 1, 11 * kSecond)->remaining, 5) << "it is full again";
  EXPECT_FALSE(memory_.guess(mark("k"), limit_, 4, 10 * kSecond)) << "how long it would wait is not known";
  EXPECT_FALSE(memory_.guess(mark("k"), other_, 1, 10 * kSecond));
  EXPECT_FALSE(memory_.guess(mark("nobody"), limit_, 1, 10 * kSecond));
}

TEST_F(Memory, TellsWhatWasLeftOnce) {
  note("k", limit_, 1, {.allowed = true, .limit = 5, .remaining = 3, .reset_after = kSecond}, 10 * kSecond);
  EXPECT_FALSE(seed("k", other_));
  const auto said = seed("k", limit_);
  ASSERT_TRUE(said);
  EXPECT_EQ(said->remaining, 3);
  EXPECT_EQ(said->reset_at, 11 * kSecond);
  EXPECT_FALSE(seed("k", limit_)) << "the others go on from there";
  note("k", limit_, 1, {.allowed = true, .limit = 5, .remaining = 2}, 12 * kSecond);
  EXPECT_EQ(seed("k", limit_)->remaining, 2) << "Redis has spoken again";
}

TEST_F(Memory, IsBoundedAndKeepsWhatMattersLongest) {
  note("spent", limit_, 1, denied(3'000 * kSecond, 3'000 * kSecond), kSecond);
  for (int i = 0; i < 100'000; ++i) {
    note("k" + std::to_string(i), limit_, 1, {.allowed = true, .limit = 5, .remaining = 4}, kSecond);
  }
  EXPECT_TRUE(memory_.denial(mark("spent"), limit_, 1, 2 * kSecond));
}

}  // namespace
}  // namespace weir
