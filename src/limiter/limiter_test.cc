// The library as its users see it: limits from text, the user's own clock, and typical mistakes.

#include "weir/limiter.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/folder_fixture.h"
#include "on_threads.h"

namespace weir::limiter::limiter_test {
namespace {

std::shared_ptr<ManualClock> clock_at(std::int64_t us) { return std::make_shared<ManualClock>(Micros{us}); }

TEST(Limiter, IsMadeFromText) {
  const auto clock = clock_at(0);
  auto limiter = make_limiter("token_bucket", "10/s burst 2", {.clock = clock});
  ASSERT_TRUE(limiter) << limiter.error().message;
  EXPECT_EQ(limiter->check("user:42")->remaining, 1);
  EXPECT_TRUE(limiter->check("user:42")->allowed);
  const auto denied = limiter->check("user:42");
  EXPECT_FALSE(denied->allowed);
  EXPECT_EQ(denied->retry_after, Micros{100'000});
  EXPECT_TRUE(limiter->check("user:43")->allowed) << "another key";
  clock->advance(denied->retry_after);
  EXPECT_TRUE(limiter->check("user:42")->allowed);
}

TEST(Limiter, SaysWhatIsWrongWithTheText) {
  const auto algorithm = make_limiter("token_bukcet", "10/s");
  ASSERT_FALSE(algorithm);
  EXPECT_NE(algorithm.error().message.find("token_bucket"), std::string::npos) << algorithm.error().message;
  const auto quota = make_limiter("token_bucket", "10/secnd");
  ASSERT_FALSE(quota);
  EXPECT_NE(quota.error().message.find("10/second"), std::string::npos) << quota.error().message;
  EXPECT_EQ(quota.error().column, 4);
  EXPECT_FALSE(make_limiter("fixed_window", "10/s burst 5"));
}

TEST(Limiter, PeeksRefundsAndResets) {
  auto limiter = make_limiter("fixed_window", "5/minute", {.clock = clock_at(0)});
  limiter->check("k", 4);
  EXPECT_EQ(limiter->peek("k")->remaining, 1);
  EXPECT_EQ(limiter->peek("k")->remaining, 1) << "a peek charges nothing";
  EXPECT_EQ(limiter->refund("k", 3)->remaining, 4);
  EXPECT_EQ(limiter->refund("k", 300)->remaining, 5) << "never beyond full";
  limiter->check("k", 5);
  EXPECT_TRUE(*limiter->reset("k"));
  EXPECT_FALSE(*limiter->reset("k"));
  EXPECT_EQ(limiter->peek("k")->remaining, 5);
}

TEST(Limiter, ChargesOneRequestToSeveralLimits) {
  Limiter limiter({.clock = clock_at(0)});
  const Limit second = compile("10/second").value(), hour = compile("12/hour").value();
  const Charge charges[] = {{"user:42/second", &second, 6}, {"user:42/hour", &hour, 6}};
  EXPECT_TRUE(limiter.check_all(charges)->allowed);
  const auto verdict = limiter.check_all(charges);
  EXPECT_FALSE(verdict->allowed) << "only 4 are left of 10 a second";
  EXPECT_EQ(verdict->binding, 0u);
  EXPECT_EQ(verdict->decisions[1].remaining, 6) << "a denial charges no limit";
}

TEST(Limiter, ChecksManyRequestsAtOneTime) {
  Limiter limiter({.clock = clock_at(0)});
  const Limit limit = compile("2/minute").value();
  const Charge charges[] = {{"a", &limit, 1}, {"a", &limit, 1}, {"", &limit, 1}, {"a", &limit, 1}, {"b", &limit, 1}};
  const auto answers = limiter.check_many(charges);
  ASSERT_EQ(answers.size(), 5u);
  EXPECT_TRUE(answers[0]->allowed && answers[1]->allowed && answers[4]->allowed);
  EXPECT_FALSE(answers[2]) << "a bad key is an error of its own";
  EXPECT_FALSE(answers[3]->allowed);
}

TEST(Limiter, KeepsPermitsInFlightUntilTheyAreReleasedOrExpire) {
  const auto clock = clock_at(0);
  auto limiter = make_limiter("concurrency", "2 concurrent for 30s", {.clock = clock});
  EXPECT_TRUE(limiter->acquire("db", "a")->allowed);
  clock->advance(Micros{10'000'000});
  EXPECT_TRUE(limiter->acquire("db", "b")->allowed);
  EXPECT_TRUE(limiter->acquire("db", "a")->allowed) << "renewed";
  const auto denied = limiter->acquire("db", "c");
  EXPECT_FALSE(denied->allowed);
  EXPECT_EQ(denied->retry_after, Micros{30'000'000});
  EXPECT_EQ(limiter->peek("db")->remaining, 0);
  EXPECT_TRUE(*limiter->release("db", "b"));
  EXPECT_FALSE(*limiter->release("db", "b"));
  EXPECT_TRUE(limiter->acquire("db", "c")->allowed);
  clock->advance(Micros{30'000'000});
  EXPECT_EQ(limiter->peek("db")->remaining, 2) << "they expired without a release";
}

TEST(Limiter, RefusesWhatItCannotCount) {
  auto limiter = make_limiter("sliding_window", "5/minute", {.clock = clock_at(0)});
  EXPECT_NE(limiter->check("").error().message.find("empty"), std::string::npos);
  EXPECT_TRUE(limiter->check(std::string(kKeyBytesMax, 'k')));
  const auto too_long = limiter->check(std::string(kKeyBytesMax + 1, 'k'));
  EXPECT_NE(too_long.error().message.find("4097 bytes"), std::string::npos) << too_long.error().message;
  EXPECT_FALSE(limiter->check(std::string(1 << 20, 'k')));
  EXPECT_FALSE(limiter->acquire("k", "a")) << "a rate is checked, not acquired";
  EXPECT_FALSE(limiter->refund("k", -1));
  EXPECT_FALSE(limiter->check_all({}));
  const Limit limit = compile("5/minute").value();
  EXPECT_FALSE(limiter->check_all(std::vector<Charge>(kChargesMax + 1, Charge{"k", &limit, 1})));
  EXPECT_NE(limiter->check("k", Limit{}).error().message.find("compile()"), std::string::npos);
  EXPECT_FALSE(limiter->peek("k", Limit{.algorithm = Algorithm::concurrency}));
  Limit by_hand = compile("5/calendar_day").value();
  by_hand.algorithm = Algorithm::sliding_window;
  EXPECT_FALSE(limiter->check("k", by_hand));
  Limit forgetful = compile("5/minute", Algorithm::sliding_log).value();
  forgetful.events_max = 0;
  EXPECT_FALSE(limiter->check("k", forgetful));
  const Charge without_limit{.key = "k"};
  EXPECT_FALSE(limiter->check_all({&without_limit, 1}));

  auto holds = make_limiter("concurrency", "2 concurrent");
  EXPECT_NE(holds->check("k").error().message.find("acquire and release"), std::string::npos);
  EXPECT_FALSE(holds->acquire("k", ""));
  EXPECT_FALSE(holds->acquire("k", std::string(kHoldIdBytesMax + 1, 'i')));
  EXPECT_FALSE(holds->acquire("k", "a", std::int64_t{0}));
  EXPECT_EQ(Limiter().check("k").error().message, "this limiter has no default limit: pass one with the call");
}

TEST(Limiter, AcceptsAnyCost) {
  auto limiter = make_limiter("token_bucket", "10/s", {.clock = clock_at(0)});
  for (const std::int64_t cost : {INT64_MAX, INT64_MAX - 1, std::int64_t{11}}) {
    const auto decision = limiter->check("k", cost);
    EXPECT_FALSE(decision->allowed);
    EXPECT_EQ(decision->retry_after, kNever);
  }
  EXPECT_EQ(limiter->check("k", INT64_MIN)->remaining, 10);
}

TEST(Limiter, CanBeMovedAndUsedFromManyThreads) {
  auto made = make_limiter("sliding_log", "500/minute", {.clock = clock_at(0)});
  Limiter limiter = std::move(*made);
  std::atomic<int> admitted{0};
  test::on_threads(4, [&](int) {
    for (int k = 0; k < 300; ++k) admitted += limiter.check("k")->allowed ? 1 : 0;
  });
  EXPECT_EQ(admitted, 500);
}

TEST(Limiter, ChargesARepeatedRequestOnce) {
  const auto clock = clock_at(0);
  Limiter limiter({.clock = clock});
  const Limit five = compile("5/hour", Algorithm::sliding_log).value();
  const Charge three[] = {{"k", &five, 3}};
  EXPECT_EQ(limiter.check_once("a", three)->decisions[0].remaining, 2);
  const auto again = limiter.check_once("a", three);
  EXPECT_TRUE(again->allowed);
  EXPECT_EQ(again->decisions[0].remaining, 2);
  EXPECT_FALSE(limiter.check_once("b", three)->allowed);
  limiter.refund("k", five, 3);
  EXPECT_TRUE(limiter.check_once("b", three)->allowed) << "what was denied may try again";
  clock->advance(kRequestIdLasts);
  EXPECT_FALSE(limiter.check_once("a", three)->allowed) << "the id has expired: this is a new request";

  EXPECT_EQ(limiter.check_once("", three).error().code, ErrorCode::invalid_argument);
  EXPECT_FALSE(limiter.check_once(std::string(kRequestIdBytesMax + 1, 'i'), three));
  EXPECT_EQ(limiter.check_once("c", three, Micros{0}).error().code, ErrorCode::out_of_range);
  EXPECT_EQ(limiter.check_once("c", {}).error().code, ErrorCode::out_of_range);
}

TEST(Limiter, SettlesAReservationOnceWithWhatItCost) {
  Limiter limiter({.clock = clock_at(0)});
  const Limit tokens = compile("100/hour burst 100").value(), calls = compile("10/hour").value();
  const auto left = [&] { return limiter.peek("t", tokens)->remaining; };
  const auto charges = [&](std::int64_t cost) { return std::vector<Charge>{{"t", &tokens, cost}, {"c", &calls, 1}}; };

  const auto first = limiter.reserve(charges(60));
  ASSERT_TRUE(first) << first.error().message;
  EXPECT_TRUE(first->verdict.allowed);
  EXPECT_EQ(first->id.size(), 32u);
  EXPECT_EQ(left(), 40);
  EXPECT_FALSE(limiter.reserve(charges(60))->verdict.allowed);
  EXPECT_EQ(left(), 40) << "a denial reserves nothing";
  EXPECT_EQ(limiter.commit(first->id, charges(10))->decisions[0].remaining, 90) << "less than reserved";
  EXPECT_EQ(limiter.commit(first->id, charges(10)).error().code, ErrorCode::not_found);
  EXPECT_EQ(limiter.cancel(first->id, charges(10)).error().code, ErrorCode::not_found);
  EXPECT_EQ(limiter.peek("c", calls)->remaining, 9);

  const auto second = limiter.reserve(charges(10), {.id = "mine"});
  EXPECT_EQ(second->id, "mine");
  EXPECT_FALSE(limiter.reserve(charges(10), {.id = "mine"})) << "it is open";
  ASSERT_TRUE(limiter.commit("mine", charges(30)));
  EXPECT_EQ(left(), 60) << "more than reserved";
  ASSERT_TRUE(limiter.commit(limiter.reserve(charges(10))->id, charges(1000)));
  EXPECT_EQ(left(), 0) << "at most to full";

  limiter.reset("t");
  const auto third = limiter.reserve(charges(70));
  EXPECT_NE(third->id, first->id);
  ASSERT_TRUE(limiter.cancel(third->id, charges(70)));
  EXPECT_EQ(left(), 100);
}

TEST(Limiter, RefusesReservationsThatMakeNoSense) {
  Limiter limiter({.clock = clock_at(0)});
  const Limit limit = compile("100/hour").value();
  const std::vector<Charge> many(kReservedMax + 1, Charge{"k", &limit, 1});
  EXPECT_EQ(limiter.reserve(many).error().code, ErrorCode::out_of_range);
  const Charge negative{"k", &limit, -1}, plain{"k", &limit, 1};
  EXPECT_EQ(limiter.reserve({&negative, 1}).error().code, ErrorCode::out_of_range);
  EXPECT_EQ(limiter.reserve({&plain, 1}, {.lasts = Micros{-1}}).error().code, ErrorCode::out_of_range);
  EXPECT_FALSE(limiter.reserve({&plain, 1}, {.id = std::string(kRequestIdBytesMax + 1, 'i')}));
  EXPECT_EQ(limiter.commit("nobody", {&plain, 1}).error().code, ErrorCode::not_found);
  EXPECT_FALSE(limiter.commit("", {&plain, 1}));
  EXPECT_FALSE(limiter.commit("nobody", {&negative, 1}));
}

TEST(Limiter, LeavesAnAbandonedReservationCharged) {
  const auto clock = clock_at(0);
  Limiter limiter({.clock = clock});
  const Limit limit = compile("10/day", Algorithm::sliding_log).value();
  const Charge work{"k", &limit, 4};
  const auto reservation = limiter.reserve({&work, 1}, {.lasts = Micros{1'000'000}});
  clock->advance(Micros{300'000'000});
  EXPECT_EQ(limiter.cancel(reservation->id, {&work, 1}).error().code, ErrorCode::not_found);
  EXPECT_EQ(limiter.peek("k", limit)->remaining, 6);
}

TEST(Limiter, WakesWaitersWhenAReservationIsRefunded) {
  auto limiter = make_limiter("token_bucket", "10/hour burst 10", {.clock = clock_at(0)});
  const Limit limit = compile("10/hour burst 10").value();
  const Charge work{"k", &limit, 10};
  const auto reservation = limiter->reserve({&work, 1});
  std::thread canceller([&] {
    while (limiter->waiting() == 0) std::this_thread::yield();
    EXPECT_TRUE(limiter->cancel(reservation->id, {&work, 1}));
  });
  EXPECT_TRUE(limiter->wait("k", Micros::max(), {.cost = 7})->allowed);
  canceller.join();
}

// Each test has its own file.
class LimiterFile : public testing::Test {
 protected:
  LimiterOptions options() const { return {.keys = 1000, .file = path_, .sweeping = Sweeping::by_hand}; }
  const base::TestFolder folder_;
  const std::string path_ = folder_.at("state");
};

TEST_F(LimiterFile, OutlivesTheLimiterAndIsShared) {
  {
    auto first = make_limiter("fixed_window", "10/year", options());
    ASSERT_TRUE(first) << first.error().message;
    EXPECT_TRUE(first->check("k", 3)->allowed);
    auto second = make_limiter("fixed_window", "10/year", options());
    ASSERT_TRUE(second) << second.error().message;
    EXPECT_EQ(second->check("k", 3)->remaining, 4);
    EXPECT_EQ(first->peek("k")->remaining, 4);
  }
  auto later = make_limiter("fixed_window", "10/year", options());
  ASSERT_TRUE(later) << later.error().message;
  EXPECT_EQ(later->peek("k")->remaining, 4);
}

TEST_F(LimiterFile, SettlesReservationsOfOthers) {
  auto one = open_limiter(options()), other = open_limiter(options());
  ASSERT_TRUE(one && other);
  const Limit limit = compile("10/year burst 10").value();
  Charge work{"k", &limit, 8};
  const auto reservation = one->reserve({&work, 1});
  work.cost = 3;
  ASSERT_TRUE(other->commit(reservation->id, {&work, 1}));
  EXPECT_EQ(one->peek("k", limit)->remaining, 7);
}

TEST_F(LimiterFile, SaysWhyItCannotBeUsed) {
  const auto directory = open_limiter({.file = testing::TempDir()});
  ASSERT_FALSE(directory);
  EXPECT_NE(directory.error().message.find("directory"), std::string::npos) << directory.error().message;
  EXPECT_FALSE(open_limiter({.file = "/nowhere/at/all.state"}));
}

TEST_F(LimiterFile, CanBeUsedByAChildThatInheritedIt) {
  auto options = this->options();
  options.sweeping = Sweeping::in_background;
  auto limiter = std::make_unique<Limiter>(make_limiter("fixed_window", "10/year", options).value());
  limiter->wait_async(
      "full", Micros::max(), [](const Result<Decision>&) {}, 10);
  limiter->wait_async(
      "full", Micros::max(), [](const Result<Decision>&) {}, 10);  // now both threads run
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    const bool counts = limiter->check("k", 4)->allowed;
    const bool refuses = !limiter->wait("full", Micros::max()) && limiter->refund("full", 1);
    limiter.reset();  // does not wait for threads that the child does not have
    _exit(counts && refuses ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(limiter->peek("k")->remaining, 6);
}

TEST(Limiter, RemovesRecoveredKeys) {
  const auto clock = clock_at(1'000'000'000);
  for (const Sweeping sweeping : {Sweeping::in_background, Sweeping::by_hand}) {
    Limiter limiter({.clock = clock, .keys = 1000, .sweeping = sweeping});
    const Limit limit = compile("10/minute").value();
    for (int i = 0; i < 100; ++i) limiter.check("k" + std::to_string(i), limit);
    EXPECT_EQ(limiter.size(), 100u);
    clock->advance(Micros{120'000'000});
    while (limiter.size() > 0) {
      if (sweeping == Sweeping::by_hand) limiter.sweep();
      clock->advance(Micros{1'000'000});
      std::this_thread::yield();
    }
  }
}

TEST(SystemClock, IsTheTimeOfDayAndNeverRunsBackwards) {
  const auto clock = make_system_clock();
  Micros last = clock->now();
  EXPECT_GT(last.count(), 1'700'000'000'000'000);
  for (int i = 0; i < 10'000; ++i) {
    const Micros now = clock->now();
    ASSERT_GE(now, last);
    last = now;
  }
}

TEST(Limiter, PreviewsACheckAndChangesNothing) {
  const auto clock = std::make_shared<ManualClock>(Micros{1'000'000'000});
  Limiter limiter({.clock = clock, .sweeping = Sweeping::by_hand});
  for (const Algorithm algorithm : kAlgorithms) {
    if (algorithm == Algorithm::concurrency) continue;
    const Limit wide = compile("100/hour", algorithm).value(), narrow = compile("10/hour", algorithm).value();
    ASSERT_TRUE(limiter.check("k", wide, 100)->allowed);
    const Decision before = *limiter.peek("k", wide);
    const Decision told = *limiter.preview("k", narrow, 1);
    EXPECT_FALSE(told.allowed);
    EXPECT_GT(told.retry_after, Micros{0});
    EXPECT_EQ(*limiter.peek("k", wide), before) << "another limit has converted the key: " << to_string(algorithm);
    EXPECT_EQ(limiter.preview("k", wide, 101)->retry_after, kNever);
    EXPECT_EQ(limiter.preview("new", wide, 5)->remaining, 100);
    EXPECT_TRUE(limiter.preview("new", wide, 5)->allowed);
  }
  EXPECT_EQ(limiter.preview("queue", compile("10/s", Algorithm::leaky_bucket).value(), 1)->allowed, true);
  EXPECT_FALSE(limiter.preview("", compile("10/s").value()));
}

TEST(Limiter, OverdrawsAtMostToFull) {
  Limiter limiter({.sweeping = Sweeping::by_hand});
  for (const Algorithm algorithm : kAlgorithms) {
    if (algorithm == Algorithm::concurrency) continue;
    const Limit limit = compile("10/hour", algorithm).value();
    const Charge charge{.key = "k", .limit = &limit, .cost = 7};
    EXPECT_EQ(limiter.overdraw({&charge, 1})->decisions[0].remaining, 3) << to_string(algorithm);
    EXPECT_TRUE(limiter.overdraw({&charge, 1})->allowed);
    EXPECT_EQ(limiter.peek("k", limit)->remaining, 0);
    const Charge back{.key = "k", .limit = &limit, .cost = -1};
    EXPECT_FALSE(limiter.overdraw({&back, 1}));
  }
}

}  // namespace
}  // namespace weir::limiter::limiter_test
