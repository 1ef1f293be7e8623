// The script on a real redis-server, whose clock nobody sets: each answer says when it was made, and the oracle is
// asked about that very microsecond. 100,000 verdicts over one and several keys, in every algorithm, with limits that
// change.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <random>

#include "algorithm/limit.h"
#include "redis_server.h"
#include "store/redis_script.h"
#include "store/script_call.h"
#include "trace.h"

namespace weir::test {
namespace {

std::vector<std::int64_t> numbers_of(const resp::Value& value) {
  std::vector<std::int64_t> numbers;
  for (const resp::Value& item : value.items) numbers.push_back(item.integer);
  return numbers;
}

class Redis : public ::testing::Test {
 protected:
  void SetUp() override {
    auto server = RedisServer::start();
    ASSERT_TRUE(server) << server.error().message;
    server_ = std::move(*server);
    client_ = std::make_unique<RedisClient>(server_->port());
    sha_ = client_->call({"SCRIPT", "LOAD", std::string(redis_script())}).text;
    ASSERT_EQ(sha_.size(), 40u) << sha_;
  }

  std::vector<std::string> command(std::span<const ScriptCharge> charges, std::int64_t deadline_us,
                                   std::int64_t now_us) const {
    std::vector<std::string> words{"EVALSHA", sha_, std::to_string(charges.size())};
    for (const ScriptCharge& charge : charges) words.emplace_back(charge.charge.key);
    for (std::string& word : script_arguments(charges, deadline_us, now_us)) words.push_back(std::move(word));
    return words;
  }

  std::int64_t now() {
    const resp::Value time = client_->call({"TIME"});
    return std::stoll(time.items.at(0).text) * 1'000'000 + std::stoll(time.items.at(1).text);
  }

  std::unique_ptr<RedisServer> server_;
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
  if (is_bucket(algorithm)) return make_bucket(algorithm, in(1, 40), period, in(1, 40)).value();
  if (algorithm == Algorithm::fixed_window && in(1, 6) == 1) return compile("9/calendar_day Europe/Berlin").value();
  if (algorithm == Algorithm::concurrency) return make_window(algorithm, in(1, 40), period).value();
  Limit limit{.algorithm = algorithm, .permits = permits, .period_us = period, .capacity = permits};
  if (algorithm == Algorithm::fixed_window && in(1, 3) == 1) limit.phase_us = in(0, period - 1);
  if (algorithm == Algorithm::sliding_log) limit.events_max = in(1, 3) == 1 ? in(1, 20) : 65'536;
  return limit;
}

// One key of the real server and the oracle's idea of it.
struct Twin {
  std::string key;
  Limit limit;
  std::unique_ptr<Engine> oracle;
};

// A verdict as the oracle sees it: all are asked; if one denies, nobody is charged and the others are peeked.
std::vector<Decision> expected_verdict(std::vector<Twin*>& twins, std::span<const ScriptCharge> charges,
                                       std::int64_t now, bool& allowed) {
  std::vector<Decision> decisions;
  std::vector<std::unique_ptr<Engine>> after;
  const auto ask_one = [&](Engine& engine, const ScriptCharge& c, std::int64_t cost) {
    if (c.charge.limit->algorithm != Algorithm::concurrency) return engine.check(now, cost);
    if (cost >= 0) return engine.acquire(now, cost == 0 ? "" : c.hold_id, cost);
    // A release through the script brings a limit, and converts to it; it is told whether it was held, and what is
    // left.
    engine.acquire(now, "", INT64_MAX);
    Decision d{.allowed = engine.release(now, c.hold_id)};
    const Decision left = engine.acquire(now, "", 0);
    d.limit = left.limit;
    d.remaining = left.remaining;
    d.reset_after = left.reset_after;
    return d;
  };
  allowed = true;
  for (std::size_t i = 0; i < twins.size(); ++i) {
    after.push_back(twins[i]->oracle->clone());
    decisions.push_back(ask_one(*after[i], charges[i], charges[i].charge.cost));
    allowed = allowed && decisions[i].allowed;
  }
  for (std::size_t i = 0; i < twins.size(); ++i) {
    if (allowed) {
      twins[i]->oracle = std::move(after[i]);
    } else {
      // The correction and conversion stay; a request that can never pass makes them and spends nothing.
      if (charges[i].charge.cost != 0) ask_one(*twins[i]->oracle, charges[i], INT64_MAX);
      if (!decisions[i].allowed) continue;
      decisions[i] = ask_one(*twins[i]->oracle, charges[i], 0);
      if (charges[i].charge.cost == 0) continue;
      decisions[i].allowed = true;
      decisions[i].retry_after = Micros{0};
    }
  }
  return decisions;
}

TEST_F(Redis, AgreesWithTheOracleOnAHundredThousandVerdicts) {
  const std::uint64_t seed = base_seed();
  // The clock is the server's: a seed repeats the requests, not their times.
  std::mt19937_64 dice(seed);
  const auto in = [&](std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(dice);
  };
  std::vector<Twin> twins;
  for (const Algorithm algorithm : kAlgorithms) {
    for (int i = 0; i < 6; ++i) {
      const Limit limit = lively_limit(algorithm, dice);
      twins.push_back({std::string(to_string(algorithm)) + std::to_string(i), limit, oracle_engine(limit)});
    }
  }
  int verdicts = 0;
  while (verdicts < 100'000) {
    struct Asked {
      std::vector<Twin*> twins;
      std::vector<Limit> limits;
      std::vector<ScriptCharge> charges;
    };
    std::vector<Asked> asked(100);
    std::vector<std::vector<std::string>> commands;
    const std::int64_t now_us = now();
    for (Asked& one : asked) {
      std::vector<Twin*> all;
      for (Twin& twin : twins) all.push_back(&twin);
      std::shuffle(all.begin(), all.end(), dice);
      const auto count = static_cast<std::size_t>(in(1, 10) > 3 ? 1 : in(2, 5));
      one.twins.assign(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(count));
      for (Twin* twin : one.twins) {
        if (in(1, 100) == 1) twin->limit = lively_limit(twin->limit.algorithm, dice);
        one.limits.push_back(twin->limit);
      }
      for (std::size_t i = 0; i < count; ++i) {
        const bool held = one.limits[i].algorithm == Algorithm::concurrency;
        const bool large = one.limits[i].permits > 1'000 && in(1, 2) == 1;
        const std::int64_t cost = in(1, 8) == 1   ? 0
                                  : in(1, 6) == 1 ? (held ? -1 : -in(1, 5))
                                  : large         ? in(1, one.limits[i].permits)
                                                  : in(1, 4);
        static constexpr std::string_view ids[] = {"a", "b", "c", "d", "e"};
        const std::string_view id = held && cost != 0 ? ids[in(0, 4)] : "";
        one.charges.push_back({{.key = one.twins[i]->key, .limit = &one.limits[i], .cost = cost}, id});
      }
      commands.push_back(command(one.charges, 0, now_us));
    }
    const auto answers = client_->call_all(commands);
    for (std::size_t i = 0; i < asked.size(); ++i, ++verdicts) {
      Asked& one = asked[i];
      const auto answer = read_script_answer(numbers_of(answers[i]), one.charges);
      ASSERT_TRUE(answer) << answers[i].text;
      for (std::size_t k = 0; k < one.twins.size(); ++k) one.twins[k]->oracle->change(one.limits[k]);
      bool allowed = false;
      const auto expected = expected_verdict(one.twins, one.charges, answer->now_us, allowed);
      ASSERT_EQ(answer->outcome == ScriptAnswer::Outcome::taken, allowed)
          << "seed " << seed << ", verdict " << verdicts;
      for (std::size_t k = 0; k < expected.size(); ++k) {
        ASSERT_EQ(answer->decisions[k], expected[k])
            << "seed " << seed << ", verdict " << verdicts << ", " << one.twins[k]->key << " at " << answer->now_us
            << ", cost " << one.charges[k].charge.cost << "\n  redis:  " << to_string(answer->decisions[k])
            << "\n  oracle: " << to_string(expected[k]);
      }
    }
  }
  // Nothing stays: every key lapses by itself.
  for (const Twin& twin : twins) {
    if (twin.limit.calendar) client_->call({"DEL", twin.key});  // but for those that last a day
  }
  for (int i = 0; i < 200 && client_->call({"DBSIZE"}).integer > 0; ++i) {
    client_->call({"BLPOP", "nothing", "0.05"});
    for (const Twin& twin : twins) client_->call({"EXISTS", twin.key});
  }
  EXPECT_EQ(client_->call({"DBSIZE"}).integer, 0);
}

TEST_F(Redis, RefusesALateCallAndChargesNothing) {
  const Limit limit = compile("5/minute", Algorithm::fixed_window).value();
  const ScriptCharge charge{{.key = "k", .limit = &limit, .cost = 1}, {}};
  const auto late = client_->call(command({&charge, 1}, now() - 1, 0));
  EXPECT_EQ(read_script_answer(numbers_of(late), {&charge, 1})->outcome, ScriptAnswer::Outcome::late);
  EXPECT_EQ(client_->call({"EXISTS", "k"}).integer, 0);
  const auto in_time = client_->call(command({&charge, 1}, now() + 60'000'000, 0));
  EXPECT_EQ(read_script_answer(numbers_of(in_time), {&charge, 1})->outcome, ScriptAnswer::Outcome::taken);
}

TEST_F(Redis, KeepsAStateForAsLongAsItMatters) {
  for (const char* quota : {"5/minute", "100/hour"}) {
    for (const Algorithm algorithm : kAlgorithms) {
      if (algorithm == Algorithm::concurrency) continue;
      const Limit limit = compile(quota, algorithm).value();
      const ScriptCharge charge{{.key = "k", .limit = &limit, .cost = 2}, {}};
      client_->call({"DEL", "k"});
      const auto answer = read_script_answer(numbers_of(client_->call(command({&charge, 1}, 0, 0))), {&charge, 1});
      ASSERT_TRUE(answer);
      const std::int64_t until_us = answer->now_us + answer->decisions[0].reset_after.count();
      const std::int64_t expires_ms = client_->call({"PEXPIRETIME", "k"}).integer;
      EXPECT_GE(expires_ms * 1000, until_us) << to_string(algorithm);
      EXPECT_LE(expires_ms * 1000, until_us + 1'000) << to_string(algorithm);
    }
  }
}

TEST_F(Redis, PacksALogOfAThousandEventsIntoSixteenBytesEach) {
  const Limit limit = compile("100000/hour", Algorithm::sliding_log).value();
  const ScriptCharge charge{{.key = "k", .limit = &limit, .cost = 1}, {}};
  std::int64_t events = 0, last = 0;
  for (int i = 0; i < 1'000; ++i) {
    const auto answer = read_script_answer(numbers_of(client_->call(command({&charge, 1}, 0, 0))), {&charge, 1});
    if (answer->now_us != last) ++events;
    last = answer->now_us;
  }
  EXPECT_EQ(client_->call({"STRLEN", "k"}).integer, 50 + 16 * events);
}

}  // namespace
}  // namespace weir::test
