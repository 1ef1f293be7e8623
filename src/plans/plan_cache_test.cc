// Tests the plan cache: lookups, eviction, and waiting.
#include "plans/plan_cache.h"

#include <gtest/gtest.h>

#include <map>
#include <thread>

#include "plans/plans_fixture.h"

namespace weir::plans {
namespace {

using WhenFull = PlanCache::WhenFull;
using Waited = PlanCache::Waited;

PlanTerms ask(PlanCache& cache, const std::string& subject) {
  bool ignored = false;
  return cache.find(subject, ignored);
}

void put(PlanCache& cache, const std::string& subject, const std::string& plan, WhenFull then = WhenFull::evict) {
  const KeptTerms terms{plan, ""};
  cache.keep(subject, plan, &terms, {}, then);
}

TEST(PlanCache, ASubjectIsPendingUntilItsReplyAndIsLookedUpOnce) {
  PlanCache cache(100);
  bool wants = false;
  EXPECT_TRUE(cache.find("user:1", wants).is_pending);
  EXPECT_TRUE(wants);
  EXPECT_TRUE(cache.find("user:1", wants).is_pending);
  EXPECT_FALSE(wants);
  cache.not_queued("user:1");
  cache.find("user:1", wants);
  EXPECT_TRUE(wants);
  EXPECT_EQ(cache.pending(), 1u);
  const KeptTerms terms{"pro", "5/second", Micros{7}};
  EXPECT_FALSE(cache.keep("user:1", "p3:pro", &terms, {}, WhenFull::evict));
  const PlanTerms found = cache.find("user:1", wants);
  EXPECT_FALSE(wants);
  EXPECT_FALSE(found.is_pending);
  EXPECT_EQ(found.plan, "pro");
  EXPECT_EQ(*found.limits, "5/second");
  EXPECT_EQ(found.until, Micros{7});
  EXPECT_EQ(cache.pending(), 0u);
}

TEST(PlanCache, ARefusedRowKeepsThePreviousTerms) {
  PlanCache cache(100);
  put(cache, "user:1", "pro");
  EXPECT_TRUE(cache.keep("user:1", "bad", nullptr, {}, WhenFull::evict));
  EXPECT_EQ(ask(cache, "user:1").plan, "pro");
  ask(cache, "user:2");
  cache.keep("user:2", "bad", nullptr, {}, WhenFull::evict);
  EXPECT_EQ(ask(cache, "user:2").plan, "");
  EXPECT_FALSE(ask(cache, "user:2").is_pending);
}

TEST(PlanCache, KeepsTheAcceptedTextBesideARefusedOne) {
  PlanCache cache(100);
  const auto accepted = [&] {
    PlanCache::Walk walk;
    std::vector<PlanCache::Seen> seen;
    while (cache.next(walk, 10, seen)) {
    }
    return seen.size() == 1 ? seen.front().accepted : "not one";
  };
  cache.keep("user:1", "bad", nullptr, {}, WhenFull::evict);
  EXPECT_EQ(accepted(), "") << "no row of the subject was accepted yet";
  put(cache, "user:1", "pro");
  EXPECT_EQ(accepted(), "pro");
  const std::uint64_t before = cache.edits();
  cache.keep("user:1", "bad", nullptr, {}, WhenFull::evict);
  cache.keep("user:1", "worse", nullptr, {}, WhenFull::evict);
  EXPECT_EQ(accepted(), "pro");
  EXPECT_EQ(cache.edits(), before);
  put(cache, "user:1", "worse");  // other tiers may accept what was refused
  EXPECT_EQ(accepted(), "worse");
  EXPECT_GT(cache.edits(), before);
  cache.keep("user:1", "bad", nullptr, {}, WhenFull::evict);
  const KeptTerms none;
  cache.keep("user:1", "", &none, {}, WhenFull::evict);
  EXPECT_EQ(accepted(), "");
}

TEST(PlanCache, RecognizesAnUnchangedRowOnlyUnderTheSameTiers) {
  PlanCache cache(100);
  const KeptTerms terms{"pro", ""};
  EXPECT_FALSE(cache.is_same("user:1", "p3:pro", {1, 1}));
  cache.keep("user:1", "p3:pro", &terms, {1, 1}, WhenFull::evict);
  EXPECT_TRUE(cache.is_same("user:1", "p3:pro", {1, 2}));
  EXPECT_FALSE(cache.is_same("user:1", "p4:free", {1, 2}));
  EXPECT_FALSE(cache.is_same("user:1", "p3:pro", {2, 2}));
}

TEST(PlanCache, AFloodOfInventedSubjectsDoesNotEvictThoseWithARow) {
  constexpr int kRows = 800;
  PlanCache cache(1'000);
  for (int i = 0; i < kRows; ++i) put(cache, user(i), "pro");
  for (int i = 0; i < 100'000; ++i) {
    const std::string made_up = "ip:" + std::to_string(i);
    ask(cache, made_up);
    cache.keep(made_up, "", nullptr, {}, WhenFull::skip);
  }
  EXPECT_LE(cache.size(), 1'010u);
  EXPECT_GE(cache.evicted(), 98'000u);
  int left = 0;
  for (int i = 0; i < kRows; ++i) left += ask(cache, user(i)).plan == "pro" ? 1 : 0;
  EXPECT_GE(left, kRows * 95 / 100);
}

TEST(PlanCache, KeepsOftenRequestedSubjectsWithoutARow) {
  PlanCache cache(1'000);
  const auto known = [&](int number) {
    bool wants = false;
    cache.find(user(number), wants);
    if (wants) cache.keep(user(number), "", nullptr, {}, WhenFull::skip);
    return !wants;
  };
  for (int i = 0; i < 100; ++i) known(i);
  int lost = 0;
  for (int i = 1'000; i < 50'000; ++i) {
    known(i);
    if (i % 5 == 0) lost += known(i / 5 % 100) ? 0 : 1;  // each of the hundred is requested once in 500
  }
  EXPECT_LE(lost, 100);
}

TEST(PlanCache, AnUnrequestedRowUsesOnlyFreeCapacity) {
  PlanCache cache(10);
  for (int i = 0; i < 20; ++i) put(cache, user(i), "pro", WhenFull::skip);
  EXPECT_EQ(cache.size(), 10u);
  EXPECT_EQ(cache.evicted(), 0u);
  put(cache, user(20), "pro", WhenFull::evict);
  EXPECT_EQ(ask(cache, user(20)).plan, "pro");
  EXPECT_EQ(cache.evicted(), 1u);
}

TEST(PlanCache, AWalkSeesEverySubjectThatStays) {
  PlanCache cache(100'000);
  for (int i = 0; i < 5'000; ++i) put(cache, user(i), i % 3 == 0 ? "" : "pro");
  for (int i = 0; i < 5'000; ++i) ask(cache, user(i));
  PlanCache::Walk walk;
  std::map<std::string, int> met;
  std::vector<PlanCache::Seen> seen;
  int round = 0;
  for (bool is_more = true; is_more; ++round) {
    seen.clear();
    is_more = cache.next(walk, 64, seen);
    EXPECT_LE(seen.size(), 64u);
    for (const auto& one : seen) ++met[one.subject];
    // Meanwhile some subjects gain a row and some lose theirs.
    put(cache, user(round * 7 % 5'000), "free");
    cache.keep(user(round * 11 % 5'000), "", nullptr, {}, WhenFull::skip);
  }
  int missed = 0;
  for (int i = 0; i < 5'000; ++i) missed += met.count(user(i)) == 0 ? 1 : 0;
  EXPECT_LE(missed, 2 * round);  // only those that were looked up meanwhile
  EXPECT_LE(missed, 100);
}

TEST(PlanCache, AWaitEndsWithTheReplyAndNeedsAQueuedLookup) {
  PlanCache cache(100);
  EXPECT_EQ(cache.wait("user:1", Micros{60'000'000}), Waited::not_at_all);
  ask(cache, "user:1");
  EXPECT_EQ(cache.wait("user:1", Micros{1'000}), Waited::timed_out);
  std::thread answering([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds{20});
    put(cache, "user:1", "pro");
  });
  EXPECT_EQ(cache.wait("user:1", Micros{60'000'000}), Waited::known);
  answering.join();
  EXPECT_EQ(cache.wait("user:1", Micros{0}), Waited::known);
  ask(cache, "user:2");
  cache.not_queued("user:2");
  EXPECT_EQ(cache.wait("user:2", Micros{60'000'000}), Waited::not_at_all);
}

TEST(PlanCache, ManyThreadsCanFindSubjectsWhileTheyChange) {
  PlanCache cache(2'000);
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      for (int i = t; !stop.load(); i = (i + 1) % 5'000) {
        const PlanTerms terms = ask(cache, user(i));
        if (terms.plan != "" && terms.plan != "pro" && terms.plan != "free") ++wrong;
        if (i % 100 == 0) cache.wait(user(i), Micros{1});
      }
    });
  }
  for (int i = 0; i < 50'000; ++i) put(cache, user(i % 5'000), i % 2 == 0 ? "pro" : "free");
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_LE(cache.size(), 2'010u);
}

// The duration is only printed, because a shared machine may take any time.
TEST(PlanCache, FindsEachOfManySubjects) {
  PlanCache cache(100'000);
  for (int i = 0; i < 100'000; ++i) put(cache, user(i), "pro");
  std::vector<std::string> subjects;
  for (int i = 0; i < 100'000; ++i) subjects.push_back(user(i * 7'919 % 100'000));
  for (const std::size_t different : {std::size_t{1}, std::size_t{1'000}, subjects.size()}) {
    const auto start = read_stopwatch();
    constexpr std::size_t kTimes = 200'000;
    std::size_t known = 0;
    bool ignored = false;
    for (std::size_t i = 0; i < kTimes; ++i) known += cache.find(subjects[i % different], ignored).plan.size();
    const double ns = seconds_since(start) / kTimes * 1e9;
    std::printf("find() among %zu subjects: %.0f ns\n", different, ns);
    EXPECT_EQ(known, 3 * kTimes);
  }
}

}  // namespace
}  // namespace weir::plans
