// What the Redis script does around the arithmetic: all or none, kept conversions, refusals, calendars, what it
// forgets. In process, on a map of strings with scripted time; redis_script_test.cc runs the same script on a real
// server.

#include <gtest/gtest.h>

#include <memory>

#include "algorithm/calendar.h"
#include "lua_redis.h"
#include "store/redis_script.h"
#include "store/script_call.h"

namespace weir::test {
namespace {

constexpr std::int64_t kNow = 1'794'701'843'991'953;

class Script : public ::testing::Test {
 protected:
  Result<ScriptAnswer> call(std::span<const ScriptCharge> charges, std::int64_t now = kNow, std::int64_t deadline = 0,
                            std::int64_t window_of = 0) {
    std::vector<std::string> keys;
    for (const ScriptCharge& charge : charges) keys.emplace_back(charge.charge.key);
    const auto arguments = script_arguments(charges, deadline, window_of != 0 ? window_of : now);
    const auto reply = redis_.call(database_, now, keys, arguments);
    if (!reply) return fail(reply.error());
    return read_script_answer(*reply, charges);
  }

  LuaRedis redis_{redis_script()};
  LuaDatabase database_;
  const Limit minute_ = compile("5/minute", Algorithm::fixed_window).value();
  const Limit bucket_ = compile("10/s burst 2").value();
  const Limit log_ = compile("3/minute", Algorithm::sliding_log).value();
  const Limit holds_ = compile("2 concurrent").value();
};

TEST_F(Script, ChargesAllOrNone) {
  const ScriptCharge charges[] = {{{"minute", &minute_, 1}, {}},
                                  {{"bucket", &bucket_, 2}, {}},
                                  {{"log", &log_, 1}, {}},
                                  {{"holds", &holds_, 1}, "a"}};
  auto answer = call(charges);
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->outcome, ScriptAnswer::Outcome::taken);
  EXPECT_EQ(answer->decisions[0].remaining, 4);
  const LuaDatabase before = database_;
  answer = call(charges);  // the bucket is empty
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->outcome, ScriptAnswer::Outcome::denied);
  EXPECT_FALSE(answer->decisions[1].allowed);
  EXPECT_TRUE(answer->decisions[0].allowed);
  EXPECT_EQ(answer->decisions[0].remaining, 4) << "what it holds, not what it would hold";
  EXPECT_EQ(answer->decisions[2].remaining, 2);
  EXPECT_EQ(answer->decisions[3].remaining, 1);
  EXPECT_EQ(database_.values, before.values);
}

TEST_F(Script, KeepsAConversionEvenIfTheRequestIsDenied) {
  const ScriptCharge spend{{"k", &minute_, 5}, {}};
  ASSERT_TRUE(call({&spend, 1}));
  const Limit lower = compile("2/minute", Algorithm::fixed_window).value();
  const ScriptCharge denied{{"k", &lower, 1}, {}};
  EXPECT_EQ(call({&denied, 1})->outcome, ScriptAnswer::Outcome::denied);
  const ScriptCharge again{{"k", &minute_, 0}, {}};
  EXPECT_EQ(call({&again, 1})->decisions[0].remaining, 3) << "2 of the 5 stayed spent";
}

// A state names its phase, so that another one moves the count into its own window, and the same one keeps it.
TEST_F(Script, CountsInTheWindowOfThePhase) {
  const std::int64_t minute = 60'000'000, start = kNow - kNow % minute;
  const Limit early = phased(minute_, 10'000'000).value(), late = phased(minute_, 50'000'000).value();
  const ScriptCharge first{{"k", &early, 3}, {}}, peek{{"k", &early, 0}, {}}, second{{"k", &late, 1}, {}};
  const std::int64_t now = start + 20'000'000;
  EXPECT_EQ(call({&first, 1}, now)->decisions[0].reset_after, Micros{50'000'000});
  EXPECT_EQ(call({&peek, 1}, now + 49'999'999)->decisions[0].remaining, 2) << "past the minute, not past the phase";
  EXPECT_EQ(call({&peek, 1}, now + 50'000'000)->decisions[0].remaining, 5);
  const Decision moved = call({&second, 1}, now)->decisions[0];
  EXPECT_EQ(moved.remaining, 1);
  EXPECT_EQ(moved.reset_after, Micros{30'000'000});
  EXPECT_EQ(database_.values.at("k").size(), 50u) << "as long as without a phase";
}

TEST_F(Script, RefusesALateCall) {
  const ScriptCharge charge{{"k", &minute_, 1}, {}};
  EXPECT_EQ(call({&charge, 1}, kNow, kNow - 1)->outcome, ScriptAnswer::Outcome::late);
  EXPECT_TRUE(database_.values.empty());
  EXPECT_EQ(call({&charge, 1}, kNow, kNow)->outcome, ScriptAnswer::Outcome::taken);
}

TEST_F(Script, RefusesAKeyGivenTwiceAndAForeignValue) {
  const ScriptCharge twice[] = {{{"k", &minute_, 1}, {}}, {{"k", &bucket_, 1}, {}}};
  EXPECT_EQ(call(twice).error().message, "WEIR key given twice");
  EXPECT_TRUE(database_.values.empty());
  for (const Limit* limit : {&minute_, &bucket_, &log_, &holds_}) {
    for (const std::string& foreign :
         {std::string("hello"), std::string(48, 'x'), std::string(50, 'x'), std::string(100, '1')}) {
      database_.values["k"] = foreign;
      const ScriptCharge charge{{"k", limit, 1}, "a"};
      const auto answer = call({&charge, 1});
      ASSERT_FALSE(answer);
      EXPECT_NE(answer.error().message.find("no state of this version"), std::string::npos) << answer.error().message;
      EXPECT_EQ(database_.values["k"], foreign);
    }
  }
}

// A key must name its algorithm: another's state is not misread.
TEST_F(Script, RefusesTheStateOfAnotherAlgorithm) {
  const Limit window = compile("5/minute").value(), meter = compile("10/s burst 2", Algorithm::leaky_meter).value();
  const std::vector<const Limit*> all{&minute_, &window, &bucket_, &meter, &log_, &holds_};
  for (const Limit* first : all) {
    for (const Limit* second : all) {
      database_ = {};
      const ScriptCharge one{{"k", first, 1}, "a"}, other{{"k", second, 1}, "a"};
      ASSERT_TRUE(call({&one, 1}));
      EXPECT_EQ(call({&other, 1}).has_value(), first == second);
    }
  }
}

TEST_F(Script, PeeksWithoutWriting) {
  const ScriptCharge spend{{"k", &minute_, 4}, {}};
  ASSERT_TRUE(call({&spend, 1}));
  const auto before = database_.values;
  const Limit lower = compile("2/minute", Algorithm::fixed_window).value();
  const ScriptCharge peek{{"k", &lower, 0}, {}};
  EXPECT_EQ(call({&peek, 1})->decisions[0].remaining, 0);
  EXPECT_EQ(database_.values, before);
}

// A caller whose clock differs sends the windows of its own time; the server picks by its clock.
TEST_F(Script, PicksTheCalendarWindowByTheServersClock) {
  const Limit day = compile("2/calendar_day Europe/Berlin").value();
  const Window today = day.calendar->window_at(kNow);
  const ScriptCharge charge{{"k", &day, 1}, {}};
  const std::int64_t evening = today.end_us - 1'000'000;
  for (const std::int64_t callers_time : {evening, evening + 2'000'000, evening - 3'600'000'000}) {
    database_ = {};
    const auto answer = call({&charge, 1}, evening, 0, callers_time);
    ASSERT_TRUE(answer) << answer.error().message;
    EXPECT_EQ(answer->decisions[0].reset_after, Micros{1'000'000}) << callers_time;
  }
  database_ = {};  // the server is already in tomorrow
  EXPECT_EQ(call({&charge, 1}, today.end_us, 0, evening)->decisions[0].reset_after.count(),
            today.next_end_us - today.end_us);
  for (const std::int64_t servers_time : {today.next_end_us, today.start_us - 86'400'000'001}) {
    const auto apart = call({&charge, 1}, servers_time, 0, evening);
    ASSERT_FALSE(apart);
    EXPECT_EQ(apart.error().message, "WEIR the clocks are more than a calendar window apart");
  }
}

TEST_F(Script, ForgetsAKeyThatHoldsNothingAnyMore) {
  for (const Limit* limit : {&minute_, &bucket_, &log_}) {
    const ScriptCharge take{{"k", limit, 2}, {}}, give{{"k", limit, -2}, {}};
    ASSERT_TRUE(call({&take, 1}));
    EXPECT_EQ(database_.values.size(), 1u);
    ASSERT_TRUE(call({&give, 1}));
    EXPECT_EQ(database_.values.size(), 0u);
  }
  const ScriptCharge acquire{{"k", &holds_, 1}, "a"}, release{{"k", &holds_, -1}, "a"};
  ASSERT_TRUE(call({&acquire, 1}));
  EXPECT_TRUE(call({&release, 1})->decisions[0].allowed);
  EXPECT_TRUE(database_.values.empty());
  EXPECT_FALSE(call({&release, 1})->decisions[0].allowed) << "it is not held any more";
}

// What has left the window leaves the string too, once it is more than what lives.
TEST_F(Script, CompactsALogWhoseDeadAreMoreThanItsLiving) {
  const Limit limit = compile("50/s", Algorithm::sliding_log).value();
  const ScriptCharge charge{{"k", &limit, 1}, {}};
  std::size_t longest = 0;
  for (int i = 0; i < 2'000; ++i) {
    EXPECT_EQ(call({&charge, 1}, kNow + i * 20'000)->outcome, ScriptAnswer::Outcome::taken) << i;
    longest = std::max(longest, database_.values["k"].size());
  }
  EXPECT_LE(longest, 50u + 16u * (64 + 2 * 50 + 2));
}

}  // namespace
}  // namespace weir::test
