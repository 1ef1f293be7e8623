// A limit shared through Redis, by Weir and as people write it first: checks a second, what each costs Redis, and how
// long it takes; then half of that load, twice that load, and no Redis at all.
//
// Redis has the last core for itself and whoever asks it the first. All take turns on one Redis, round after round, and
// medians count: on a shared machine only the ratios mean anything. A missed bar is printed and is not an error.
#include <cstdio>
#include <string>
#include <vector>

#include "fleet/contestants.h"
#include "kit/parts.h"
#include "kit/rounds.h"

namespace {

using namespace weir;
using namespace weir::bench;

struct Scale {
  std::size_t keys = 1'000'000;
  int rounds = 5;
  double seconds = 1.5;  // of a round
};
constexpr Scale kQuick{.keys = 200'000, .rounds = 3, .seconds = 0.7};

constexpr std::size_t kOrder = 4'000'000;
constexpr std::size_t kInFlight = 256;
constexpr std::size_t kKnownKeys = 50'000;
constexpr Micros kPatience{1'000'000};
constexpr char kEnough[] = "1000/day";      // of uniform keys nobody is denied, and none expires while it is timed
constexpr char kPlenty[] = "10000000/day";  // of Zipf's keys, too
constexpr char kTight[] = "10/min";         // of Zipf's keys, the hot ones are

Limit bucket(const char* quota) { return compile(quota, Algorithm::token_bucket).value(); }

// Redis grows once, and not while it is timed.
template <class Contestant>
void ask_for_each_key(Contestant& one, const Scale& scale, const Limit& limit) {
  KeyOrder each = KeyOrder::each(scale.keys);
  one.run({.keys = each, .limit = limit, .checks = scale.keys});
}

struct Contest {
  Figures weir, plain, incr;
};

// All three take turns.
Contest contest(OwnRedis& redis, const Scale& scale, KeyOrder keys, const char* quota, std::size_t in_flight) {
  const Limit limit = bucket(quota);
  Weir weir(redis.target(), scale.keys, kPatience);  // the others have no deadline, either
  PlainClient plain(redis.target(), PlainClient::Kind::gcra), incr(redis.target(), PlainClient::Kind::incr);
  weir.wait_until_strict(limit);
  const Load load{keys, limit, scale.seconds, in_flight};
  ask_for_each_key(weir, scale, limit);
  ask_for_each_key(plain, scale, limit);
  std::vector<Figures> all[3];
  const auto round = [&](std::vector<Figures>& to, auto& one) {
    const double before = redis.cpu_us();
    Figures figures = one.run(load);
    figures.redis_us = (redis.cpu_us() - before) / (figures.checks_per_second * scale.seconds);
    to.push_back(figures);
  };
  for (int i = 0; i < scale.rounds; ++i) {
    round(all[0], weir);
    round(all[1], plain);
    round(all[2], incr);
  }
  return {median_of(all[0]), median_of(all[1]), median_of(all[2])};
}

void add_contest(Report& report, const std::string& title, const Contest& found, std::optional<Bar> bar) {
  const std::string plain = "one EVALSHA a check", incr = "INCR and EXPIRE";
  report.begin(title);
  report.add({"checks", found.weir.checks_per_second, "/s", Rival{plain, found.plain.checks_per_second}, bar});
  report.add({"checks", found.weir.checks_per_second, "/s", Rival{incr, found.incr.checks_per_second}});
  const auto of_core = [](const Figures& figures) { return 1e6 / figures.redis_us; };
  report.add(
      {"checks in a second of Redis's core", of_core(found.weir), "/s", Rival{plain, of_core(found.plain)}, bar});
  report.add({"checks in a second of Redis's core", of_core(found.weir), "/s", Rival{incr, of_core(found.incr)}});
  report.add({"Redis's processor time of a check", found.weir.redis_us, "us", Rival{plain, found.plain.redis_us}});
  report.add({"half of the answers within", found.weir.p50_us, "us", Rival{plain, found.plain.p50_us}});
  report.add({"99 % of the answers within", found.weir.p99_us, "us", Rival{plain, found.plain.p99_us}});
  report.add({"checks of one call", found.weir.per_call, ""});
  report.add({"denied without asking Redis", 100 * found.weir.cached, "%"});
}

std::string in_flight_text(std::size_t count) { return ", " + std::to_string(count) + " checks in flight"; }

void uniform(Report& report, const Scale& scale) {
  OwnRedis redis;
  const KeyOrder keys = KeyOrder::uniform(scale.keys, kOrder);
  for (const std::size_t in_flight : {kInFlight, std::size_t{50}}) {
    add_contest(report, "Uniform keys, none denied" + in_flight_text(in_flight),
                contest(redis, scale, keys, kEnough, in_flight), at_least(1.5));
  }
}

void zipf(Report& report, const Scale& scale) {
  OwnRedis redis;
  const KeyOrder keys = KeyOrder::zipf(scale.keys, kOrder);
  for (const std::size_t in_flight : {kInFlight, std::size_t{50}}) {
    add_contest(report, "Zipf's keys, none denied" + in_flight_text(in_flight),
                contest(redis, scale, keys, kPlenty, in_flight), {});
    add_contest(report, "Zipf's keys, 10 a minute for each" + in_flight_text(in_flight),
                contest(redis, scale, keys, kTight, in_flight), at_least(3));
  }
}

// A store without Redis is asked in the same way, on fibers and at the same rate.
void half_load(Report& report, const Scale& scale) {
  OwnRedis redis;
  const Limit limit = bucket(kEnough);
  KeyOrder keys = KeyOrder::uniform(scale.keys, kOrder);
  {
    Weir patient(redis.target(), scale.keys, kPatience);
    patient.wait_until_strict(limit);
    ask_for_each_key(patient, scale, limit);
  }
  Weir weir(redis.target(), scale.keys), memory(scale.keys);
  weir.wait_until_strict(limit);
  const Load load{keys, limit, scale.seconds, kInFlight};
  std::vector<Figures> full, half, alone, twice;
  for (int i = 0; i < scale.rounds; ++i) {
    full.push_back(weir.run(load));
    const double rate = full.back().checks_per_second;
    half.push_back(weir.run_at(load, rate / 2));
    alone.push_back(memory.run_at(load, rate / 2));
  }
  // What is too much is let through by shares and paid back afterwards, so this comes last.
  const double too_much = 2 * median_of(full).checks_per_second;
  for (int i = 0; i < scale.rounds; ++i) twice.push_back(weir.run_at(load, too_much));
  const Figures most = median_of(full), of_half = median_of(half), by_memory = median_of(alone);
  report.begin("Uniform keys at half of the most");
  report.add({"asked", of_half.checks_per_second, "/s"});
  report.add({"half of the answers within", of_half.p50_us, "us"});
  report.add({"99 % of the answers within", of_half.p99_us, "us"});
  report.add({"99 % of the answers of the memory store within", by_memory.p99_us, "us"});
  report.add({"added by Redis at 99 %", (of_half.p99_us - by_memory.p99_us) / 1e3, "ms", {}, at_most(1)});
  report.add({"decided without Redis", 100 * of_half.fallback, "%"});
  const Figures of_twice = median_of(twice);
  report.begin("Uniform keys at twice the most");
  report.add({"decided by Redis", of_twice.checks_per_second, "/s",
              Rival{"when nobody waits in vain", most.checks_per_second}, at_least(0.8)});
  report.add({"decided without Redis", 100 * of_twice.fallback, "%"});
  report.add({"99 % of the answers within", of_twice.p99_us, "us"});
}

Figures time_each(Limiter& limiter, const Load& load, std::size_t count) {
  Times times;
  KeyOrder::Room room;
  for (std::size_t i = 0; i < count; ++i) {
    const std::string_view key = load.keys.next(room);
    const auto begun = read_stopwatch();
    const auto decision = limiter.check(key, load.limit);
    times.add(read_stopwatch() - begun);
    if (!decision) throw Missing{decision.error().message};
  }
  return {.p50_us = times.quantile_ns(0.5) / 1e3, .p99_us = times.quantile_ns(0.99) / 1e3};
}

void no_redis(Report& report, const Scale& scale) {
  OwnRedis redis;
  const Limit limit = bucket(kEnough);
  KeyOrder keys = KeyOrder::zipf(scale.keys, kOrder);
  Weir weir(redis.target(), scale.keys), memory(scale.keys), other(redis.target(), 1'000);
  weir.wait_until_strict(limit);
  weir.wait_until_two();  // so that shares are less than the whole
  Scale known = scale;
  known.keys = kKnownKeys;
  ask_for_each_key(weir, known, limit);  // and begin with what Redis said
  redis.pause();
  weir.wait_until_fallback(limit);
  const Load load{keys, limit};
  std::vector<Figures> away, alone;
  constexpr std::size_t kChecks = 20'000;
  for (int i = -20; i < 20 * scale.rounds; ++i) {
    Figures figures;
    weir.on_fiber([&] { figures = time_each(weir.limiter(), load, kChecks); });
    if (i >= 0) away.push_back(figures);
    memory.on_fiber([&] { figures = time_each(memory.limiter(), load, kChecks); });
    if (i >= 0) alone.push_back(figures);
  }
  const Figures ours = median_of(away), theirs = median_of(alone);
  report.begin("Redis away, the breaker open");
  report.add({"half of the answers within", ours.p50_us, "us", Rival{"the memory store", theirs.p50_us}});
  report.add({"99 % of the answers within", ours.p99_us, "us", Rival{"the memory store", theirs.p99_us}, at_most(1.2)});
}

// One node made charges of many keys while Redis was paused: how long it takes to write them back, from the moment that
// Redis runs again, and how much of that time Redis spends on it.
void write_back(Report& report, const Scale&) {
  constexpr std::size_t kWritten = 100'000;
  OwnRedis redis;
  const Limit limit = bucket(kEnough);
  KeyOrder keys = KeyOrder::each(kWritten);
  Weir weir(redis.target(), 2 * kWritten);
  weir.wait_until_strict(limit);
  redis.pause();
  weir.wait_until_fallback(limit);
  const Load load{keys, limit};
  weir.on_fiber([&] { time_each(weir.limiter(), load, kWritten - 1); });  // the last is the one that it waited by
  redis.resume();
  const double before = redis.cpu_us();
  const double took = weir.wait_until_synced();
  const double busy = (redis.cpu_us() - before) / 1e6;
  report.begin("Write-back of 100,000 keys of one node");
  report.add({"all are in Redis after", took, "s", {}, at_most(2)});
  report.add({"of that, Redis is busy", 100 * busy / took, "%"});
}

template <void (*kMeasure)(Report&, const Scale&)>
void if_possible(Report& report, const Scale& scale) {
  try {
    kMeasure(report, scale);
  } catch (const Missing& missing) {
    std::fprintf(stderr, "not measured: %s\n", missing.why.c_str());
  }
}

constexpr Part<Scale> kParts[] = {{"uniform", if_possible<uniform>},
                                  {"zipf", if_possible<zipf>},
                                  {"half", if_possible<half_load>},
                                  {"away", if_possible<no_redis>},
                                  {"write_back", if_possible<write_back>}};

}  // namespace

int main(int count, char** words) {
  return run_parts<Scale>(count, words, kParts, kQuick,
                          "The machine was busy: Redis and who asks it did not have their cores for themselves.");
}
