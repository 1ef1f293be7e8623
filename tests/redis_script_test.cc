// The script on a real redis-server with its own clock: each answer has the time of its decision, and the oracle
// decides at that microsecond. 100,000 verdicts over one and several keys, in every algorithm, with limits that change.

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <random>

#include "algorithm/limit.h"
#include "fleet/redis_key.h"
#include "fleet/redis_script.h"
#include "fleet/script_call.h"
#include "redis_fixture.h"
#include "seed.h"
#include "trace.h"

namespace weir::test {
namespace {

std::vector<std::int64_t> numbers_of(const resp::Value& value) {
  std::vector<std::int64_t> numbers;
  for (const resp::Value& item : value.items) numbers.push_back(item.integer);
  return numbers;
}

class Redis : public RedisTest {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(start());
    client_ = std::make_unique<RedisClient>(server_->port());
    sha_ = client_->call({"SCRIPT", "LOAD", std::string(fleet::redis_script())}).text;
    ASSERT_EQ(sha_.size(), 40u) << sha_;
  }

  // Sends it, and reads the answer into its requests.
  Result<fleet::ScriptCall::Read> play(fleet::ScriptCall& call, std::int64_t deadline_us = 0) {
    const auto reply = client_->call(command(call, deadline_us, 0));
    if (reply.type == resp::Type::error) return fail(ErrorCode::unavailable, reply.text);
    return call.read(numbers_of(reply));
  }
  std::vector<std::string> command(fleet::ScriptCall& call, std::int64_t deadline_us, std::int64_t now_us) const {
    std::vector<std::string> words{"EVALSHA", sha_};
    for (const std::string_view word : call.words(deadline_us, now_us)) words.emplace_back(word);
    return words;
  }
  Result<Decision> charge(const Limit& limit, std::int64_t cost, std::int64_t* at = nullptr) {
    const Charge one{.key = "k", .limit = &limit, .cost = cost};
    Decision decision;
    fleet::ScriptRequest request{.charges = {&one, 1}, .decisions = {&decision, 1}};
    fleet::ScriptCall call("");
    call.add(request);
    if (auto read = play(call); !read) return fail(read.error());
    if (at != nullptr) *at = call.now_us();
    return decision;
  }
  // As the key `k` is called there.
  static std::string key(const Limit& limit) {
    std::string name;
    fleet::append_redis_key(name, "", fleet::redis_mark(limit.algorithm), "k", "k");
    return name;
  }

  std::int64_t now() {
    const resp::Value time = client_->call({"TIME"});
    return std::stoll(time.items.at(0).text) * 1'000'000 + std::stoll(time.items.at(1).text);
  }

  std::vector<std::string> keys() {
    std::vector<std::string> out;
    for (const resp::Value& item : client_->call({"KEYS", "*"}).items) out.push_back(item.text);
    return out;
  }

  std::unique_ptr<RedisClient> client_;
  std::string sha_;
};

// Short periods, so that things happen while the test runs.
Limit lively_limit(Algorithm algorithm, std::mt19937_64& dice) {
  const auto in = [&](std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(dice);
  };
  const std::int64_t period = in(1, 4) == 1 ? in(1, 3'000) : in(3'000, 100'000);
  const std::int64_t permits = in(1, 8) == 1 ? kPermitsMax - in(0, 9) : in(1, 40);
  if (algorithm::is_bucket(algorithm)) return algorithm::make_bucket(algorithm, in(1, 40), period, in(1, 40)).value();
  if (algorithm == Algorithm::fixed_window && in(1, 6) == 1) return compile("9/calendar_day Europe/Berlin").value();
  if (algorithm == Algorithm::concurrency) return algorithm::make_window(algorithm, in(1, 40), period).value();
  Limit limit{.algorithm = algorithm, .permits = permits, .period_us = period, .capacity = permits};
  if (algorithm == Algorithm::fixed_window && in(1, 3) == 1) limit.phase_us = in(0, period - 1);
  if (algorithm == Algorithm::sliding_log) limit.events_max = in(1, 3) == 1 ? in(1, 20) : 65'536;
  return limit;
}

// One key of the real server, and the oracle for it.
struct Twin {
  std::string key;
  Limit limit;
  std::unique_ptr<Engine> oracle;
};

// A request and what the oracle expects of it.
struct Asked {
  std::vector<Twin*> twins;
  std::vector<Limit> limits;
  std::vector<Charge> charges;
  std::vector<Decision> decisions;
  std::string_view id;
  fleet::ScriptRequest request;
};

bool expect_charge(Asked& asked, std::int64_t now, std::vector<Decision>& decisions) {
  std::vector<std::unique_ptr<Engine>*> oracles;
  std::vector<std::int64_t> costs;
  for (std::size_t i = 0; i < asked.twins.size(); ++i) {
    oracles.push_back(&asked.twins[i]->oracle);
    costs.push_back(asked.charges[i].cost);
  }
  return charge_all(oracles, costs, now, decisions);
}

// Permits in flight. A release names no limit; its answer says whether the id had a permit.
bool expect_hold(Asked& asked, std::int64_t now, std::vector<Decision>& decisions) {
  Engine& oracle = *asked.twins[0]->oracle;
  const std::int64_t cost = asked.charges[0].cost;
  if (cost < 0) return oracle.release(now, asked.id);
  decisions.push_back(oracle.acquire(now, cost == 0 ? "" : asked.id, cost));
  return decisions[0].allowed;
}

class RedisTraces : public Redis {
 protected:
  std::int64_t in(std::int64_t low, std::int64_t high) { return pick(dice_, low, high); }

  Asked ask_something() {
    Asked asked;
    std::vector<Twin*> all;
    const bool in_flight = in(1, 7) == 1;
    for (Twin& twin : twins_) {
      if ((twin.limit.algorithm == Algorithm::concurrency) == in_flight) all.push_back(&twin);
    }
    std::shuffle(all.begin(), all.end(), dice_);
    const auto count = static_cast<std::size_t>(in_flight || in(1, 10) > 3 ? 1 : in(2, 5));
    asked.twins.assign(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(count));
    for (Twin* twin : asked.twins) {
      if (in(1, 100) == 1) twin->limit = lively_limit(twin->limit.algorithm, dice_);
      asked.limits.push_back(twin->limit);
    }
    static constexpr std::string_view ids[] = {"a", "b", "c", "d", "e"};
    asked.id = ids[in(0, 4)];
    for (std::size_t i = 0; i < count; ++i) {
      const bool large = asked.limits[i].permits > 1'000 && in(1, 2) == 1;
      const std::int64_t cost = in(1, 8) == 1   ? 0
                                : in(1, 6) == 1 ? (in_flight ? -1 : -in(1, 5))
                                : large         ? in(1, asked.limits[i].permits)
                                                : in(1, 4);
      asked.charges.push_back({.key = asked.twins[i]->key, .limit = &asked.limits[i], .cost = cost});
    }
    if (in_flight && asked.charges[0].cost < 0) asked.charges[0].limit = nullptr;
    asked.decisions.resize(count);
    return asked;
  }

  // Makes the request refer to the members of `asked`, which must not move any more.
  static void prepare(Asked& asked) {
    const bool in_flight = asked.limits[0].algorithm == Algorithm::concurrency;
    using What = fleet::ScriptRequest::What;
    asked.request = {.what = !in_flight                  ? What::charge
                             : asked.charges[0].cost < 0 ? What::release
                                                         : What::acquire,
                     .charges = asked.charges,
                     .id = asked.id,
                     .decisions = asked.decisions};
  }

  void compare(Asked& asked, std::int64_t now) {
    const bool is_release = asked.request.what == fleet::ScriptRequest::What::release;
    for (std::size_t k = 0; k < asked.twins.size() && !is_release; ++k) asked.twins[k]->oracle->change(asked.limits[k]);
    std::vector<Decision> expected;
    const bool in_flight = asked.request.what != fleet::ScriptRequest::What::charge;
    const bool allowed = in_flight ? expect_hold(asked, now, expected) : expect_charge(asked, now, expected);
    ASSERT_EQ(asked.request.ruling == fleet::Ruling::allowed, allowed) << "verdict " << verdicts_;
    for (std::size_t k = 0; k < expected.size(); ++k) {
      ASSERT_EQ(asked.decisions[k], expected[k])
          << "verdict " << verdicts_ << ", " << asked.twins[k]->key << " at " << now << ", cost "
          << asked.charges[k].cost << "\n  redis:  " << to_string(asked.decisions[k])
          << "\n  oracle: " << to_string(expected[k]);
    }
    ++verdicts_;
  }

  std::mt19937_64 dice_ = seeded();  // a seed repeats the requests, not their times: the clock is the server's
  std::vector<Twin> twins_;
  int verdicts_ = 0;
};

// Up to 40 requests a call, some of the same keys, and many calls at once.
TEST_F(RedisTraces, AgreesWithTheOracleOnAHundredThousandVerdicts) {
  for (const Algorithm algorithm : kAlgorithms) {
    for (int i = 0; i < 6; ++i) {
      const Limit limit = lively_limit(algorithm, dice_);
      twins_.push_back({std::string(weir::to_string(algorithm)) + std::to_string(i), limit, oracle_engine(limit)});
    }
  }
  while (verdicts_ < 100'000) {
    std::deque<Asked> asked;
    std::deque<fleet::ScriptCall> calls;
    std::vector<std::size_t> ends;  // of each call, in asked
    std::vector<std::vector<std::string>> commands;
    const std::int64_t now_us = now();
    std::int64_t most = 0;
    const auto end_call = [&] {
      commands.push_back(command(calls.back(), 0, now_us));
      ends.push_back(asked.size());
    };
    while (asked.size() < 300) {
      Asked next = ask_something();
      asked.push_back(std::move(next));
      prepare(asked.back());
      if (most > 0 && calls.back().requests() < static_cast<std::size_t>(most) &&
          calls.back().add(asked.back().request))
        continue;
      if (!calls.empty()) {
        commands.push_back(command(calls.back(), 0, now_us));
        ends.push_back(asked.size() - 1);
      }
      most = in(1, 3) == 1 ? 1 : in(2, 40);
      ASSERT_TRUE(calls.emplace_back("").add(asked.back().request));
    }
    end_call();
    const auto answers = client_->call_all(commands);
    for (std::size_t i = 0, at = 0; i < calls.size(); ++i) {
      const auto read = calls[i].read(numbers_of(answers[i]));
      ASSERT_TRUE(read) << answers[i].text;
      for (; at < ends[i]; ++at) ASSERT_NO_FATAL_FAILURE(compare(asked[at], calls[i].now_us()));
    }
  }
  // No key stays: all expire by themselves, except those that last a day.
  for (const std::string& key : keys()) {
    if (client_->call({"PTTL", key}).integer > 10'000) client_->call({"DEL", key});
  }
  for (int i = 0; i < 200 && client_->call({"DBSIZE"}).integer > 0; ++i) {
    client_->call({"BLPOP", "nothing", "0.05"});
    for (const std::string& key : keys()) client_->call({"EXISTS", key});
  }
  EXPECT_EQ(client_->call({"DBSIZE"}).integer, 0);
}

TEST_F(Redis, RefusesALateCallAndChargesNothing) {
  const Limit limit = compile("5/minute", Algorithm::fixed_window).value();
  const Charge one{.key = "k", .limit = &limit, .cost = 1};
  Decision decision;
  fleet::ScriptRequest request{.charges = {&one, 1}, .decisions = {&decision, 1}};
  fleet::ScriptCall call("");
  ASSERT_TRUE(call.add(request));
  EXPECT_EQ(play(call, now() - 1).value(), fleet::ScriptCall::Read::late);
  EXPECT_EQ(client_->call({"EXISTS", key(limit)}).integer, 0);
}

TEST_F(Redis, KeepsAStateForAsLongAsItMatters) {
  for (const char* quota : {"5/minute", "100/hour"}) {
    for (const Algorithm algorithm : kAlgorithms) {
      if (algorithm == Algorithm::concurrency) continue;
      const Limit limit = compile(quota, algorithm).value();
      client_->call({"DEL", key(limit)});
      std::int64_t at = 0;
      const auto decision = charge(limit, 2, &at);
      ASSERT_TRUE(decision) << decision.error().message;
      const std::int64_t until_us = at + decision->reset_after.count();
      const std::int64_t expires_ms = client_->call({"PEXPIRETIME", key(limit)}).integer;
      EXPECT_GE(expires_ms * 1000, until_us) << weir::to_string(algorithm);
      const std::int64_t more = std::min<std::int64_t>(decision->reset_after.count(), 3'600'000'000);
      EXPECT_LE(expires_ms * 1000, until_us + more + 1'001'000) << weir::to_string(algorithm);
    }
  }
}

TEST_F(Redis, PacksALogOfAThousandEventsIntoSixteenBytesEach) {
  const Limit limit = compile("100000/hour", Algorithm::sliding_log).value();
  std::int64_t events = 0, last = 0, at = 0;
  for (int i = 0; i < 1'000; ++i) {
    ASSERT_TRUE(charge(limit, 1, &at));
    if (at != last) ++events;
    last = at;
  }
  EXPECT_EQ(client_->call({"STRLEN", key(limit)}).integer, 50 + 16 * events);
}

}  // namespace
}  // namespace weir::test
