// Fibers run, wait and continue in any order, and the state of one stays separate from the others.
#include "base/fiber.h"

#include <gtest/gtest.h>
#include <unwind.h>

#include <array>
#include <cfenv>
#include <cstdint>
#include <exception>
#include <stdexcept>
#include <string>
#include <thread>

#include "sanitized.h"
#include "seed.h"

namespace weir::base::fiber_test {
namespace {

// Suspended fibers, to be resumed by the test.
struct Waiting {
  Fibers& fibers;
  std::vector<Fiber*> all{};

  void wait() {
    all.push_back(fibers.current());
    fibers.suspend();
  }
  void resume(std::size_t place) {
    Fiber* const fiber = all[place];
    all.erase(all.begin() + static_cast<std::ptrdiff_t>(place));
    fibers.resume(fiber);
  }
  void resume_all() {
    while (!all.empty()) resume(0);
  }
};

struct FibersTest : testing::Test {
  Fibers fibers;
  Waiting waiting{fibers};
};

TEST_F(FibersTest, RunUntilTheyEnd) {
  int runs = 0;
  EXPECT_TRUE(fibers.start([&runs] { ++runs; }));
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(fibers.in_flight(), 0U);
}

TEST_F(FibersTest, WaitUntilTheyAreResumed) {
  std::string told;
  fibers.start([&] {
    told += "a";
    waiting.wait();
    told += "c";
    waiting.wait();
    told += "e";
  });
  told += "b";
  EXPECT_EQ(fibers.in_flight(), 1U);
  waiting.resume_all();
  EXPECT_EQ(told, "abce");
  EXPECT_EQ(fibers.in_flight(), 0U);
}

TEST_F(FibersTest, AreHereOnlyForCodeThatRunsOnThem) {
  Fibers others;
  EXPECT_EQ(Fibers::here(), nullptr);
  EXPECT_EQ(fibers.current(), nullptr);
  fibers.start([&] {
    EXPECT_EQ(Fibers::here(), &fibers);
    EXPECT_NE(fibers.current(), nullptr);
    std::thread([] { EXPECT_EQ(Fibers::here(), nullptr); }).join();
    others.start([&] { EXPECT_EQ(Fibers::here(), &others); });
    EXPECT_EQ(Fibers::here(), &fibers);
    {
      const Fibers::Pinned pinned, twice;
      EXPECT_EQ(Fibers::here(), nullptr);
      others.start([&] { EXPECT_EQ(Fibers::here(), &others); });
      EXPECT_EQ(Fibers::here(), nullptr);
    }
    EXPECT_EQ(Fibers::here(), &fibers);
    waiting.wait();
    EXPECT_EQ(Fibers::here(), &fibers);
  });
  EXPECT_EQ(Fibers::here(), nullptr);
  EXPECT_EQ(fibers.current(), nullptr);
  waiting.resume_all();
  EXPECT_EQ(Fibers::here(), nullptr);
}

void start_within(Fibers& fibers, Waiting& waiting, std::vector<int>& ended, int depth) {
  fibers.start([&fibers, &waiting, &ended, depth] {
    Fiber* const self = fibers.current();
    if (depth > 0) start_within(fibers, waiting, ended, depth - 1);
    EXPECT_EQ(fibers.current(), self);
    if (depth % 2 == 0) waiting.wait();
    EXPECT_EQ(fibers.current(), self);
    ended.push_back(depth);
  });
}

TEST_F(FibersTest, MayStartOthersWhichStartOthers) {
  constexpr int kDepth = 100;
  std::vector<int> ended;
  start_within(fibers, waiting, ended, kDepth);
  EXPECT_EQ(ended.size(), kDepth / 2U);
  EXPECT_EQ(fibers.in_flight(), kDepth / 2U + 1);
  waiting.resume_all();
  EXPECT_EQ(ended.size(), kDepth + 1U);
  EXPECT_EQ(fibers.in_flight(), 0U);
}

TEST_F(FibersTest, MayResumeOthers) {
  std::string told;
  fibers.start([&] {
    waiting.wait();
    told += "first ";
    waiting.wait();
    told += "third";
  });
  fibers.start([&] {
    waiting.resume(0);
    told += "second ";
  });
  waiting.resume_all();
  EXPECT_EQ(told, "first second third");
}

// Recurses deeply, and checks that the values on the stack survive every wait.
std::uint64_t sum_with_waits(Waiting& waiting, std::uint64_t mark, int depth) {
  std::array<std::uint64_t, 16> marks{};
  marks.fill(mark + static_cast<std::uint64_t>(depth));
  if (depth % 3 == 0) waiting.wait();
  std::uint64_t sum = depth == 0 ? 0 : sum_with_waits(waiting, mark, depth - 1);
  if (depth % 5 == 0) waiting.wait();
  for (const std::uint64_t one : marks) sum += one - mark;
  return sum;
}

TEST(Fibers, ContinueByTheThousandInAnyOrder) {
  constexpr std::size_t kMany = test::kIsSanitized ? 500 : 4'000;
  constexpr int kDepth = 30;
  auto random = test::seeded();
  Fibers fibers({.most = kMany});
  Waiting waiting{fibers};
  std::vector<std::uint64_t> sums(2 * kMany);
  std::size_t started = 0;
  while (started < sums.size() || !waiting.all.empty()) {
    const bool starts = started < sums.size() && fibers.in_flight() < kMany && test::pick(random, 0, 9) > 0;
    if (starts) {
      std::uint64_t* const sum = &sums[started++];
      ASSERT_TRUE(fibers.start([&waiting, sum, started] { *sum = sum_with_waits(waiting, started, kDepth); }));
    } else if (!waiting.all.empty()) {
      waiting.resume(
          static_cast<std::size_t>(test::pick(random, 0, static_cast<std::int64_t>(waiting.all.size()) - 1)));
    }
  }
  for (const std::uint64_t sum : sums) EXPECT_EQ(sum, 16U * kDepth * (kDepth + 1) / 2);
  EXPECT_EQ(fibers.in_flight(), 0U);
  EXPECT_LE(fibers.stacks(), kMany);
}

TEST(Fibers, AreBoundedInNumber) {
  Fibers fibers({.most = 3});
  Waiting waiting{fibers};
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(fibers.start([&] { waiting.wait(); }));
  bool has_run = false;
  EXPECT_FALSE(fibers.start([&has_run] { has_run = true; }));
  EXPECT_FALSE(has_run);
  waiting.resume(1);
  EXPECT_TRUE(fibers.start([&has_run] { has_run = true; }));
  EXPECT_TRUE(has_run);
  waiting.resume_all();
}

TEST_F(FibersTest, UseTheirStacksAgain) {
  for (int round = 0; round < 1'000; ++round) {
    for (int i = 0; i < 5; ++i) fibers.start([&] { waiting.wait(); });
    waiting.resume_all();
  }
  EXPECT_EQ(fibers.stacks(), 5U);
}

TEST_F(FibersTest, ThrowAndCatchWithin) {
  std::string told;
  fibers.start([&told] {
    try {
      throw std::runtime_error("within");
    } catch (const std::exception& error) {
      told = error.what();
    }
  });
  EXPECT_EQ(told, "within");
}

// Each fiber is inside a catch block while the others throw and catch.
TEST_F(FibersTest, KeepTheirExceptionsApart) {
  constexpr int kMany = 50;
  auto random = test::seeded();
  std::vector<std::string> told(kMany);
  for (int i = 0; i < kMany; ++i) {
    fibers.start([&, i] {
      try {
        try {
          throw std::runtime_error(std::to_string(i));
        } catch (...) {
          waiting.wait();
          throw;
        }
      } catch (const std::exception& error) {
        waiting.wait();
        told[static_cast<std::size_t>(i)] = error.what();
      }
      EXPECT_EQ(std::current_exception(), nullptr);
    });
    EXPECT_EQ(std::current_exception(), nullptr);
  }
  while (!waiting.all.empty()) {
    waiting.resume(static_cast<std::size_t>(test::pick(random, 0, static_cast<std::int64_t>(waiting.all.size()) - 1)));
    EXPECT_EQ(std::current_exception(), nullptr);
  }
  for (int i = 0; i < kMany; ++i) EXPECT_EQ(told[static_cast<std::size_t>(i)], std::to_string(i));
}

struct WaitsAtItsEnd {
  Waiting& waiting;
  int& uncaught;
  ~WaitsAtItsEnd() {
    waiting.wait();
    uncaught = std::uncaught_exceptions();
  }
};

TEST_F(FibersTest, MayWaitWhileAnExceptionIsThrown) {
  int uncaught = 0;
  bool is_caught = false;
  fibers.start([&] {
    try {
      const WaitsAtItsEnd last{waiting, uncaught};
      throw 1;
    } catch (int) {
      is_caught = true;
    }
  });
  EXPECT_EQ(std::uncaught_exceptions(), 0);
  waiting.resume_all();
  EXPECT_EQ(uncaught, 1);
  EXPECT_TRUE(is_caught);
}

// What a stack walk has seen.
struct Walk {
  int frames = 0;
  _Unwind_Ptr last = 1;

  static _Unwind_Reason_Code step(_Unwind_Context* context, void* walk) {
    auto& self = *static_cast<Walk*>(walk);
    self.last = _Unwind_GetIP(context);
    return ++self.frames > 100 ? _URC_FATAL_PHASE1_ERROR : _URC_NO_REASON;
  }
};

// The walk ends at the intended frame and does not continue into the code that started the fiber.
TEST_F(FibersTest, EndEveryStackWalk) {
  Walk walk;
  _Unwind_Reason_Code end = _URC_NO_REASON;
  fibers.start([&walk, &end] { end = _Unwind_Backtrace(Walk::step, &walk); });
  EXPECT_EQ(end, _URC_END_OF_STACK);
  EXPECT_GT(walk.frames, 2);
  EXPECT_LT(walk.frames, 20);
  EXPECT_EQ(walk.last, 0U) << "the caller of the first function is undefined";
}

#if defined(__x86_64__)
TEST_F(FibersTest, KeepTheirOwnRoundingMode) {
  fibers.start([&] {
    std::fesetround(FE_UPWARD);
    waiting.wait();
    EXPECT_EQ(std::fegetround(), FE_UPWARD);
    std::fesetround(FE_TONEAREST);
  });
  EXPECT_EQ(std::fegetround(), FE_TONEAREST);
  waiting.resume_all();
  EXPECT_EQ(std::fegetround(), FE_TONEAREST);
}
#endif

[[gnu::noinline]] int fall(volatile char* above, int depth) {
  volatile char here[1'024];
  here[0] = above == nullptr ? '\0' : above[0];
  if (depth == 0) return here[0];
  return fall(here, depth - 1) + here[0];
}

using FibersDeathTest = testing::Test;

TEST(FibersDeathTest, StopTheProgramBelowTheirStack) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  Fibers fibers;
  int sum = 0;
  EXPECT_TRUE(fibers.start([&sum] { sum = fall(nullptr, 50); })) << "there is room for some";
  EXPECT_DEATH(fibers.start([&sum] { sum = fall(nullptr, 100'000); }), "");
}

TEST(FibersDeathTest, StopTheProgramIfTheyThrow) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  Fibers fibers;
  EXPECT_DEATH(fibers.start([] { throw std::runtime_error("out"); }), "");
}

TEST(FibersDeathTest, MustEndBeforeTheirOwner) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        Fibers fibers;
        fibers.start([&fibers] { fibers.suspend(); });
      },
      "in_flight");
}

}  // namespace
}  // namespace weir::base::fiber_test
