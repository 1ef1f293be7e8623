// A limit that processes share through Redis, by Weir and by simple clients: checks per second, the cost in Redis, and
// response times. Then Weir at half of that load, at twice that load, and without Redis.
//
// Redis has the last core for itself, and the client has the first. All contestants take turns on one Redis, round
// after round, and the report has medians. On a shared machine only the ratios mean anything. A missed bar is printed
// and is not an error.
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
constexpr Micros kLongDeadline{1'000'000};
constexpr char kEnough[] = "1000/day";      // denies no uniform key, and no key expires during a round
constexpr char kPlenty[] = "10000000/day";  // denies no key of Zipf's, either
constexpr char kTight[] = "10/min";         // denies the hot keys of Zipf's

Limit bucket(const char* quota) { return compile(quota, Algorithm::token_bucket).value(); }

// Checks each key once, so that Redis has all keys before the rounds.
template <class Contestant>
void check_each_key(Contestant& one, const Scale& scale, const Limit& limit) {
  KeyOrder each = KeyOrder::each(scale.keys);
  one.run({.keys = each, .limit = limit, .checks = scale.keys});
}

struct Contest {
  Figures weir, plain, incr;
};

// Lets all three take turns.
Contest contest(OwnRedis& redis, const Scale& scale, KeyOrder keys, const char* quota, std::size_t in_flight) {
  const Limit limit = bucket(quota);
  Weir weir(redis.target(), scale.keys, kLongDeadline);  // without a deadline, as the others
  PlainClient plain(redis.target(), PlainClient::Kind::gcra), incr(redis.target(), PlainClient::Kind::incr);
  weir.wait_until_strict(limit);
  const Load load{keys, limit, scale.seconds, in_flight};
  check_each_key(weir, scale, limit);
  check_each_key(plain, scale, limit);
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
  const std::string plain = "one EVALSHA per check", incr = "INCR and EXPIRE";
  report.begin(title);
  report.add({"checks", found.weir.checks_per_second, "/s", Rival{plain, found.plain.checks_per_second}, bar});
  report.add({"checks", found.weir.checks_per_second, "/s", Rival{incr, found.incr.checks_per_second}});
  const auto of_core = [](const Figures& figures) { return 1e6 / figures.redis_us; };
  report.add({"checks per second of Redis's processor time", of_core(found.weir), "/s",
              Rival{plain, of_core(found.plain)}, bar});
  report.add(
      {"checks per second of Redis's processor time", of_core(found.weir), "/s", Rival{incr, of_core(found.incr)}});
  report.add({"Redis's processor time per check", found.weir.redis_us, "us", Rival{plain, found.plain.redis_us}});
  report.add({"half of the answers within", found.weir.p50_us, "us", Rival{plain, found.plain.p50_us}});
  report.add({"99 % of the answers within", found.weir.p99_us, "us", Rival{plain, found.plain.p99_us}});
  report.add({"checks per call", found.weir.per_call, ""});
  report.add({"denied without a call of Redis", 100 * found.weir.cached, "%"});
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
    add_contest(report, "Zipf's keys, 10 per minute for each" + in_flight_text(in_flight),
                contest(redis, scale, keys, kTight, in_flight), at_least(3));
  }
}

// The memory store runs in the same way for comparison: on fibers, at the same rate.
void half_load(Report& report, const Scale& scale) {
  OwnRedis redis;
  const Limit limit = bucket(kEnough);
  KeyOrder keys = KeyOrder::uniform(scale.keys, kOrder);
  {
    Weir patient(redis.target(), scale.keys, kLongDeadline);
    patient.wait_until_strict(limit);
    check_each_key(patient, scale, limit);
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
  // Excess requests are decided by shares of the limit, and their charges are written to Redis later. So this is last.
  const double excess = 2 * median_of(full).checks_per_second;
  for (int i = 0; i < scale.rounds; ++i) twice.push_back(weir.run_at(load, excess));
  const Figures most = median_of(full), of_half = median_of(half), by_memory = median_of(alone);
  report.begin("Uniform keys at half of the maximum rate");
  report.add({"checks", of_half.checks_per_second, "/s"});
  report.add({"half of the answers within", of_half.p50_us, "us"});
  report.add({"99 % of the answers within", of_half.p99_us, "us"});
  report.add({"99 % of the answers of the memory store within", by_memory.p99_us, "us"});
  report.add({"added by Redis at 99 %", (of_half.p99_us - by_memory.p99_us) / 1e3, "ms", {}, at_most(1)});
  report.add({"decided without Redis", 100 * of_half.fallback, "%"});
  const Figures of_twice = median_of(twice);
  report.begin("Uniform keys at twice the maximum rate");
  report.add({"decided by Redis", of_twice.checks_per_second, "/s",
              Rival{"at the maximum rate", most.checks_per_second}, at_least(0.8)});
  report.add({"decided without Redis", 100 * of_twice.fallback, "%"});
  report.add({"99 % of the answers within", of_twice.p99_us, "us"});
}

Figures time_each(Limiter& limiter, const Load& load, std::size_t count) {
  Times times;
  KeyOrder::Buffer buffer;
  for (std::size_t i = 0; i < count; ++i) {
    const std::string_view key = load.keys.next(buffer);
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
  weir.wait_until_two();  // so that a share is less than the limit
  Scale known = scale;
  known.keys = kKnownKeys;
  check_each_key(weir, known, limit);  // the fallback begins with the counts from Redis
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
  report.begin("Redis unavailable, the circuit breaker open");
  report.add({"half of the answers within", ours.p50_us, "us", Rival{"the memory store", theirs.p50_us}});
  report.add({"99 % of the answers within", ours.p99_us, "us", Rival{"the memory store", theirs.p99_us}, at_most(1.2)});
}

// One node charged many keys while Redis was paused. Measures how long the write-back takes after Redis runs again, and
// how much processor time of Redis it takes.
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
  weir.on_fiber(
      [&] { time_each(weir.limiter(), load, kWritten - 1); });  // the check of wait_until_fallback() is one, too
  redis.resume();
  const double before = redis.cpu_us();
  const double took = weir.wait_until_synced();
  const double busy = (redis.cpu_us() - before) / 1e6;
  report.begin("Write-back of 100,000 keys of one node");
  report.add({"all charges are in Redis after", took, "s", {}, at_most(2)});
  report.add({"of that time, Redis is busy", 100 * busy / took, "%"});
}

constexpr Part<Scale> kParts[] = {
    {"uniform", uniform}, {"zipf", zipf}, {"half", half_load}, {"away", no_redis}, {"write_back", write_back}};

}  // namespace

int main(int count, char** words) {
  return run_parts<Scale>(count, words, kParts, kQuick,
                          "The machine was busy: Redis and its client did not have their cores for themselves.");
}
