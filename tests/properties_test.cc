// What every algorithm promises: it admits no more than its bound, waits are exact, a denial changes nothing, and a
// refunded charge leaves no trace. Random sequences of any cost and gap; a failure prints its seed.

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <random>

#include "algorithm/division.h"
#include "algorithm/limit.h"
#include "sanitized.h"
#include "trace.h"

namespace weir::test {
namespace {

constexpr std::uint64_t kSequences = kIsSanitized ? 1'000 : 20'000;
constexpr std::size_t kOps = 200;

struct Admission {
  std::int64_t now, cost;
};

// More than `limit` in any (t - period, t]?
bool exceeds_any_window(const std::vector<Admission>& log, std::int64_t period, algorithm::Wide limit) {
  std::deque<Admission> live;
  algorithm::Wide sum = 0;
  for (const Admission& one : log) {
    live.push_back(one);
    sum += one.cost;
    while (live.front().now <= one.now - period) {
      sum -= live.front().cost;
      live.pop_front();
    }
    if (sum > limit) return true;
  }
  return false;
}

// sum * weight <= capacity * weight + rate * (t - s) for every interval [s, t] that starts with an admission.
bool exceeds_bucket(const std::vector<Admission>& log, const Limit& limit) {
  algorithm::Wide sum = 0, open = 0;
  bool first = true;
  for (const Admission& one : log) {
    const algorithm::Wide drained = algorithm::Wide{one.now} * limit.rate;
    open = first ? drained - sum : std::max(open, drained - sum);
    first = false;
    sum += algorithm::Wide{one.cost} * limit.weight;
    if (sum + open > algorithm::Wide{limit.capacity} * limit.weight + drained) return true;
  }
  return false;
}

bool exceeds_fixed(const std::vector<Admission>& log, const Limit& limit) {
  std::map<std::int64_t, algorithm::Wide> windows;
  return std::any_of(log.begin(), log.end(), [&](const Admission& one) {
    return (windows[(one.now + limit.period_us - limit.phase_us) / limit.period_us] += one.cost) > limit.permits;
  });
}

bool over_admitted(const std::vector<Admission>& log, const Limit& limit) {
  switch (limit.algorithm) {
    case Algorithm::fixed_window:
      return exceeds_fixed(log, limit);
    case Algorithm::sliding_log:
      return exceeds_any_window(log, limit.period_us, limit.permits);
    case Algorithm::sliding_window:
      return exceeds_any_window(log, limit.period_us, algorithm::Wide{2} * limit.permits);
    default:
      return exceeds_bucket(log, limit);
  }
}

class Property : public ::testing::TestWithParam<Algorithm> {
 protected:
  template <class F>
  void for_each_sequence(F visit) {
    const std::uint64_t seed = base_seed();
    for (std::uint64_t i = 0; i < kSequences && !HasFatalFailure(); ++i) {
      SCOPED_TRACE("seed " + std::to_string(seed + i));
      visit(random_requests(GetParam(), seed + i, kOps));
    }
  }
};

TEST_P(Property, NeverAdmitsMoreThanItsBound) {
  for_each_sequence([](const Trace& trace) {
    const auto engine = cell_engine(trace.limits.front());
    std::vector<Admission> log;
    for (const Op& op : trace.ops) {
      if (op.kind == Op::Kind::change || op.cost <= 0) continue;
      if (engine->check(op.now, op.cost).allowed) log.push_back({op.now, op.cost});
    }
    ASSERT_FALSE(over_admitted(log, trace.limits.front()));
  });
}

TEST_P(Property, ReturnsExactWaits) {
  for_each_sequence([](const Trace& trace) {
    const auto engine = cell_engine(trace.limits.front());
    for (const Op& op : trace.ops) {
      const Decision d = ask(*engine, trace, op);
      if (op.kind == Op::Kind::change) continue;
      ASSERT_EQ(d.allowed, d.retry_after.count() == 0);
      ASSERT_LE(d.remaining, d.limit);
      if (!d.allowed && d.retry_after != kNever && op.now + d.retry_after.count() < kTimeEnd) {
        const std::int64_t then = op.now + d.retry_after.count();
        ASSERT_FALSE(engine->clone()->check(then - 1, op.cost).allowed) << to_string(d) << " at " << op.now;
        ASSERT_TRUE(engine->clone()->check(then, op.cost).allowed) << to_string(d) << " at " << op.now;
      }
      ASSERT_EQ(d.retry_after == kNever, op.cost > d.limit);
      const std::int64_t fresh = op.now + d.reset_after.count();
      if (fresh < kTimeEnd) {
        ASSERT_EQ(engine->clone()->check(fresh, 0).remaining, d.limit);
        ASSERT_TRUE(d.reset_after.count() == 0 || d.limit == 0 ||
                    engine->clone()->check(fresh - 1, 0).remaining < d.limit);
      }
      ASSERT_TRUE(d.remaining == 0 || engine->clone()->check(op.now, d.remaining).allowed);
      ASSERT_FALSE(engine->clone()->check(op.now, d.remaining + 1).allowed) << to_string(d);
    }
  });
}

TEST_P(Property, LeavesNoTraceOfADenialOrAPeek) {
  for_each_sequence([](const Trace& trace) {
    const auto asked = cell_engine(trace.limits.front()), silent = cell_engine(trace.limits.front());
    for (const Op& op : trace.ops) {
      if (op.kind == Op::Kind::change) continue;
      const Decision d = asked->check(op.now, op.cost);
      ASSERT_TRUE(!d.allowed || op.cost == 0 || silent->check(op.now, op.cost) == d);
    }
  });
}

TEST_P(Property, ChargesAndRefundsWithoutATrace) {
  for_each_sequence([](const Trace& trace) {
    const auto engine = cell_engine(trace.limits.front());
    bool is_own = true;  // a bucket drains at the rate of the version that last admitted
    for (const Op& op : trace.ops) {
      const Decision asked = ask(*engine, trace, op);
      if (op.kind == Op::Kind::change || (asked.allowed && op.cost > 0)) is_own = op.kind != Op::Kind::change;
      if (!is_own) continue;
      const auto other = engine->clone();
      const Decision before = other->check(op.now, 0);
      const std::int64_t cost = std::max<std::int64_t>(1, before.remaining / 2);
      if (!other->check(op.now, cost).allowed) continue;
      ASSERT_EQ(other->check(op.now, -cost).remaining, before.remaining);
      for (const std::int64_t later : {std::int64_t{0}, std::int64_t{1}, before.reset_after.count() / 2}) {
        if (op.now + later >= kTimeEnd) continue;
        ASSERT_EQ(other->check(op.now + later, 0), engine->clone()->check(op.now + later, 0)) << "after " << later;
      }
    }
  });
}

// After a change, no more is admitted than under the new limit alone.
TEST_P(Property, KeepsTheNewLimitsBoundFromTheChangeOn) {
  for_each_sequence([](const Trace& trace) {
    const Limit& next = trace.limits[1];
    const auto engine = cell_engine(trace.limits.front());
    std::vector<Admission> log;
    for (std::size_t i = 0; i < trace.ops.size(); ++i) {
      const Op& op = trace.ops[i];
      if (i == trace.ops.size() / 2) engine->change(next);
      if (op.kind == Op::Kind::change || op.cost <= 0) continue;
      if (engine->check(op.now, op.cost).allowed && i >= trace.ops.size() / 2) log.push_back({op.now, op.cost});
    }
    ASSERT_FALSE(over_admitted(log, next));
  });
}

// Versions of one limit, in random turns: all count in one state.
class Versions : public Property {
 protected:
  static constexpr std::uint64_t kShare = 10;  // of the sequences

  // The first limit of a trace and some with other permits, or another burst and rate, all of one period.
  static std::vector<Limit> versions_of(const Trace& trace, std::mt19937_64& dice) {
    std::vector<Limit> versions{trace.limits.front()};
    while (versions.size() < 4) {
      Limit next = trace.limits.front();
      if (algorithm::is_bucket(next.algorithm)) {
        const std::int64_t permits = 1 + static_cast<std::int64_t>(dice() % 100);
        const std::int64_t capacity = 1 + static_cast<std::int64_t>(dice() % 100);
        const auto made = algorithm::make_bucket(next.algorithm, permits, next.period_us, capacity);
        if (!made) return versions;
        next = *made;
      } else {
        next.permits = next.capacity =
            static_cast<std::int64_t>(dice() % (2 * static_cast<std::uint64_t>(next.permits) + 3));
      }
      versions.push_back(next);
    }
    return versions;
  }

  // The largest burst and the fastest rate, or the most permits.
  static Limit highest_of(const std::vector<Limit>& versions) {
    Limit highest = versions.front();
    for (const Limit& one : versions) {
      highest.permits = std::max(highest.permits, one.permits);
      highest.capacity = std::max(highest.capacity, one.capacity);
      if (algorithm::Wide{one.rate} * highest.weight > algorithm::Wide{highest.rate} * one.weight) {
        highest.rate = one.rate;
        highest.weight = one.weight;
      }
    }
    return highest;
  }

  // Calls visit(limit, op) for each request of each sequence, with a random version.
  template <class Begin, class Visit, class End>
  void for_each_request(Begin begin, Visit visit, End end) {
    const std::uint64_t seed = base_seed();
    for (std::uint64_t i = 0; i < kSequences / kShare && !HasFatalFailure(); ++i) {
      SCOPED_TRACE("seed " + std::to_string(seed + i));
      const Trace trace = random_requests(GetParam(), seed + i, kOps);
      std::mt19937_64 dice(seed + i);
      const std::vector<Limit> versions = versions_of(trace, dice);
      begin(versions);
      for (const Op& op : trace.ops) {
        if (op.kind != Op::Kind::change && !HasFatalFailure()) visit(versions[dice() % versions.size()], op);
      }
      end(versions);
    }
  }
};

TEST_P(Versions, TogetherAdmitNoMoreThanTheHighestAlone) {
  std::unique_ptr<Engine> engine;
  std::vector<Admission> log;
  for_each_request(
      [&](const auto& versions) {
        engine = cell_engine(versions.front());
        log.clear();
      },
      [&](const Limit& version, const Op& op) {
        engine->change(version);
        if (op.cost > 0 && engine->check(op.now, op.cost).allowed) log.push_back({op.now, op.cost});
      },
      [&](const auto& versions) { ASSERT_FALSE(over_admitted(log, highest_of(versions))); });
}

TEST_P(Versions, ADenialOrAPeekUnderOneChangesNothingForAnother) {
  std::unique_ptr<Engine> asked, silent;
  for_each_request(
      [&](const auto& versions) {
        asked = cell_engine(versions.front());
        silent = cell_engine(versions.front());
      },
      [&](const Limit& version, const Op& op) {
        asked->change(version);
        const Decision d = asked->check(op.now, op.cost);
        if (!d.allowed || op.cost == 0) return;
        silent->change(version);
        ASSERT_EQ(silent->check(op.now, op.cost), d);
      },
      [](const auto&) {});
}

TEST_P(Versions, ReturnExactWaits) {
  std::unique_ptr<Engine> engine;
  for_each_request([&](const auto& versions) { engine = cell_engine(versions.front()); },
                   [&](const Limit& version, const Op& op) {
                     engine->change(version);
                     const Decision d = engine->check(op.now, op.cost);
                     const std::int64_t then = op.now + (d.retry_after == kNever ? 0 : d.retry_after.count());
                     if (d.allowed || d.retry_after == kNever || then >= kTimeEnd) return;
                     ASSERT_FALSE(engine->clone()->check(then - 1, op.cost).allowed) << to_string(d);
                     ASSERT_TRUE(engine->clone()->check(then, op.cost).allowed) << to_string(d);
                   },
                   [](const auto&) {});
}

// A lowered limit denies until the usage under the old one fits into the new one, and no microsecond longer.
TEST_P(Versions, ALoweredLimitDeniesAsLongAsTheOldOneRecovers) {
  std::unique_ptr<Engine> engine;
  Limit old;
  for_each_request(
      [&](const auto& versions) {
        old = versions.front();
        engine = cell_engine(old);
      },
      [&](const Limit& version, const Op& op) {
        engine->change(old);
        engine->check(op.now, op.cost);
        if (version.capacity >= old.capacity || op.cost < 0 || op.cost > version.capacity) return;
        const auto lowered = engine->clone();
        lowered->change(version);
        const Decision d = lowered->check(op.now, op.cost);
        const std::int64_t then = op.now + d.retry_after.count();
        if (d.allowed || then >= kTimeEnd) return;
        const std::int64_t room = old.capacity - (version.capacity - op.cost);
        ASSERT_GE(engine->clone()->check(then, 0).remaining, room);
        ASSERT_LT(engine->clone()->check(then - 1, 0).remaining, room);
      },
      [](const auto&) {});
}

INSTANTIATE_TEST_SUITE_P(Of, Versions, ::testing::ValuesIn(kChecked), algorithm_name);

INSTANTIATE_TEST_SUITE_P(Of, Property, ::testing::ValuesIn(kChecked), algorithm_name);

// If requests wait for their delay, no more leave in any period than the permits and the request that leaves last.
TEST(LeakyBucket, LetsNoMoreLeaveThanItsRateAndOneRequest) {
  const std::uint64_t seed = base_seed();
  for (std::uint64_t i = 0; i < kSequences / 10; ++i) {
    const Trace trace = random_requests(Algorithm::leaky_bucket, seed + i, kOps);
    const Limit& limit = trace.limits.front();
    const auto engine = cell_engine(limit);
    std::deque<Admission> leaving;
    algorithm::Wide sum = 0;
    for (const Op& op : trace.ops) {
      if (op.kind == Op::Kind::change || op.cost <= 0) continue;
      const Decision d = engine->check(op.now, op.cost);
      if (!d.allowed) continue;
      const std::int64_t leaves = op.now + d.delay.count();
      while (!leaving.empty() && leaving.front().now <= leaves - limit.period_us) {
        sum -= leaving.front().cost;
        leaving.pop_front();
      }
      ASSERT_LE(sum, limit.permits) << "seed " << seed + i << ", at " << op.now;
      leaving.push_back({leaves, op.cost});
      sum += op.cost;
    }
  }
}

// If requests wait for their delay, they leave evenly, however they came.
TEST(LeakyBucket, LetsItsQueueLeaveInAnEvenStream) {
  const Limit limit = compile("5/min burst 10", Algorithm::leaky_bucket).value();
  const auto engine = cell_engine(limit);
  std::vector<std::int64_t> leaves;
  for (std::int64_t now = 0; now < 600'000'000; now += 1'700'000) {
    const Decision d = engine->check(now, 1);
    if (d.allowed) leaves.push_back(now + d.delay.count());
  }
  for (std::size_t i = 1; i < leaves.size(); ++i) EXPECT_EQ(leaves[i] - leaves[i - 1], 12'000'000) << i;
  EXPECT_GT(leaves.size(), 50u);
}

}  // namespace
}  // namespace weir::test
