// How the next request is chosen: more often than not at the edges of what the last answer promised. See trace.h.

#include "trace.h"

#include <algorithm>
#include <array>
#include <random>

#include "algorithm/limit.h"

namespace weir::test {
namespace {

constexpr std::int64_t kMax = INT64_MAX;
constexpr std::int64_t kDay = 86'400'000'000;

class Dice {
 public:
  explicit Dice(std::uint64_t seed) : engine_(seed) {}
  std::int64_t in(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, std::max(low, high))(engine_);
  }
  bool chance(int percent) { return in(1, 100) <= percent; }
  // As likely to have 3 bits as 30.
  std::int64_t any_size(std::int64_t high) {
    int bits = 0;
    while (bits < 62 && (std::int64_t{1} << bits) < high) ++bits;
    return std::min(high, in(0, std::int64_t{1} << in(0, bits)));
  }
  template <class T, std::size_t N>
  T one_of(const std::array<T, N>& values) {
    return values[static_cast<std::size_t>(in(0, N - 1))];
  }

 private:
  std::mt19937_64 engine_;
};

constexpr std::array<std::int64_t, 12> kPeriods{1,         7,          1'000,       1'000'000,
                                                7'000'000, 60'000'000, 900'000'000, 3'600'000'000,
                                                kDay,      7 * kDay,   30 * kDay,   315'576'000'000'000};

std::optional<Limit> try_limit(Algorithm algorithm, Dice& dice) {
  const std::int64_t period = dice.chance(70) ? dice.one_of(kPeriods) : 1 + dice.any_size(kPeriods.back() - 1);
  const std::int64_t permits = dice.chance(3) ? 0 : 1 + dice.any_size(dice.chance(70) ? 100 : kPermitsMax - 1);
  if (algorithm::is_bucket(algorithm)) {
    const std::int64_t capacity =
        dice.chance(40) ? permits : 1 + dice.any_size(dice.chance(70) ? 100 : kPermitsMax - 1);
    auto limit = algorithm::make_bucket(algorithm, permits, period, capacity);
    return limit ? std::optional<Limit>(*limit) : std::nullopt;
  }
  Limit limit{.algorithm = algorithm, .permits = permits, .period_us = period, .capacity = permits};
  if (algorithm == Algorithm::concurrency) limit.permits = limit.capacity = std::min(permits, kConcurrentMax);
  if (algorithm == Algorithm::fixed_window && dice.chance(40)) limit.phase_us = dice.in(0, period - 1);
  if (algorithm == Algorithm::sliding_log && dice.chance(40)) limit.events_max = dice.in(1, 6);
  return limit;
}

Limit random_limit(Algorithm algorithm, Dice& dice) {
  for (;;) {
    if (auto limit = try_limit(algorithm, dice)) return *limit;
  }
}

// The time in which an empty limit recovers, roughly: what a step forward is measured by.
std::int64_t span_of(const Limit& limit) {
  if (limit.period_us == 0) return kDay;
  if (!algorithm::is_bucket(limit.algorithm)) return limit.period_us;
  return std::max<std::int64_t>(1, limit.capacity * limit.weight / limit.rate);
}

std::int64_t to_boundary(std::int64_t now, const Limit& limit) {
  return limit.period_us - (now + limit.period_us - limit.phase_us) % limit.period_us;
}

std::int64_t next_time(std::int64_t now, const Limit& limit, const Decision& last, Time time, Dice& dice) {
  const std::int64_t span = span_of(limit);
  const std::int64_t wait = last.retry_after == kNever ? 0 : last.retry_after.count();
  const auto forward = [&]() -> std::int64_t {
    switch (dice.in(0, 9)) {
      case 0:
      case 1:
        return 0;
      case 2:
        return wait;
      case 3:
        return wait - 1;
      case 4:
        return last.reset_after.count() - dice.in(0, 1);
      case 5:
        return dice.any_size(span);
      case 6:
        return dice.in(0, span);
      case 7:
        return dice.any_size(4 * span);
      case 8:
        return limit.period_us > 0 ? to_boundary(now, limit) - dice.in(0, 1) : 1;
      default:
        return dice.in(0, 3);
    }
  };
  std::int64_t step = std::max<std::int64_t>(0, forward());
  if (time == Time::both_ways && dice.chance(12)) step = -dice.any_size(dice.chance(70) ? span : 8 * span);
  return std::clamp<std::int64_t>(now + step, 0, kTimeEnd - 1);
}

std::int64_t next_cost(const Limit& limit, const Decision& last, Dice& dice) {
  switch (dice.in(0, 15)) {
    case 0:
    case 1:
      return 0;
    case 2:
      return last.remaining;
    case 3:
      return last.remaining + 1;
    case 4:
      return dice.in(1, std::max<std::int64_t>(1, last.remaining));
    case 5:
      return limit.capacity;
    case 6:
      return limit.capacity + 1;
    case 7:
      return -dice.any_size(std::max<std::int64_t>(1, limit.capacity));
    case 8:
      return dice.one_of(std::array<std::int64_t, 5>{kMax, kMax - 1, INT64_MIN, INT64_MIN + 1, kPermitsMax});
    case 9:
      return dice.any_size(std::max<std::int64_t>(1, limit.capacity));
    default:
      return 1;
  }
}

Op next_op(const Limit& limit, std::int64_t now, const Decision& last, Dice& dice) {
  Op op{.now = now, .cost = next_cost(limit, last, dice)};
  if (limit.algorithm != Algorithm::concurrency) return op;
  op.id = std::string(1, static_cast<char>('a' + dice.in(0, 7)));
  op.kind = dice.chance(30) ? Op::Kind::release : Op::Kind::acquire;
  op.cost = std::max<std::int64_t>(0, op.cost);
  if (op.kind == Op::Kind::acquire && op.cost == 0) op.id.clear();  // a peek has no id
  return op;
}

using MakeEngine = std::unique_ptr<Engine> (*)(const Limit& limit);

Trace make_trace(std::uint64_t seed, std::vector<Limit> limits, std::size_t count, Time time, Dice& dice,
                 MakeEngine make = oracle_engine) {
  Trace trace{.seed = seed, .limits = std::move(limits)};
  const auto engine = make(trace.limits.front());
  std::size_t ruling = 0;
  std::int64_t now = 0;
  switch (dice.in(0, 3)) {
    case 0:
      now = dice.in(0, 10);
      break;
    case 1:
      now = kTimeEnd - 1 - dice.any_size(100 * kDay);
      break;
    default:
      now = 1'794'701'843'991'953 + dice.in(0, kDay);
      break;
  }
  const int changes = static_cast<int>(dice.one_of(std::array<std::int64_t, 3>{1, 5, 30}));  // of the limit, in percent
  Decision last;
  std::vector<Op> charges;  // under the current limit, which can be refunded
  while (trace.ops.size() < count) {
    now = next_time(now, trace.limits[ruling], last, time, dice);
    Op op = next_op(trace.limits[ruling], now, last, dice);
    if (!charges.empty() && dice.chance(15)) {
      op = charges[static_cast<std::size_t>(dice.in(0, static_cast<std::int64_t>(charges.size()) - 1))];
      op = Op{.kind = Op::Kind::refund, .now = now, .cost = dice.in(1, op.cost), .at = op.now};
      if (op.at > 0 && dice.chance(10)) --op.at;  // when nothing was
    }
    if (dice.chance(changes)) {
      charges.clear();
      ruling = static_cast<std::size_t>(dice.in(0, static_cast<std::int64_t>(trace.limits.size()) - 1));
      op = Op{.kind = Op::Kind::change, .now = now, .limit = ruling};
    }
    op.answer = ask(*engine, trace, op);
    if (op.kind == Op::Kind::check || op.kind == Op::Kind::acquire) last = op.answer;
    if (op.kind == Op::Kind::check && op.answer.allowed && op.cost > 0) charges.push_back(op);
    trace.ops.push_back(std::move(op));
  }
  return trace;
}

std::string describe(const Limit& limit) {
  std::string text(weir::to_string(limit.algorithm));
  const auto add = [&](const char* what, std::int64_t value) {
    text += std::string(", ") + what + " " + std::to_string(value);
  };
  add("permits", limit.permits);
  add("period", limit.period_us);
  if (limit.phase_us != 0) add("phase", limit.phase_us);
  add("capacity", limit.capacity);
  add("rate", limit.rate);
  add("weight", limit.weight);
  if (limit.algorithm == Algorithm::sliding_log) add("most events", limit.events_max);
  return text;
}

std::string describe(const Trace& trace, const Op& op) {
  const std::string at = "  " + std::to_string(op.now) + "  ";
  switch (op.kind) {
    case Op::Kind::change:
      return at + "change to " + describe(trace.limits[op.limit]);
    case Op::Kind::refund:
      return at + "refund " + std::to_string(op.cost) + " of " + std::to_string(op.at) + " -> " + to_string(op.answer);
    case Op::Kind::release:
      return at + "release " + op.id + " -> " + (op.answer.allowed ? "held" : "not held");
    case Op::Kind::acquire:
      return at + "acquire " + op.id + " " + std::to_string(op.cost) + " -> " + to_string(op.answer);
    case Op::Kind::check:
      break;
  }
  return at + std::to_string(op.cost) + " -> " + to_string(op.answer);
}

std::string difference(const Trace& trace, std::size_t place, const Engine& engine, const Decision& got) {
  std::string text = "seed " + std::to_string(trace.seed) + ", op " + std::to_string(place) + "\n  " +
                     describe(trace.limits.front()) + "\n";
  const std::size_t first = place > 12 ? place - 12 : 0;
  for (std::size_t i = first; i <= place; ++i) text += describe(trace, trace.ops[i]) + "\n";
  return text + "  but " + std::string(engine.name()) + " says " + to_string(got) + "\n";
}

}  // namespace

bool charge_all(std::span<std::unique_ptr<Engine>* const> engines, std::span<const std::int64_t> costs,
                std::int64_t now, std::vector<Decision>& decisions) {
  std::vector<std::unique_ptr<Engine>> after;
  bool allowed = true;
  for (std::size_t i = 0; i < engines.size(); ++i) {
    after.push_back((*engines[i])->clone());
    decisions.push_back(after[i]->check(now, costs[i]));
    allowed = allowed && decisions[i].allowed;
  }
  for (std::size_t i = 0; i < engines.size(); ++i) {
    std::unique_ptr<Engine>& engine = *engines[i];
    if (allowed) {
      engine = std::move(after[i]);
      continue;
    }
    if (costs[i] == 0) continue;
    // The correction and the conversion stay; a request that can never pass makes them and charges nothing.
    engine->check(now, INT64_MAX);
    if (!decisions[i].allowed) continue;
    decisions[i] = engine->check(now, 0);
    decisions[i].allowed = true;
    decisions[i].retry_after = Micros{0};
  }
  return allowed;
}

std::string to_string(const Decision& d) {
  const auto wait = [](Micros t) { return t == kNever ? std::string("never") : std::to_string(t.count()); };
  return std::string(d.allowed ? "allow, " : "deny, ") + std::to_string(d.remaining) + " left of " +
         std::to_string(d.limit) + ", retry " + wait(d.retry_after) + ", reset " + wait(d.reset_after) + ", delay " +
         wait(d.delay);
}

namespace {

Trace trace_of(Algorithm algorithm, std::uint64_t seed, std::size_t ops, Time time, MakeEngine make) {
  Dice dice(seed);
  std::vector<Limit> limits{random_limit(algorithm, dice), random_limit(algorithm, dice)};
  Limit resized = random_limit(algorithm, dice);  // the first, with other permits: the period stays
  if (!algorithm::is_bucket(algorithm)) resized.period_us = limits.front().period_us;
  resized.phase_us = limits.front().phase_us;
  limits.push_back(resized);
  if (algorithm::is_by_period(algorithm) && time == Time::both_ways) {
    // A state of another period may be removed once it has recovered, which a clock that runs back cannot know: so
    // these have one period. Three more versions have a part of the permits.
    for (int i = 0; i < 3; ++i) limits.push_back(limits.front());
    for (std::size_t i = 1; i < limits.size(); ++i) {
      limits[i].period_us = limits.front().period_us;
      limits[i].phase_us = limits.front().phase_us;
    }
    for (std::size_t i = 3; i < limits.size(); ++i) {
      limits[i].permits = limits[i].capacity = limits.front().permits / dice.in(1, 4) + dice.in(0, 2);
    }
  } else if (algorithm == Algorithm::fixed_window) {
    Limit shifted = limits.front();  // the first, and only its phase is another
    shifted.phase_us = dice.in(0, shifted.period_us - 1);
    limits.push_back(shifted);
  }
  return make_trace(seed, std::move(limits), ops, time, dice, make);
}

}  // namespace

Trace random_trace(Algorithm algorithm, std::uint64_t seed, std::size_t ops, Time time) {
  return trace_of(algorithm, seed, ops, time, oracle_engine);
}

Trace random_requests(Algorithm algorithm, std::uint64_t seed, std::size_t ops) {
  return trace_of(algorithm, seed, ops, Time::forward, cell_engine);
}

// Each event costs all there is, and the log counts on: past 2^53 in all, where doubles end.
Trace long_log_trace() {
  const Limit limit = algorithm::make_window(Algorithm::sliding_log, kPermitsMax, 1'000).value();
  Trace trace{.seed = 0, .limits = {limit}};
  const auto engine = oracle_engine(limit);
  for (std::int64_t i = 0; i < 20'000; ++i) {
    for (const std::int64_t cost : {kPermitsMax / 3, kPermitsMax / 2, kPermitsMax, -kPermitsMax / 5, std::int64_t{1}}) {
      Op op{.now = i * 1'100 + static_cast<std::int64_t>(trace.ops.size() % 7), .cost = cost};
      op.answer = ask(*engine, trace, op);
      trace.ops.push_back(op);
    }
  }
  return trace;
}

Trace random_calendar_trace(std::uint64_t seed, std::size_t ops, Time time) {
  Dice dice(seed);
  constexpr std::array<const char*, 6> zones{"UTC",          "Europe/Berlin",     "America/St_Johns",
                                             "Pacific/Apia", "America/Sao_Paulo", "Australia/Lord_Howe"};
  constexpr std::array<const char*, 4> units{"day", "week", "month", "year"};
  std::vector<Limit> limits;
  std::string calendar;
  for (int i = 0; i < 3; ++i) {
    // With a clock that runs back all are of one calendar: see trace_of().
    if (calendar.empty() || (time == Time::forward && dice.chance(50))) {
      calendar = std::string("/calendar_") + dice.one_of(units) + " " + dice.one_of(zones);
    }
    limits.push_back(compile(std::to_string(dice.in(1, 9)) + calendar).value());
  }
  if (time == Time::both_ways) return make_trace(seed, std::move(limits), ops, time, dice);
  limits.push_back(Limit{.algorithm = Algorithm::fixed_window,
                         .permits = 5,
                         .period_us = kDay,
                         .phase_us = dice.chance(50) ? 0 : dice.in(1, kDay - 1),
                         .capacity = 5});
  return make_trace(seed, std::move(limits), ops, time, dice);
}

std::vector<Trace> boundary_traces(Algorithm algorithm) {
  constexpr std::int64_t kTop = kPermitsMax, kTenYears = kPeriodMax.count();
  std::vector<Limit> limits;
  for (const std::int64_t permits :
       {std::int64_t{0}, std::int64_t{1}, std::int64_t{3}, std::int64_t{4095}, kTop - 1, kTop}) {
    for (const std::int64_t period : {std::int64_t{1}, std::int64_t{1'000}, std::int64_t{7}, kDay, kTenYears}) {
      if (!algorithm::is_bucket(algorithm)) {
        const auto limit = algorithm::make_window(algorithm, permits, period);
        if (limit) limits.push_back(*limit);
        if (limit && algorithm == Algorithm::fixed_window && period > 1) limits.push_back(*phased(*limit, period - 1));
        continue;
      }
      for (const std::int64_t capacity : {std::int64_t{1}, std::int64_t{2}, permits, kTop}) {
        const auto limit = algorithm::make_bucket(algorithm, permits, period, capacity);
        if (limit) limits.push_back(*limit);
      }
    }
  }
  std::vector<Trace> traces;
  for (const Limit& limit : limits) {
    for (const std::int64_t start :
         {std::int64_t{0}, std::int64_t{1'794'701'843'991'953}, kTimeEnd - 1 - limit.period_us}) {
      Trace trace{.seed = 0, .limits = {limit}};
      const auto engine = oracle_engine(limit);
      std::int64_t now = std::max<std::int64_t>(0, start);
      for (const std::int64_t step :
           {std::int64_t{0}, std::int64_t{1}, limit.period_us - 1, limit.period_us, kTimeEnd}) {
        now = std::clamp<std::int64_t>(now + step, 0, kTimeEnd - 1);
        for (const std::int64_t cost : {std::int64_t{1}, limit.capacity, limit.capacity - 1, limit.capacity + 1, kMax,
                                        kMax - 1, std::int64_t{0}, -limit.capacity, INT64_MIN, limit.capacity / 2}) {
          Op op{.now = now, .cost = cost};
          if (algorithm == Algorithm::concurrency) {
            op.kind = Op::Kind::acquire;
            op.cost = std::max<std::int64_t>(0, cost);
            op.id = op.cost == 0 ? "" : "a";
          }
          op.answer = ask(*engine, trace, op);
          trace.ops.push_back(op);
        }
      }
      traces.push_back(std::move(trace));
    }
  }
  return traces;
}

Decision ask(Engine& engine, const Trace& trace, const Op& op) {
  switch (op.kind) {
    case Op::Kind::change:
      engine.change(trace.limits[op.limit]);
      return {};
    case Op::Kind::refund:
      return engine.refund(op.now, op.cost, op.at);
    case Op::Kind::acquire:
      return engine.acquire(op.now, op.id, op.cost);
    case Op::Kind::release:
      return Decision{.allowed = engine.release(op.now, op.id)};
    case Op::Kind::check:
      break;
  }
  return engine.check(op.now, op.cost);
}

std::optional<std::string> replay(const Trace& trace, Engine& engine) {
  for (std::size_t i = 0; i < trace.ops.size(); ++i) {
    const Decision got = ask(engine, trace, trace.ops[i]);
    if (!(got == trace.ops[i].answer)) return difference(trace, i, engine, got);
  }
  return {};
}

namespace {

struct Walk {
  Trace trace{};               // the path walked so far
  std::vector<Op> alphabet{};  // `now` is a step from the last op
  std::uint64_t walked = 0;

  std::optional<std::string> go(const std::vector<std::unique_ptr<Engine>>& engines, std::int64_t now, int length) {
    if (length == 0) return {};
    for (const Op& letter : alphabet) {
      if (now + letter.now < 0) continue;
      const auto changes = [](const Op& before) { return before.kind == Op::Kind::change; };
      if (letter.kind == Op::Kind::refund && std::ranges::any_of(trace.ops, changes))
        continue;  // charged under another
      Op op = letter;
      op.now += now;
      op.at = std::max<std::int64_t>(0, op.at + op.now);
      trace.ops.push_back(op);
      ++walked;
      std::vector<std::unique_ptr<Engine>> next;
      for (const auto& engine : engines) {
        next.push_back(engine->clone());
        const Decision got = ask(*next.back(), trace, op);
        if (next.size() == 1) trace.ops.back().answer = got;
        if (!(got == trace.ops.back().answer)) return difference(trace, trace.ops.size() - 1, *next.back(), got);
      }
      if (auto wrong = go(next, op.now, length - 1)) return wrong;
      trace.ops.pop_back();
    }
    return {};
  }
};

}  // namespace

std::optional<std::string> walk_small_traces(const std::vector<Limit>& limits, int length,
                                             std::vector<std::unique_ptr<Engine>> engines, std::uint64_t& walked) {
  Walk walk{.trace = {.seed = 0, .limits = limits}};
  const bool held = limits.front().algorithm == Algorithm::concurrency;
  for (const std::int64_t step : {0, 1, 3, -3}) {
    for (const std::int64_t cost : {-1, 0, 1, 2}) {
      if (step < 0 && cost != 1) continue;
      Op op{.kind = held ? Op::Kind::acquire : Op::Kind::check, .now = step, .cost = cost, .id = "a"};
      if (held && cost == 0) op.id.clear();
      if (held && cost == 2) op.id = "b";
      if (held && cost < 0) op = Op{.kind = Op::Kind::release, .now = step, .id = "a"};
      walk.alphabet.push_back(op);
    }
  }
  for (const std::int64_t ago : {0, -1, -3}) {
    if (!held) walk.alphabet.push_back({.kind = Op::Kind::refund, .now = 0, .cost = 1, .at = ago});
  }
  walk.alphabet.push_back({.kind = Op::Kind::change, .limit = 1});
  auto wrong = walk.go(engines, 5, length);
  walked += walk.walked;
  return wrong;
}

std::vector<std::vector<Limit>> small_limits(Algorithm algorithm) {
  std::vector<std::vector<Limit>> pairs;
  struct Kind {
    std::int64_t permits, period, phase;
  };
  constexpr Kind kinds[][2] = {{{2, 3, 0}, {3, 4, 2}}, {{3, 4, 1}, {2, 4, 3}}};
  for (const auto& kind : kinds) {
    std::vector<Limit> pair;
    for (const auto& [p, t, phase] : kind) {
      Limit limit{.algorithm = algorithm, .permits = p, .period_us = t, .capacity = p};
      if (algorithm == Algorithm::fixed_window) limit.phase_us = phase;
      if (algorithm::is_bucket(algorithm)) limit = algorithm::make_bucket(algorithm, p, t, p + 1).value();
      if (algorithm == Algorithm::sliding_log) limit.events_max = 2;
      pair.push_back(limit);
    }
    pairs.push_back(pair);
  }
  return pairs;
}

}  // namespace weir::test
