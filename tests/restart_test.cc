// All decisions of a store whose processes come and go equal those of a store that is never closed.
//
// The users of the file close it, leave without closing, or are killed; the next one finds it clean or repairs it. The
// other store is in memory. For single keys the oracle is compared as well. Every algorithm, calendars, limits that
// change, requests over several keys, ids, reservations, permits in flight, time in both directions.

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "algorithm/calendar.h"
#include "limiter/find_calendar.h"
#include "processes.h"
#include "store_fixture.h"
#include "table_engine.h"

namespace weir::test {
namespace {

// A call of a store, which returns its answer as text.
struct Step {
  std::int64_t now = 0;
  std::function<std::string(store::MemoryStore&)> ask;
};

std::string text_of(const Result<Decision>& answer) {
  return answer ? to_string(*answer) : "error " + std::to_string(static_cast<int>(answer.error().code));
}
std::string text_of(const Result<bool>& answer) {
  return answer ? (*answer ? "true" : "false") : "error " + std::to_string(static_cast<int>(answer.error().code));
}
std::string text_of(const Result<Verdict>& answer) {
  if (!answer) return "error " + std::to_string(static_cast<int>(answer.error().code));
  std::string text = answer->allowed ? "allowed" : "denied";
  for (const Decision& decision : answer->decisions) text += "; " + to_string(decision);
  return text;
}

struct Opened {
  std::shared_ptr<ManualClock> clock = std::make_shared<ManualClock>(Micros{kNow});
  std::unique_ptr<store::MemoryStore> store;

  Opened(const std::string& file, std::int64_t now) {
    clock->set(Micros{now});
    store = store::MemoryStore::open(
                {.keys = 20'000, .log_bytes = 4 << 20, .file = file, .find_calendar = limiter::find_calendar}, clock)
                .value();
  }
  std::string ask(const Step& step) {
    clock->set(Micros{step.now});
    return step.ask(*store);
  }
};

constexpr std::size_t kTextMax = 2'048;
struct Answers {
  std::atomic<std::size_t> count;
  char texts[64][kTextMax];
};

enum class Leaving : std::uint8_t { closes, vanishes, is_killed };

// A process opens the file, makes some steps, and leaves.
void run_session(const std::string& file, std::span<const Step> steps, Leaving leaving,
                 std::vector<std::string>& answers) {
  ASSERT_LE(steps.size(), 64u);
  const Shared<Answers> shared;
  Process process([&] {
    auto opened = std::make_unique<Opened>(file, steps.front().now);
    for (std::size_t i = 0; i < steps.size(); ++i) {
      std::strncpy(shared->texts[i], opened->ask(steps[i]).c_str(), kTextMax - 1);
      ++shared->count;
    }
    if (leaving == Leaving::is_killed) ::kill(::getpid(), SIGKILL);
    if (leaving == Leaving::vanishes) ::_exit(0);
    opened.reset();
    return true;
  });
  EXPECT_TRUE(process.join());
  EXPECT_EQ(shared->count, steps.size());
  for (std::size_t i = 0; i < steps.size(); ++i) answers.push_back(shared->texts[i]);
}

// The answers of a file that another process opens after some steps each time.
std::vector<std::string> run_interrupted(const std::string& file, std::span<const Step> steps, std::mt19937_64& dice) {
  std::vector<std::string> answers;
  while (answers.size() < steps.size()) {
    const std::size_t left = steps.size() - answers.size();
    const std::size_t count = std::min(left, static_cast<std::size_t>(pick(dice, 1, 40)));
    run_session(file, steps.subspan(answers.size(), count), static_cast<Leaving>(pick(dice, 0, 2)), answers);
    if (::testing::Test::HasFailure()) return answers;
  }
  return answers;
}

// A trace of one key, as the oracle has answered it.
std::vector<Step> steps_of(const Trace& trace, const std::string& key, std::vector<std::string>& expected) {
  std::vector<Step> steps;
  const Limit* limit = &trace.limits.front();
  for (const Op& op : trace.ops) {
    if (op.kind == Op::Kind::change) {
      limit = &trace.limits[op.limit];
      continue;
    }
    const auto ask = [&op, limit, key](store::MemoryStore& store) -> std::string {
      if (op.kind == Op::Kind::check) return text_of(store.check({key, limit, op.cost}, op.now));
      if (op.kind == Op::Kind::refund) return text_of(refund(store, {key, limit, op.cost}, op.now, op.at));
      if (op.kind == Op::Kind::acquire) return text_of(store.acquire({key, limit, op.cost}, op.id, op.now));
      return text_of(store.release(key, op.id, op.now));
    };
    steps.push_back({op.now, ask});
    expected.push_back(op.kind == Op::Kind::release ? text_of(Result<bool>(op.answer.allowed)) : to_string(op.answer));
  }
  return steps;
}

TEST(Restart, AnswersAsTheOracleDoes) {
  const std::uint64_t seed = base_seed();
  std::mt19937_64 dice(seed);
  const base::TestFolder folder;
  Opened uninterrupted("", kNow);
  for (int i = 0; i < 40; ++i) {
    const std::uint64_t number = seed + static_cast<std::uint64_t>(i);
    const Trace trace = i % 8 == 7 ? random_calendar_trace(number, 120, Time::forward)
                                   : random_trace(kAlgorithms[i % 8], number, 120, Time::both_ways);
    if (!fits_blocks(trace)) continue;
    std::vector<std::string> expected;
    const auto steps = steps_of(trace, "key" + std::to_string(i), expected);
    const auto answers = run_interrupted(folder.at("state"), steps, dice);
    ASSERT_EQ(answers.size(), steps.size());
    for (std::size_t k = 0; k < steps.size(); ++k) {
      ASSERT_EQ(uninterrupted.ask(steps[k]), expected[k]) << "seed " << number << ", step " << k << ", in memory";
      ASSERT_EQ(answers[k], expected[k]) << "seed " << number << ", step " << k << ", interrupted";
    }
  }
}

// The clock of a file that is opened with made-up readings of the system clocks. A store in memory counts beside it.
class Machine {
 public:
  // What the table's time is when its file is opened now; it is noted as the latest that was seen.
  std::int64_t open(const ClockReading& reading) {
    auto mapping = table::open_file({folder_.at("state"), 100}, reading).value();
    table::Header& header = mapping.region().header();
    const std::int64_t now = table::time_at(header, reading);
    header.latest_us = now;
    mapping.share();
    clock_->set(Micros{now});
    return now;
  }
  // How many requests of cost 1 pass at once.
  int burst(const Limit& limit) {
    int passed = 0;
    while (check(limit).allowed) ++passed;
    return passed;
  }
  Decision check(const Limit& limit) { return *store_->check({"k", &limit, 1}, clock_->now().count()); }

 private:
  const base::TestFolder folder_;
  const std::shared_ptr<ManualClock> clock_ = std::make_shared<ManualClock>(Micros{kNow});
  const std::unique_ptr<store::MemoryStore> store_ = store::MemoryStore::open({.keys = 100}, clock_).value();
};

TEST(RestartedClock, AdmitsNoBurstAndLocksNoClientOutWhateverTheWallClockShows) {
  constexpr std::int64_t second = 1'000'000, hour = 3'600 * second;
  constexpr std::array<std::uint64_t, 2> first{1, 2}, second_boot{3, 4}, third_boot{5, 6};
  for (const Algorithm algorithm : {Algorithm::token_bucket, Algorithm::sliding_log, Algorithm::fixed_window}) {
    Machine machine;
    const Limit limit = compile("10/min", algorithm).value();
    const std::int64_t start = kNow - kNow % (60 * second);
    EXPECT_EQ(machine.open({first, start, 5 * second}), start);
    EXPECT_EQ(machine.burst(limit), 10);
    // The wall clock is set an hour forward and back: for the table, a second has passed.
    EXPECT_EQ(machine.open({first, start + hour + second, 6 * second}), start + second);
    EXPECT_EQ(machine.burst(limit), 0) << weir::to_string(algorithm);
    EXPECT_EQ(machine.open({first, start - hour + 2 * second, 7 * second}), start + 2 * second);
    EXPECT_EQ(machine.burst(limit), 0) << weir::to_string(algorithm);
    // The machine sleeps for ten hours, and its boot clock counts them: the limit is full again.
    EXPECT_EQ(machine.open({first, start + 10 * hour, 5 * second + 10 * hour}), start + 10 * hour);
    EXPECT_EQ(machine.burst(limit), 10) << weir::to_string(algorithm);
    // It boots with a wall clock that is an hour behind: the time stays as it was, and no client waits for that hour.
    EXPECT_EQ(machine.open({second_boot, start + 9 * hour, second}), start + 10 * hour);
    EXPECT_EQ(machine.burst(limit), 0) << weir::to_string(algorithm);
    EXPECT_LE(machine.check(limit).retry_after, Micros{60 * second}) << weir::to_string(algorithm);
    // It boots with a correct wall clock: the time while it was off has passed.
    EXPECT_EQ(machine.open({third_boot, start + 12 * hour, second}), start + 12 * hour);
    EXPECT_EQ(machine.burst(limit), 10) << weir::to_string(algorithm);
  }
}

// Everything at once --------------------------------------------------------------------------------------------------

constexpr std::size_t kKeys = 10;

class Script {
 public:
  explicit Script(std::uint64_t seed) : dice_(seed) {
    for (const char* quota :
         {"9/min", "20/hour", "7/calendar_day Europe/Berlin", "30/calendar_week Australia/Lord_Howe"}) {
      limits_.push_back(compile(quota, Algorithm::fixed_window).value());
    }
    for (const Algorithm algorithm : {Algorithm::sliding_log, Algorithm::sliding_window, Algorithm::token_bucket,
                                      Algorithm::leaky_bucket, Algorithm::leaky_meter}) {
      for (const char* quota : {"9/min", "30/hour", "1000000000/day"})
        limits_.push_back(compile(quota, algorithm).value());
    }
    holds_ = compile("8 concurrent", Algorithm::concurrency).value();
  }

  Step next() {
    if (pick(dice_, 0, 2) == 0) now_ += pick(dice_, 0, 90'000'000);
    if (pick(dice_, 0, 60) == 0) now_ += pick(dice_, 0, 86'400'000'000);
    return {now_, ask()};
  }

 private:
  using Ask = std::function<std::string(store::MemoryStore&)>;
  // Charges, and the keys that they refer to.
  struct Order {
    std::vector<std::string> keys;
    std::vector<Charge> charges;
  };

  std::string random_id() { return "id" + std::to_string(pick(dice_, 0, 5)); }

  std::shared_ptr<const Order> order(std::int64_t cost_min) {
    auto order = std::make_shared<Order>();
    const std::int64_t count = pick(dice_, 1, 4);
    for (std::int64_t i = 0; i < count; ++i) order->keys.push_back("k" + std::to_string(pick(dice_, 0, kKeys - 1)));
    for (const std::string& key : order->keys) {
      // A key has one limit of each algorithm most of the time.
      const bool usual = pick(dice_, 0, 5) != 0;
      const std::size_t place = static_cast<std::size_t>(usual ? (key[1] - '0') * 7 % 19 : pick(dice_, 0, 18));
      order->charges.push_back({key, &limits_[place], pick(dice_, cost_min, 4)});
    }
    return order;
  }

  Ask ask() {
    const std::int64_t now = now_;
    const std::string id = random_id(), key = "k" + std::to_string(pick(dice_, 0, kKeys - 1));
    switch (pick(dice_, 0, 11)) {
      case 0:
        return [=, this](store::MemoryStore& store) { return text_of(store.acquire({key, &holds_, 2}, id, now)); };
      case 1:
        return [=](store::MemoryStore& store) { return text_of(store.release(key, id, now)); };
      case 2:
        return [=, to = order(0)](store::MemoryStore& store) {
          return text_of(store.reserve(to->charges, id, Micros{600'000'000}, now));
        };
      case 3:
      case 4:
        return [=, to = open_](store::MemoryStore& store) {
          return to ? text_of(store.commit(to->charges, id, now)) : std::string("nothing");
        };
      case 5:
        return [=, to = order(1)](store::MemoryStore& store) {
          return text_of(store.charge(to->charges, now, {.name = id}));
        };
      case 6:
        return [=](store::MemoryStore& store) { return text_of(store.reset(key, now)); };
      case 7:
        return [=](store::MemoryStore& store) {
          store.sweep(now);
          return std::string("swept");
        };
      default:
        open_ = order(-1);
        return [=, to = open_](store::MemoryStore& store) { return text_of(store.charge(to->charges, now)); };
    }
  }

  std::mt19937_64 dice_;
  std::vector<Limit> limits_;
  Limit holds_;
  std::int64_t now_ = kNow;
  std::shared_ptr<const Order> open_;
};

void compare(std::uint64_t seed, std::size_t steps) {
  const base::TestFolder folder;
  std::mt19937_64 dice(seed);
  Script script(seed);
  std::vector<Step> all;
  for (std::size_t i = 0; i < steps; ++i) all.push_back(script.next());
  const auto answers = run_interrupted(folder.at("state"), all, dice);
  ASSERT_EQ(answers.size(), all.size());
  Opened uninterrupted("", kNow);
  std::size_t errors = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::string expected = uninterrupted.ask(all[i]);
    ASSERT_EQ(answers[i], expected) << "seed " << seed << ", step " << i;
    errors += expected.starts_with("error") ? 1u : 0u;
  }
  EXPECT_LT(errors, all.size() / 2);
}

TEST(Restart, GoesOnAsIfNothingHadHappened) {
  const std::uint64_t seed = base_seed();
  for (std::uint64_t i = 0; i < 4 && !HasFailure(); ++i) compare(seed + i, 500);
}

TEST(RestartLong, GoesOnAsIfNothingHadHappened) {
  const std::uint64_t seed = base_seed();
  for (std::uint64_t i = 0; i < 200 && !HasFailure(); ++i) compare(seed + i, 3'000);
}

}  // namespace
}  // namespace weir::test
