// Waiting for permits: in order, charged exactly, and without a trace after a cancellation. Tests move the clock by
// hand; a test that needs the limiter's thread waits for its effect, never for a time.

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <fstream>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "limiter/wait_queue.h"
#include "on_threads.h"
#include "seed.h"
#include "weir/limiter.h"

namespace weir::limiter::wait_test {
namespace {

// The callbacks that ran, in order, with their times.
class Answers {
 public:
  struct Answer {
    int who;
    Result<Decision> result;
    Micros at;
  };
  explicit Answers(std::shared_ptr<ManualClock> clock) : clock_(std::move(clock)) {}

  WaitCallback of(int who) {
    return [this, who](Result<Decision> result) {
      const std::lock_guard lock(mutex_);
      answers_.push_back({who, std::move(result), clock_->now()});
      changed_.notify_all();
    };
  }
  // Returns all callbacks so far, once there are `count`.
  std::vector<Answer> first(std::size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return answers_.size() >= count; });
    return answers_;
  }
  std::vector<int> order() {
    const std::lock_guard lock(mutex_);
    std::vector<int> order;
    for (const Answer& answer : answers_) order.push_back(answer.who);
    return order;
  }

 private:
  const std::shared_ptr<ManualClock> clock_;
  std::mutex mutex_;  // guards answers_
  std::condition_variable changed_;
  std::vector<Answer> answers_;
};

constexpr Micros kSecond{1'000'000};
constexpr Micros kStart{1'794'701'843'000'000};

class Wait : public testing::Test {
 protected:
  Limiter make(const char* algorithm, const char* quota, std::size_t waiters_max = 10'000) {
    return make_limiter(algorithm, quota, {.clock = clock_, .keys = 1000, .waiters_max = waiters_max}).value();
  }
  static void until_waiting(const Limiter& limiter, std::size_t count) {
    while (limiter.waiting() != count) std::this_thread::yield();
  }

  const std::shared_ptr<ManualClock> clock_ = std::make_shared<ManualClock>(kStart);
  Answers answers_{clock_};
};

TEST_F(Wait, ReturnsAtOnceIfPermitsAreAvailable) {
  Limiter limiter = make("token_bucket", "10/s burst 3");
  EXPECT_EQ(limiter.wait("k", kStart)->remaining, 2);
  EXPECT_EQ(limiter.wait("k", kStart - kSecond, {.cost = 1})->remaining, 1)
      << "a deadline that has passed denies nothing";
  EXPECT_EQ(limiter.wait_async("k", kStart, answers_.of(1)), 0u);
  EXPECT_TRUE(answers_.first(1)[0].result->allowed);
  EXPECT_EQ(limiter.peek("k")->remaining, 0);
}

TEST_F(Wait, DeniesAtOnceIfThePermitCannotComeInTime) {
  Limiter limiter = make("token_bucket", "10/s burst 1");
  limiter.check("k");
  const auto denied = limiter.wait("k", kStart + Micros{99'999});
  EXPECT_FALSE(denied->allowed);
  EXPECT_EQ(denied->retry_after, Micros{100'000});
  EXPECT_EQ(limiter.wait("k", kStart + Micros{1'000'000'000'000}, {.cost = 2})->retry_after, kNever);
  EXPECT_EQ(limiter.wait("k", Micros::max(), {.cost = 2})->retry_after, kNever);
  EXPECT_FALSE(limiter.wait("k", Micros::min())->allowed);
  EXPECT_EQ(limiter.waiting(), 0u);
  clock_->advance(Micros{100'000});
  EXPECT_TRUE(limiter.check("k")->allowed) << "a denied caller was not charged";
}

TEST_F(Wait, EndsWhenTheTimeHasCome) {
  Limiter limiter = make("sliding_log", "1/s");
  limiter.check("k");
  EXPECT_NE(limiter.wait_async("k", kStart + kSecond, answers_.of(1)), 0u);
  clock_->advance(Micros{999'999});
  EXPECT_EQ(limiter.waiting(), 1u);
  clock_->advance(Micros{1});
  const auto answer = answers_.first(1)[0];
  EXPECT_TRUE(answer.result->allowed) << "at the deadline is in time";
  EXPECT_EQ(answer.at, kStart + kSecond);
  EXPECT_EQ(limiter.peek("k")->remaining, 0);
}

TEST_F(Wait, BlocksUntilTheTimeHasCome) {
  Limiter limiter = make("token_bucket", "1/s burst 1");
  limiter.check("k");
  std::thread mover([&] {
    until_waiting(limiter, 1);
    clock_->advance(kSecond);
  });
  EXPECT_TRUE(limiter.wait("k", Micros::max())->allowed);
  EXPECT_EQ(clock_->now(), kStart + kSecond);
  mover.join();
}

TEST_F(Wait, ServesInOrderOfArrival) {
  for (const char* algorithm : {"fixed_window", "sliding_window", "sliding_log", "token_bucket", "leaky_meter"}) {
    Limiter limiter = make(algorithm, "3/s");
    Answers answers(clock_);
    limiter.check("k", 3);
    std::vector<int> expected;
    for (int who = 0; who < 20; ++who) {
      ASSERT_NE(limiter.wait_async("k", Micros::max(), answers.of(who), who % 3 + 1), 0u) << algorithm;
      expected.push_back(who);
    }
    while (limiter.waiting() > 0) clock_->advance(Micros{100'000});
    const auto all = answers.first(20);
    EXPECT_EQ(answers.order(), expected) << algorithm;
    for (const auto& answer : all) EXPECT_TRUE(answer.result && answer.result->allowed) << algorithm;
  }
}

TEST_F(Wait, KeysDoNotWaitForEachOther) {
  Limiter limiter = make("fixed_window", "1/s");
  limiter.check("slow", 1);
  limiter.wait_async("slow", Micros::max(), answers_.of(1));
  EXPECT_TRUE(limiter.wait("fast", kStart)->allowed);
  const Limit other = compile("1/s burst 1").value();
  EXPECT_TRUE(limiter.wait("slow", other, kStart)->allowed) << "another algorithm has another state";
}

TEST_F(Wait, CountsTheWaitersBefore) {
  Limiter bucket = make("token_bucket", "10/s burst 2");
  bucket.check("k", 2);
  for (int who = 0; who < 5; ++who) bucket.wait_async("k", Micros::max(), answers_.of(who));
  const auto behind = bucket.wait("k", kStart + Micros{599'999});
  EXPECT_FALSE(behind->allowed);
  EXPECT_EQ(behind->retry_after, Micros{600'000}) << "five waiters come before";
  EXPECT_NE(bucket.wait_async("k", kStart + Micros{600'000}, answers_.of(5)), 0u);

  Limiter window = make("fixed_window", "2/s");
  clock_->set(kStart);
  window.check("k", 2);
  for (int who = 0; who < 4; ++who) window.wait_async("k", Micros::max(), answers_.of(who));
  EXPECT_EQ(window.wait("k", kStart + Micros{2'999'999})->retry_after, 3 * kSecond);
  EXPECT_EQ(window.waiting(), 4u);
}

TEST_F(Wait, LeavesNoChargeWhenTheDeadlinePasses) {
  Limiter limiter = make("token_bucket", "1/s burst 2");
  limiter.check("k", 2);
  limiter.wait_async("k", Micros::max(), answers_.of(1), 2);
  limiter.wait_async("k", kStart + 3 * kSecond, answers_.of(2), 1);  // in time, unless another charge comes in between
  clock_->advance(kSecond);
  EXPECT_TRUE(limiter.check("k")->allowed);
  clock_->advance(Micros{1'500'000});
  EXPECT_TRUE(limiter.check("k")->allowed);
  clock_->advance(Micros{500'000});
  const auto late = answers_.first(1)[0];
  EXPECT_EQ(late.who, 2);
  EXPECT_FALSE(late.result->allowed) << "there is a permit, but others were here before";
  EXPECT_GT(late.result->retry_after, Micros{0});
  clock_->advance(kSecond);
  const auto first = answers_.first(2)[1];
  EXPECT_TRUE(first.result->allowed);
  EXPECT_EQ(first.at, kStart + 4 * kSecond);
}

TEST_F(Wait, IsDeniedSoonerIfAnotherCallerTakesThePermit) {
  Limiter limiter = make("token_bucket", "1/s burst 1");
  limiter.check("k");
  limiter.wait_async("k", kStart + kSecond, answers_.of(1));
  // Whichever of the two is first then, the other is denied at once.
  clock_->advance(kSecond);
  const bool taken = limiter.check("k")->allowed;
  EXPECT_EQ(answers_.first(1)[0].result->allowed, !taken);
}

TEST_F(Wait, LeavesNoChargeWhenItIsCancelled) {
  Limiter limiter = make("token_bucket", "1/s burst 5");
  limiter.check("k", 5);
  const WaitId big = limiter.wait_async("k", Micros::max(), answers_.of(1), 5);
  limiter.wait_async("k", Micros::max(), answers_.of(2), 1);
  clock_->advance(2 * kSecond);
  EXPECT_TRUE(limiter.cancel_wait(big));
  EXPECT_FALSE(limiter.cancel_wait(big));
  EXPECT_FALSE(limiter.cancel_wait(0));
  for (const auto& answer : answers_.first(2)) {
    if (answer.who == 1) {
      EXPECT_EQ(answer.result.error().code, ErrorCode::unavailable);
    } else {
      EXPECT_TRUE(answer.result->allowed) << "it need not wait for what the first wanted";
    }
  }
  EXPECT_EQ(limiter.peek("k")->remaining, 1);
}

TEST_F(Wait, EndsWhenAStopIsRequested) {
  Limiter limiter = make("fixed_window", "1/s");
  limiter.check("k");
  std::stop_source source;
  std::thread stopper([&] {
    until_waiting(limiter, 1);
    source.request_stop();
  });
  EXPECT_FALSE(limiter.wait("k", Micros::max(), {.stop = source.get_token()}));
  stopper.join();
  EXPECT_FALSE(limiter.wait("k", Micros::max(), {.stop = source.get_token()})) << "requested before";
  EXPECT_EQ(limiter.waiting(), 0u);
}

TEST_F(Wait, IsWokenByARefundAndAReset) {
  Limiter limiter = make("fixed_window", "5/s");
  limiter.check("a", 5);
  limiter.check("b", 5);
  limiter.wait_async("a", Micros::max(), answers_.of(1), 2);
  limiter.wait_async("b", Micros::max(), answers_.of(2), 2);
  limiter.refund("a", 3);
  EXPECT_EQ(answers_.first(1)[0].who, 1);
  limiter.reset("b");
  EXPECT_EQ(answers_.first(2)[1].who, 2);
  EXPECT_EQ(limiter.peek("a")->remaining, 1);
  EXPECT_EQ(limiter.peek("b")->remaining, 3);
}

TEST_F(Wait, WaitsOutTheDelayOfALeakyBucket) {
  Limiter limiter = make("leaky_bucket", "10/s burst 4");
  for (int who = 0; who < 8; ++who) limiter.wait_async("k", Micros::max(), answers_.of(who));
  EXPECT_EQ(limiter.waiting(), 7u) << "the first has no delay";
  EXPECT_EQ(limiter.wait("k", kStart + Micros{799'999})->retry_after, Micros{800'000}) << "its turn is after eight";
  EXPECT_EQ(limiter.wait("k", kStart + Micros{799'999}, {.cost = 3})->retry_after, Micros{800'000});
  for (int i = 0; i < 7; ++i) {
    clock_->advance(Micros{100'000});
    answers_.first(static_cast<std::size_t>(i) + 2);
  }
  const auto all = answers_.first(8);
  for (int who = 0; who < 8; ++who) {
    const auto& answer = all[static_cast<std::size_t>(who)];
    EXPECT_EQ(answer.who, who);
    EXPECT_EQ(answer.at, kStart + who * Micros{100'000});
    EXPECT_EQ(answer.result->delay, Micros{0}) << "the caller need not wait any longer";
  }
  EXPECT_EQ(limiter.peek("k")->remaining, 3);
}

TEST_F(Wait, RefundsWhatALeakyBucketChargedInAdvance) {
  Limiter limiter = make("leaky_bucket", "10/s burst 4");
  limiter.check("k", 2);
  EXPECT_FALSE(limiter.wait("k", kStart + Micros{199'999})->allowed);
  EXPECT_EQ(limiter.peek("k")->remaining, 2) << "its turn would come too late";
  const WaitId id = limiter.wait_async("k", kStart + Micros{200'000}, answers_.of(1), 2);
  EXPECT_EQ(limiter.peek("k")->remaining, 0);
  limiter.wait_async("k", Micros::max(), answers_.of(2), 1);
  EXPECT_TRUE(limiter.cancel_wait(id));
  clock_->advance(Micros{200'000});
  const auto all = answers_.first(2);
  EXPECT_EQ(all[1].who, 2) << "the next waiter got its place";
  EXPECT_EQ(all[1].at, kStart + Micros{200'000});
  EXPECT_EQ(limiter.peek("k")->remaining, 3);
}

TEST_F(Wait, IsBounded) {
  Limiter limiter = make("fixed_window", "1/s", 2);
  limiter.check("k");
  const WaitId first = limiter.wait_async("k", Micros::max(), answers_.of(1));
  limiter.wait_async("k", Micros::max(), answers_.of(2));
  const auto refused = limiter.wait("k", Micros::max());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::exhausted);
  EXPECT_NE(refused.error().message.find("2 waiting callers"), std::string::npos) << refused.error().message;
  limiter.cancel_wait(first);
  EXPECT_NE(limiter.wait_async("k", Micros::max(), answers_.of(3)), 0u);

  Limiter queue = make("leaky_bucket", "1/s burst 9", 0);
  queue.check("k");
  EXPECT_EQ(queue.wait("k", Micros::max()).error().code, ErrorCode::exhausted);
  EXPECT_EQ(queue.peek("k")->remaining, 8);
}

TEST_F(Wait, EndsWithTheLimiter) {
  auto limiter = std::make_unique<Limiter>(make("token_bucket", "1/s burst 1"));
  limiter->check("k");
  std::optional<Result<Decision>> blocked;
  std::thread thread([&, &there = *limiter] { blocked = there.wait("k", Micros::max()); });
  until_waiting(*limiter, 1);
  for (int who = 0; who < 3; ++who) limiter->wait_async("k", Micros::max(), answers_.of(who));
  limiter.reset();
  thread.join();
  EXPECT_EQ(blocked->error().code, ErrorCode::unavailable);
  for (const auto& answer : answers_.first(3)) EXPECT_EQ(answer.result.error().code, ErrorCode::unavailable);
}

TEST_F(Wait, CallbacksMayWaitAgainButNotBlock) {
  Limiter limiter = make("fixed_window", "1/s");
  limiter.check("k");
  limiter.wait_async("k", Micros::max(), [&](const Result<Decision>&) {
    const auto blocked = limiter.wait("k", Micros::max());
    limiter.wait_async("k", Micros::max(), answers_.of(2));
    answers_.of(1)(blocked);
  });
  clock_->advance(kSecond);
  EXPECT_EQ(answers_.first(1)[0].result.error().code, ErrorCode::invalid_argument);
  clock_->advance(kSecond);
  EXPECT_TRUE(answers_.first(2)[1].result->allowed);
}

TEST_F(Wait, RefusesWhatCannotBeWaitedFor) {
  Limiter limiter = make("fixed_window", "1/s");
  EXPECT_EQ(limiter.wait("k", kStart, {.cost = 0}).error().code, ErrorCode::out_of_range);
  EXPECT_EQ(limiter.wait("", kStart).error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(limiter.wait_async("", kStart, answers_.of(1)), 0u);
  EXPECT_FALSE(answers_.first(1)[0].result);
  EXPECT_FALSE(limiter.wait("k", compile("2 concurrent").value(), kStart)) << "that is acquired";
  Limiter bare({.clock = clock_});
  EXPECT_FALSE(bare.wait("k", kStart));
  EXPECT_EQ(bare.wait_async("k", kStart, answers_.of(2)), 0u);
  EXPECT_FALSE(answers_.first(2)[1].result);
}

// Threads wait, cancel, check and refund while time stands still. Afterwards the key is charged exactly for what was
// allowed and not refunded.
TEST_F(Wait, ChargesExactlyWhatItAllows) {
  const std::uint64_t seed = test::base_seed();
  for (const char* algorithm : {"token_bucket", "sliding_log", "fixed_window", "leaky_bucket"}) {
    constexpr std::int64_t kPermits = 30;
    Limiter limiter = make(algorithm, "30/hour");
    std::atomic<std::int64_t> spent{0};
    std::atomic<int> answered{0}, asked{0};
    const auto play = [&](std::uint64_t stream) {
      std::mt19937_64 random(seed + stream);
      std::vector<WaitId> ids;
      for (int i = 0; i < 500; ++i) {
        const std::int64_t cost = test::pick(random, 1, 5);
        const std::int64_t move = test::pick(random, 0, 9);
        if (move < 4) {
          const Micros deadline = move == 0 ? kStart : Micros::max();
          ++asked;
          ids.push_back(limiter.wait_async(
              "k", deadline,
              [&, cost](const Result<Decision>& result) {
                if (result && result->allowed) spent += cost;
                ++answered;
              },
              cost));
        } else if (move < 6 && !ids.empty()) {
          limiter.cancel_wait(ids[static_cast<std::size_t>(test::pick(random, 0, std::ssize(ids) - 1))]);
        } else if (move < 7) {
          if (limiter.check("k", cost)->allowed) spent += cost;
        } else {
          std::int64_t have = spent.load();
          if (have >= cost && spent.compare_exchange_strong(have, have - cost)) limiter.refund("k", cost);
        }
      }
      for (const WaitId id : ids) limiter.cancel_wait(id);
    };
    test::on_threads(std::uint64_t{4}, play);
    while (answered != asked) std::this_thread::yield();
    EXPECT_EQ(limiter.waiting(), 0u);
    EXPECT_EQ(limiter.peek("k")->remaining, kPermits - spent) << algorithm;
  }
}

// Threads block while real time runs: no waiter is lost, and none passes before its permit is available.
TEST_F(Wait, ServesManyThreadsWhileTimeRuns) {
  Limiter limiter = make("token_bucket", "1000/s burst 1");
  constexpr int kThreads = 4, kEach = 50;
  std::atomic<int> left{kThreads};
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < kEach; ++k) EXPECT_TRUE(limiter.wait("k", Micros::max())->allowed);
      --left;
    });
  }
  while (left > 0) {
    clock_->advance(Micros{100});
    std::this_thread::yield();
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GE(clock_->now() - kStart, (kThreads * kEach - 1) * Micros{1000});
}

TEST(SystemWait, SleepsUntilThePermitComes) {
  auto limiter = make_limiter("token_bucket", "1000/s burst 1");
  limiter->check("k");
  const Micros before = limiter->now();
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(limiter->wait("k", Micros::max())->allowed);
  EXPECT_GE(limiter->now() - before, Micros{4'000});
}

TEST(Clock, WakesAThreadThatSleepsUntilATime) {
  ManualClock clock;
  Sleeper sleeper, other;
  sleeper.wake();
  clock.sleep(sleeper, Micros::max());  // the wake was not lost
  clock.sleep(sleeper, Micros{0});      // that time has come
  std::atomic<int> awake{0};
  std::thread first([&] {
    while (clock.now() < Micros{10}) clock.sleep(sleeper, Micros{10});
    ++awake;
  });
  std::thread second([&] {
    while (clock.now() < Micros{20}) clock.sleep(other, Micros{20});
    ++awake;
  });
  clock.set(Micros{10});
  first.join();
  EXPECT_EQ(awake, 1);
  clock.advance(Micros{10});
  second.join();
  EXPECT_EQ(awake, 2);
}

// A slow store: each call blocks until the test releases it.
class SlowStore {
 public:
  Result<Decision> operator()(const Charge& charge) {
    std::unique_lock lock(mutex_);
    ++begun_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return begun_ <= let_ || is_open_; });
    return Decision{.allowed = false, .limit = charge.limit->capacity, .retry_after = kSecond, .reset_after = kSecond};
  }
  void wait_for_call(int count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return begun_ >= count; });
  }
  void let(int count) {
    const std::lock_guard lock(mutex_);
    let_ = count;
    changed_.notify_all();
  }
  void open() {
    const std::lock_guard lock(mutex_);
    is_open_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  int begun_ = 0, let_ = 0;
  bool is_open_ = false;
};

// A caller gets the lock after the one store call in flight, however many other waiters are due.
TEST(WaitQueue, HoldsItsLockForOneCallOfTheStore) {
  constexpr int kWaiting = 20;
  const auto clock = std::make_shared<ManualClock>(kStart);
  const Limit limit = compile("1/minute", Algorithm::token_bucket).value();
  SlowStore store;
  WaitQueue queue(1'000, *clock, [&](const Charge& charge, std::int64_t) { return store(charge); });
  store.let(kWaiting);
  std::vector<WaitId> ids;
  for (int i = 0; i < kWaiting; ++i) {
    const std::string key = "key " + std::to_string(i);
    ids.push_back(queue.wait({key, &limit, 1}, kStart + 1'000 * kSecond, [](const Result<Decision>&) {}));
  }
  clock->advance(2 * kSecond);  // all are due
  store.wait_for_call(kWaiting + 1);
  std::atomic<pid_t> tid{0};
  std::atomic<bool> is_cancelled{false};
  std::thread other([&] {
    tid = static_cast<pid_t>(::syscall(SYS_gettid));
    is_cancelled = queue.cancel(ids.back());
  });
  const auto is_asleep = [&] {  // it waits for the lock
    std::ifstream stat("/proc/self/task/" + std::to_string(tid.load()) + "/stat");
    std::string text;
    std::getline(stat, text);
    return tid != 0 && text.find(") S ") != text.npos;
  };
  while (!is_asleep()) std::this_thread::yield();
  store.let(kWaiting + 1);  // the call in flight, and no other
  other.join();
  EXPECT_TRUE(is_cancelled);
  store.open();
}

}  // namespace
}  // namespace weir::limiter::wait_test
