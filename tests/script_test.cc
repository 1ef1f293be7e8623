// What the Redis script does around the arithmetic: all or none, kept conversions, refusals, calendars, expiry. In
// process, on a map of strings with scripted time; redis_script_test.cc runs the same script on a real server.

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <vector>

#include "algorithm/calendar.h"
#include "algorithm/limit.h"
#include "fleet/redis_key.h"
#include "fleet/redis_script.h"
#include "fleet/script_call.h"
#include "lua_redis.h"
#include "seed.h"
#include "store_fixture.h"

namespace weir::test {
namespace {

using What = fleet::ScriptRequest::What;
using fleet::Ruling;

// The outcome of one request.
struct Played {
  bool is_late = false;
  Ruling ruling = Ruling::denied;
  std::vector<Decision> decisions;
  std::vector<std::int64_t> reserved;
};

class Script : public ::testing::Test {
 protected:
  Result<Played> ask(What what, std::vector<Charge> charges, std::int64_t now = kNow, std::string_view id = {},
                     Micros lasts = Micros{60'000'000}) {
    Played played{.decisions = std::vector<Decision>(charges.size()),
                  .reserved = std::vector<std::int64_t>(charges.size())};
    fleet::ScriptRequest request{.what = what,
                                 .charges = charges,
                                 .id = id,
                                 .lasts = lasts,
                                 .charged_us = charged_us_,
                                 .decisions = played.decisions,
                                 .reserved = played.reserved};
    fleet::ScriptCall call("");
    EXPECT_TRUE(call.add(request));
    const auto read = redis_.call(database_, now, call, deadline_us_, window_of_);
    if (!read) return fail(read.error());
    played.is_late = *read == fleet::ScriptCall::Read::late;
    played.ruling = request.ruling;
    if (request.has_no_state) return fail(ErrorCode::unavailable, "no state of this version");
    return played;
  }
  Result<Played> charge(std::vector<Charge> charges, std::int64_t now = kNow) {
    return ask(What::charge, std::move(charges), now);
  }
  // Of one charge.
  Decision decide(const Charge& one, std::int64_t now = kNow) {
    const auto played = charge({one}, now);
    EXPECT_TRUE(played) << played.error().message;
    return played ? played->decisions[0] : Decision{};
  }
  std::string& value(char mark) {
    std::string name;
    fleet::append_redis_key(name, "", mark, "k", "k");
    return database_.values[name];
  }

  LuaRedis redis_{fleet::redis_script()};
  LuaDatabase database_;
  std::int64_t deadline_us_ = 0, window_of_ = 0, charged_us_ = 0;
  const Limit minute_ = compile("5/minute", Algorithm::fixed_window).value();
  const Limit bucket_ = compile("10/s burst 2").value();
  const Limit log_ = compile("3/minute", Algorithm::sliding_log).value();
  const Limit holds_ = compile("2 concurrent").value();
};

TEST_F(Script, ChargesAllOrNone) {
  const std::vector<Charge> charges{{"minute", &minute_, 1}, {"bucket", &bucket_, 2}, {"log", &log_, 1}};
  auto played = charge(charges);
  ASSERT_TRUE(played) << played.error().message;
  EXPECT_EQ(played->ruling, Ruling::allowed);
  EXPECT_EQ(played->decisions[0].remaining, 4);
  const LuaDatabase before = database_;
  played = charge(charges);  // the bucket is empty
  ASSERT_TRUE(played);
  EXPECT_EQ(played->ruling, Ruling::denied);
  EXPECT_FALSE(played->decisions[1].allowed);
  EXPECT_TRUE(played->decisions[0].allowed);
  EXPECT_EQ(played->decisions[0].remaining, 4) << "what is left without this request";
  EXPECT_EQ(played->decisions[2].remaining, 2);
  EXPECT_EQ(database_.values, before.values);
}

TEST_F(Script, ADenialUnderALowerVersionChangesNothing) {
  ASSERT_TRUE(decide({"k", &minute_, 5}).allowed);
  const Limit lower = compile("2/minute", Algorithm::fixed_window).value();
  const auto before = database_.values;
  EXPECT_FALSE(decide({"k", &lower, 1}).allowed);
  EXPECT_EQ(database_.values, before);
  EXPECT_EQ(decide({"k", &minute_, 0}).remaining, 0);
}

// A state names its phase: windows of another one count in another state, beside it.
TEST_F(Script, CountsInTheWindowOfThePhase) {
  const std::int64_t minute = 60'000'000, start = kNow - kNow % minute;
  const Limit early = phased(minute_, 10'000'000).value(), late = phased(minute_, 50'000'000).value();
  const Charge first{"k", &early, 3}, peek{"k", &early, 0}, second{"k", &late, 1};
  const std::int64_t now = start + 20'000'000;
  EXPECT_EQ(decide(first, now).reset_after, Micros{50'000'000});
  EXPECT_EQ(decide(peek, now + 49'999'999).remaining, 2) << "past the minute, not past the phase";
  EXPECT_EQ(decide(peek, now + 50'000'000).remaining, 5);
  const Decision apart = decide(second, now);
  EXPECT_EQ(apart.remaining, 4);
  EXPECT_EQ(apart.reset_after, Micros{30'000'000});
  EXPECT_EQ(value('f').size(), 88u) << "both are there";
  EXPECT_EQ(decide(peek, now).remaining, 2);
  EXPECT_EQ(decide({"k", &late, 1}, now + 50'000'000).remaining, 4);
  EXPECT_EQ(value('f').size(), 44u) << "the one that is over is gone";
}

TEST_F(Script, RefusesALateCall) {
  deadline_us_ = kNow - 1;
  EXPECT_TRUE(charge({{"k", &minute_, 1}})->is_late);
  EXPECT_TRUE(database_.values.empty());
  deadline_us_ = kNow;
  EXPECT_EQ(charge({{"k", &minute_, 1}})->ruling, Ruling::allowed);
}

TEST_F(Script, RefusesAForeignValue) {
  for (const Limit* limit : {&minute_, &bucket_, &log_}) {
    for (const std::string& foreign : {std::string("hello"), std::string(40, 'x'), std::string(44, 'x'),
                                       std::string(50, 'x'), std::string(100, '1')}) {
      database_ = {};
      value(fleet::redis_mark(limit->algorithm)) = foreign;
      const auto played = charge({{"k", limit, 1}});
      ASSERT_FALSE(played);
      EXPECT_NE(played.error().message.find("no state of this version"), std::string::npos) << played.error().message;
      EXPECT_EQ(value(fleet::redis_mark(limit->algorithm)), foreign);
    }
  }
  value('c') = "hello";
  EXPECT_FALSE(ask(What::acquire, {{"k", &holds_, 1}}, kNow, "a"));
}

// The other requests of the call are charged.
TEST_F(Script, RefusesAForeignValueAlone) {
  value('t') = std::string(44, 'x');
  const std::vector<Charge> charges{{"a", &bucket_, 1}, {"k", &bucket_, 1}, {"b", &bucket_, 1}};
  std::vector<Decision> decisions(3);
  std::vector<fleet::ScriptRequest> requests(3);
  fleet::ScriptCall call("");
  for (std::size_t i = 0; i < 3; ++i) {
    requests[i] = {.charges = std::span(charges).subspan(i, 1), .decisions = std::span(decisions).subspan(i, 1)};
    ASSERT_TRUE(call.add(requests[i]));
  }
  ASSERT_TRUE(redis_.call(database_, kNow, call, 0, 0));
  EXPECT_EQ(requests[0].ruling, Ruling::allowed);
  EXPECT_TRUE(requests[1].has_no_state);
  EXPECT_EQ(requests[2].ruling, Ruling::allowed);
  EXPECT_EQ(decide({"a", &bucket_, 0}).remaining, decisions[0].remaining);
}

// The number of an id is a byte.
TEST_F(Script, TakesNoMoreIdsThanItCanName) {
  const Charge one{"k", &holds_, 1};
  std::vector<std::string> ids;
  for (int i = 0; i < 300; ++i) ids.push_back(std::to_string(i));
  std::vector<Decision> decisions(300);
  std::vector<fleet::ScriptRequest> requests(300);
  fleet::ScriptCall call("");
  std::size_t added = 0;
  for (; added < 300; ++added) {
    requests[added] = {.what = What::acquire,
                       .charges = {&one, 1},
                       .id = ids[added],
                       .decisions = std::span(decisions).subspan(added, 1)};
    if (!call.add(requests[added])) break;
  }
  EXPECT_EQ(added, fleet::kScriptKeysMax);
}

// The name of a key says its algorithm, and so does its state: another's is not misread.
TEST_F(Script, RefusesTheStateOfAnotherAlgorithm) {
  const Limit window = compile("5/minute").value(), meter = compile("10/s burst 2", Algorithm::leaky_meter).value();
  const std::vector<const Limit*> all{&minute_, &window, &bucket_, &meter, &log_};
  for (const Limit* first : all) {
    for (const Limit* second : all) {
      if (first == second) continue;
      database_ = {};
      ASSERT_TRUE(charge({{"k", first, 1}}));
      EXPECT_TRUE(decide({"k", second, 1}).allowed) << "each has its own";
      value(fleet::redis_mark(second->algorithm)) = value(fleet::redis_mark(first->algorithm));
      EXPECT_FALSE(charge({{"k", second, 1}}));
    }
  }
}

TEST_F(Script, PeeksWithoutWriting) {
  ASSERT_TRUE(decide({"k", &minute_, 4}).allowed);
  const auto before = database_.values;
  const Limit lower = compile("2/minute", Algorithm::fixed_window).value();
  EXPECT_EQ(decide({"k", &lower, 0}).remaining, 0);
  EXPECT_EQ(ask(What::look, {{"k", &lower, 1}})->ruling, Ruling::denied);
  EXPECT_EQ(database_.values, before);
}

// A caller whose clock differs sends the windows of its own time; the script picks one by the clock of Redis.
TEST_F(Script, PicksTheCalendarWindowByTheServersClock) {
  const Limit day = compile("2/calendar_day Europe/Berlin").value();
  const algorithm::Window today = day.calendar->window_at(kNow);
  const Charge one{"k", &day, 1};
  const std::int64_t evening = today.end_us - 1'000'000;
  for (const std::int64_t callers_time : {evening, evening + 2'000'000, evening - 3'600'000'000}) {
    database_ = {};
    window_of_ = callers_time;
    EXPECT_EQ(decide(one, evening).reset_after, Micros{1'000'000}) << callers_time;
  }
  database_ = {};  // the server is already in tomorrow
  window_of_ = evening;
  EXPECT_EQ(decide(one, today.end_us).reset_after.count(), today.next_end_us - today.end_us);
  for (const std::int64_t servers_time : {today.next_end_us, today.start_us - 86'400'000'001}) {
    const auto apart = charge({one}, servers_time);
    ASSERT_TRUE(apart) << apart.error().message;
    EXPECT_TRUE(apart->is_late) << "the reply has the time of Redis, for the next call";
    EXPECT_EQ(database_.values.size(), 1u) << "and charges nothing";
  }
}

TEST_F(Script, RemovesAKeyThatIsFullAgain) {
  for (const Limit* limit : {&minute_, &bucket_, &log_}) {
    ASSERT_TRUE(decide({"k", limit, 2}).allowed);
    EXPECT_EQ(database_.values.size(), 1u);
    ASSERT_TRUE(decide({"k", limit, -2}).allowed);
    EXPECT_EQ(database_.values.size(), 0u);
  }
  ASSERT_TRUE(ask(What::acquire, {{"k", &holds_, 1}}, kNow, "a"));
  EXPECT_EQ(ask(What::release, {{"k", nullptr}}, kNow, "a")->ruling, Ruling::allowed);
  EXPECT_TRUE(database_.values.empty());
  EXPECT_EQ(ask(What::release, {{"k", nullptr}}, kNow, "a")->ruling, Ruling::denied) << "it is not held any more";
}

// Expired events are removed from the string once they are more than the events in the window.
TEST_F(Script, CompactsALogWhoseDeadAreMoreThanItsLiving) {
  const Limit limit = compile("50/s", Algorithm::sliding_log).value();
  std::size_t longest = 0;
  for (int i = 0; i < 2'000; ++i) {
    EXPECT_TRUE(decide({"k", &limit, 1}, kNow + i * 20'000).allowed) << i;
    longest = std::max(longest, value('l').size());
  }
  EXPECT_LE(longest, 50u + 16u * (64 + 2 * 50 + 2));
}

// Requests of one key are decided in the order of the call, also between other requests, and the key is written once.
TEST_F(Script, DecidesManyRequestsOfOneCallInTheirOrder) {
  for (const Limit* limit : {&minute_, &log_, &bucket_}) {
    database_ = {};
    const std::vector<Charge> ones(4, Charge{"k", limit, 1});
    const std::vector<Charge> both{{"k", limit, 1}, {"other", &minute_, 1}};
    std::vector<Decision> decisions(6);
    std::deque<fleet::ScriptRequest> requests;
    fleet::ScriptCall call("");
    const auto add = [&](std::span<const Charge> charges, std::size_t at) {
      requests.push_back({.charges = charges, .decisions = std::span(decisions).subspan(at, charges.size())});
      EXPECT_TRUE(call.add(requests.back()));
    };
    add({&ones[0], 1}, 0);
    add(both, 1);
    for (std::size_t i = 1; i < 4; ++i) add({&ones[i], 1}, 2 + i);
    EXPECT_EQ(call.keys(), 2u);
    ASSERT_TRUE(redis_.call(database_, kNow, call));
    LuaDatabase apart;
    for (std::size_t i = 0; i < requests.size(); ++i) {
      std::vector<Decision> alone(requests[i].charges.size());
      fleet::ScriptRequest again{.charges = requests[i].charges, .decisions = alone};
      fleet::ScriptCall single("");
      single.add(again);
      ASSERT_TRUE(redis_.call(apart, kNow, single));
      EXPECT_EQ(again.ruling, requests[i].ruling) << i;
      EXPECT_TRUE(std::ranges::equal(alone, requests[i].decisions)) << i;
    }
    EXPECT_EQ(apart.values, database_.values);
  }
}

TEST_F(Script, AcceptsOneLimitForAKeyInACallAndABoundedNumberOfKeys) {
  const Limit other = compile("6/minute", Algorithm::fixed_window).value();
  const Charge first{"k", &minute_}, second{"k", &other}, third{"k", &minute_};
  Decision decisions[3];
  fleet::ScriptRequest one{.charges = {&first, 1}, .decisions = {&decisions[0], 1}};
  fleet::ScriptRequest two{.charges = {&second, 1}, .decisions = {&decisions[1], 1}};
  fleet::ScriptRequest three{.charges = {&third, 1}, .decisions = {&decisions[2], 1}};
  fleet::ScriptCall call("");
  EXPECT_TRUE(call.add(one));
  EXPECT_FALSE(call.add(two));
  EXPECT_TRUE(call.add(three));
  EXPECT_EQ(call.requests(), 2u);
  std::deque<std::string> names;
  std::deque<Charge> charges;
  std::deque<fleet::ScriptRequest> requests;
  while (call.keys() <= fleet::kScriptKeysMax) {
    names.push_back("key" + std::to_string(names.size()));
    charges.push_back({names.back(), &minute_});
    requests.push_back({.charges = {&charges.back(), 1}, .decisions = {&decisions[1], 1}});
    if (!call.add(requests.back())) break;
  }
  EXPECT_EQ(call.keys(), fleet::kScriptKeysMax);
  ASSERT_TRUE(redis_.call(database_, kNow, call));
  EXPECT_EQ(database_.values.size(), fleet::kScriptKeysMax);
}

TEST_F(Script, BelievesNoReplyThatDoesNotFit) {
  const std::vector<Charge> charges{{"a", &minute_}, {"b", &bucket_}};
  std::vector<Decision> decisions(2);
  fleet::ScriptRequest request{.charges = charges, .decisions = decisions};
  fleet::ScriptCall call("");
  ASSERT_TRUE(call.add(request));
  const auto reply = redis_.call(database_, kNow, call.words(0, kNow)).value();
  ASSERT_TRUE(call.read(reply));
  for (std::size_t size = 0; size < reply.size(); ++size) {
    EXPECT_FALSE(call.read(std::span(reply).first(size))) << size;
  }
  auto longer = reply;
  longer.push_back(1);
  EXPECT_FALSE(call.read(longer));
  auto wrong = reply;
  wrong[2] = 7;
  EXPECT_FALSE(call.read(wrong));
}

// A charge is undone while others go on. Windows and logs are then as if it had never been made. A bucket has at most
// the refill of the time between less, and never more.
TEST_F(Script, UndoesAChargeAndFreesNothingElse) {
  auto dice = seeded();
  const auto in = [&](std::int64_t low, std::int64_t high) { return pick(dice, low, high); };
  for (const Algorithm algorithm : kAlgorithms) {
    if (algorithm == Algorithm::concurrency) continue;
    const Limit limit = compile("1000/s", algorithm).value();
    for (int round = 0; round < 200; ++round) {
      database_ = {};
      LuaDatabase without;
      std::int64_t now = kNow + in(0, 1'000'000), charged = 0;
      const std::int64_t cost = in(1, 20);
      const auto both = [&](std::int64_t each) {
        const Decision with_it = decide({"k", &limit, each}, now);
        std::swap(database_, without);
        const Decision without_it = decide({"k", &limit, each}, now);
        std::swap(database_, without);
        return std::pair(with_it, without_it);
      };
      for (std::int64_t i = in(0, 4); i > 0; --i, now += in(0, 3'000)) both(in(1, 30));
      charged = now;
      ASSERT_TRUE(decide({"k", &limit, cost}, now).allowed);
      for (std::int64_t i = in(0, 4); i > 0; --i) {
        now += in(0, 1) == 0 ? in(0, 3'000) : in(0, 1'500'000);
        both(in(1, 30));
      }
      now += in(0, 500);
      charged_us_ = charged;
      ASSERT_TRUE(ask(What::undo, {{"k", &limit, cost}}, now));
      for (int i = 0; i < 3; ++i, now += in(0, 600'000)) {
        const auto [with_it, without_it] = both(in(1, 10));
        EXPECT_LE(with_it.remaining, without_it.remaining) << weir::to_string(algorithm) << ", round " << round;
        if (!algorithm::is_bucket(algorithm)) {
          EXPECT_EQ(with_it, without_it) << weir::to_string(algorithm) << ", round " << round;
        } else {
          const std::int64_t lost = (now - charged) / 1'000 + 1;  // permits that refill in that time
          EXPECT_GE(with_it.remaining, without_it.remaining - std::min(lost, cost)) << weir::to_string(algorithm);
        }
      }
    }
  }
}

// A write-back goes with the runs of its keys if no other request meets them; a look makes it a request of its own.
// Both ways decide alike and leave the same states, also if several write-backs of a call have one ticket.
TEST_F(Script, WritesBackAlikeWithRunsAndAlone) {
  auto dice = seeded();
  const auto in = [&](std::int64_t low, std::int64_t high) { return pick(dice, low, high); };
  struct Key {
    std::string name;
    Limit low, high;
  };
  std::vector<Key> all;
  for (const Algorithm algorithm : kAlgorithms) {
    if (algorithm == Algorithm::concurrency) continue;
    all.push_back({"k" + std::to_string(all.size()), compile("6/minute", algorithm).value(),
                   compile("9/minute", algorithm).value()});
  }
  LuaDatabase alone;
  int repeated = 0, with_runs = 0;
  std::int64_t now = kNow;
  for (int step = 0; step < 3'000; ++step, now += in(0, 1) == 0 ? 0 : in(0, 20'000'000)) {
    std::ranges::shuffle(all, dice);
    const std::string id = "w" + std::to_string(in(step - 20, step));
    std::vector<Charge> written, charged;
    const auto at_once = static_cast<std::size_t>(in(1, 4));  // of several write-backs with one ticket
    for (const Key& key : std::span(all).first(static_cast<std::size_t>(in(1, 4)))) {
      const Limit& limit = in(0, 1) == 0 ? key.low : key.high;
      written.push_back({.key = key.name, .limit = &limit, .cost = in(0, 5) == 0 ? in(0, 60) : in(0, 4)});
      for (std::int64_t times = in(0, 2); times > 0; --times) {
        charged.push_back({.key = key.name, .limit = &limit, .cost = in(0, 2)});
      }
    }
    const auto play = [&](LuaDatabase& database, bool has_looks) {
      std::vector<Decision> decisions(written.size() + charged.size()), looks(written.size());
      std::deque<fleet::ScriptRequest> requests;
      for (std::size_t i = 0; i < written.size(); i += at_once) {
        const std::size_t count = std::min(at_once, written.size() - i);
        requests.push_back({.what = What::write_back,
                            .charges = std::span(written).subspan(i, count),
                            .id = id,
                            .lasts = Micros{60'000'000},
                            .ticket_subject = written[0].key,
                            .decisions = std::span(decisions).subspan(i, count)});
      }
      for (std::size_t i = 0; i < charged.size(); ++i) {
        requests.push_back({.charges = {&charged[i], 1}, .decisions = {&decisions[written.size() + i], 1}});
      }
      for (std::size_t i = 0; has_looks && i < written.size(); ++i) {
        requests.push_back({.what = What::look, .charges = {&written[i], 1}, .decisions = {&looks[i], 1}});
      }
      fleet::ScriptCall call("");
      for (fleet::ScriptRequest& request : requests) EXPECT_TRUE(call.add(request));
      const auto read = redis_.call(database, now, call);
      EXPECT_TRUE(read) << read.error().message;
      return std::pair(decisions, requests[0].ruling);
    };
    auto [first, ruling] = play(database_, false);
    auto [second, same_ruling] = play(alone, true);
    ASSERT_EQ(ruling, same_ruling) << "step " << step;
    repeated += ruling == Ruling::repeated ? 1 : 0;
    for (std::size_t i = 0; i < first.size(); ++i) {
      const bool is_charged = i < written.size() && std::ranges::count(charged, written[i].key, &Charge::key) > 0;
      with_runs += is_charged ? 1 : 0;
      if (is_charged) continue;  // its decision is that of the charge after it
      if (i < written.size()) first[i].delay = second[i].delay = Micros{0};
      ASSERT_EQ(first[i], second[i]) << "step " << step << ", charge " << i << "\n  with runs: " << to_string(first[i])
                                     << "\n  alone:     " << to_string(second[i]);
    }
    ASSERT_EQ(database_.values, alone.values) << "step " << step;
    ASSERT_EQ(database_.expires_ms, alone.expires_ms) << "step " << step;
    for (LuaDatabase* const database : {&database_, &alone}) {
      std::erase_if(database->expires_ms, [&](const auto& one) {
        return one.second * 1'000 <= now && database->values.erase(one.first) > 0;
      });
    }
  }
  EXPECT_GT(repeated, 100);
  EXPECT_GT(with_runs, 1'000);
}

// One key of a write-back has the value of another program: it stays, and the other keys are written, once.
TEST_F(Script, WritesTheOthersBackIfOneKeyIsNoState) {
  value('f') = "not ours";
  const std::vector<Charge> charges{{"k", &minute_, 1}, {"other", &minute_, 3}};
  for (const Ruling ruling : {Ruling::allowed, Ruling::repeated}) {
    const auto played = ask(What::write_back, charges, kNow, "id");
    ASSERT_TRUE(played) << played.error().message;
    EXPECT_EQ(played->ruling, ruling);
    EXPECT_EQ(played->decisions[1].remaining, 2);
  }
  EXPECT_EQ(value('f'), "not ours");
  EXPECT_FALSE(ask(What::write_back, {{"log", &log_, 1}, {"k", &minute_, 1}}, kNow, "with a log"));
  for (auto& [name, text] : database_.values) {
    if (text.starts_with("2s")) text = "no ticket";
  }
  EXPECT_FALSE(ask(What::write_back, charges, kNow, "id"));
}

}  // namespace
}  // namespace weir::test
