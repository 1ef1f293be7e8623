// Weir's doors beside servers that others wrote, and beside the most that this machine can do.
//
// Each part starts what it compares, holds servers to one core and the load to another, lets them take turns, round
// after round, and takes medians: on a shared machine only the ratios mean anything. What cannot be had is skipped by
// name. A missed bar is printed and is not an error, for a noisy machine is not a bug.
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "kit/parts.h"
#include "kit/process.h"
#include "kit/report.h"
#include "server/servers.h"
#include "server/subject.h"
#include "weir/clock.h"

namespace {

using namespace weir;
using namespace weir::bench;

struct Scale {
  std::uint64_t keys = 10'000'000;  // of the cold ones
  int rounds = 7;
  double seconds = 2;  // of a round
};
constexpr Scale kQuick{.keys = 2'000'000, .rounds = 3, .seconds = 0.7};

constexpr std::uint64_t kWarmKeys = 100'000;

// A permit a minute after a million at once: every key stays live for as long as the bench lasts, and none is denied.
constexpr char kThrottle[] = "CL.THROTTLE {key} 1000000 1 60 1";
std::string gcra_command(const std::string& script) { return "EVALSHA " + script + " 1 {key} 60000000 1000000"; }

// The state of a key that was asked for an hour's permits, as gcra.lua writes it: filling by the script takes minutes.
std::string fill_command() {
  const std::int64_t hour_us = 3'600'000'000;
  return "SET {key} " + std::to_string(read_clocks().wall_us + hour_us) + " PX 3600000";
}

load::HttpRequestText auth_request() {
  return {.path = "/auth", .headers = {"X-Forwarded-Method: GET", "X-Forwarded-Uri: /users/{n}", "X-User: {key}"}};
}
load::HttpRequestText batch_request(std::size_t batch) {
  return {.method = "POST",
          .path = "/v1/checks",
          .body = "{\"key\":\"{key}\",\"limit\":\"50000/s burst 1000000\"}",
          .batch = batch};
}

Rival rival(const Subject& subject, double (*figure)(const load::Outcome&)) {
  return {subject.name(), subject.median_of(figure)};
}

// How many checks there are: by the clock on the wall, and by the time that the server had of its core. Others who are
// busy on the machine slow the first most for who is fastest, since it takes server and load at the same time.
void add_speed(Report& report, const Subject& ours, const Subject& theirs, Bar bar) {
  report.add({"checks", ours.median_of(checks_per_second), "/s", rival(theirs, checks_per_second), bar});
  report.add({"checks in a second of its core", ours.median_of(checks_per_core_second), "/s",
              rival(theirs, checks_per_core_second), bar});
}

void cold(Report& report, const Scale& scale) {
  const Shape shape{.connections = 50, .depth = 50, .keys = scale.keys};
  const Process weir = start_weir({.keys = scale.keys * 6 / 5});
  const Redis scripted = start_redis(), counting = start_redis();
  Subject ours("weir", weir.address("resp"), weir.pid(), shape);
  Subject script("Redis with a GCRA script", scripted.address, scripted.process.pid(), shape);
  Subject incr("Redis INCR", counting.address, counting.process.pid(), shape);
  ours.resp(kThrottle).fill();
  script.resp(fill_command()).fill();
  incr.resp("INCR {key}").fill();
  script.resp(gcra_command(load_gcra(scripted)));
  alternate(std::vector{&ours, &script, &incr}, scale.rounds, scale.seconds);

  report.begin("RESP, 50 connections, pipeline 50, " + std::to_string(scale.keys) + " cold keys, one server core");
  add_speed(report, ours, script, at_least(30));
  add_speed(report, ours, incr, at_least(4));
}

void pipeline_1(Report& report, const Scale& scale) {
  const Shape shape{.connections = 50, .depth = 1, .keys = kWarmKeys};
  const Process weir = start_weir({}), constant = start_constant();
  Subject ours("weir", weir.address("resp"), weir.pid(), shape);
  Subject most("a constant answer", constant.address("resp"), constant.pid(), shape);
  alternate(std::vector{&ours.resp(kThrottle), &most.resp(kThrottle)}, scale.rounds, scale.seconds);

  report.begin("RESP, 50 connections, pipeline 1, one server core");
  add_speed(report, ours, most, at_least(0.9));
}

void round_trip(Report& report, const Scale& scale) {
  const Shape shape{.connections = 1, .depth = 1, .keys = kWarmKeys};
  const Process weir = start_weir({});
  const Redis redis = start_redis();
  Subject ours("weir", weir.address("resp"), weir.pid(), shape);
  Subject script("Redis with a GCRA script", redis.address, redis.process.pid(), shape);
  alternate(std::vector{&ours.resp(kThrottle), &script.resp(gcra_command(load_gcra(redis)))}, scale.rounds,
            scale.seconds);

  report.begin("RESP, one client that waits for each answer");
  report.add({"half of the answers within", ours.median_of(p50_us), "us", rival(script, p50_us), at_most(0.7)});
  report.add({"99 % of the answers within", ours.median_of(p99_us), "us", rival(script, p99_us), at_most(0.6)});
}

void grpc(Report& report, const Scale& scale) {
  const Shape shape{.connections = 16, .depth = 32, .keys = kWarmKeys};
  const Process weir = start_weir({}), grpcpp = start_grpcpp();
  Subject ours("weir", weir.address("grpc"), weir.pid(), shape);
  Subject theirs("grpc++ with a constant answer", grpcpp.address("grpc"), grpcpp.pid(), shape);
  alternate(std::vector{&ours.grpc(), &theirs.grpc()}, scale.rounds, scale.seconds);

  report.begin("gRPC, Envoy's rate limit service, 16 connections x 32 streams, one server core");
  add_speed(report, ours, theirs, at_least(4.5));
}

void http(Report& report, const Scale& scale) {
  const Folder folder;
  const Process weir = start_weir({}), constant = start_constant();
  const Nginx nginx = start_nginx(folder);
  const Shape shape{.connections = 50, .depth = 1, .keys = kWarmKeys};
  Shape batches = shape;
  batches.checks_per_request = 100;
  Subject ours("weir", weir.address("http"), weir.pid(), shape);
  Subject many("weir, 100 checks a request", weir.address("http"), weir.pid(), batches);
  Subject theirs("nginx limit_req", nginx.address, nginx.process.pid(), shape);
  Subject most("a constant answer", constant.address("http"), constant.pid(), shape);
  alternate(std::vector{&ours.http(auth_request()), &many.http(batch_request(100)), &theirs.http(auth_request()),
                        &most.http(auth_request())},
            scale.rounds, scale.seconds);

  const double time = ours.median_of(server_us_per_check);
  report.begin("HTTP, 50 connections, one server core");
  report.add({"GET /auth, processor time", time, "us", rival(theirs, server_us_per_check), at_most(1.05)});
  report.add({"GET /auth, processor time", time, "us", rival(most, server_us_per_check)});
  report.add({"GET /auth, checks", ours.median_of(checks_per_second), "/s", rival(theirs, checks_per_second)});
  report.add({"POST /v1/checks of 100, checks", many.median_of(checks_per_second), "/s",
              rival(theirs, checks_per_second), at_least(15)});
}

// One door at half of the most that it can do. Requests come in bursts of what a connection had outstanding then: alone
// they would cost more, and half of that most would be all of it.
void half_load(Report& report, const Scale& scale, const std::string& door, Subject& subject) {
  const double most = subject.run(scale.seconds).checks_per_second();
  subject.set_rate(static_cast<std::uint64_t>(most / 2));
  alternate(std::vector{&subject}, scale.rounds, scale.seconds);
  char name[160];
  std::snprintf(name, sizeof name, "%s, at %.0fk of %.0fk checks/s: 99 %% of the answers within", door.c_str(),
                most / 2e3, most / 1e3);
  report.add({name, subject.median_of(p99_us) / 1e3, "ms", {}, at_most(1)});
}

void half(Report& report, const Scale& scale) {
  const Process weir = start_weir({});
  const auto subject = [&](const char* door, Shape shape) {
    shape.keys = kWarmKeys;
    shape.burst = shape.depth;
    return Subject("weir", weir.address(door), weir.pid(), shape);
  };
  report.begin("At half of saturation, by a schedule; times count from when a request was due");
  Subject resp = subject("resp", {.connections = 50, .depth = 50});
  half_load(report, scale, "RESP", resp.resp(kThrottle));
  Subject web = subject("http", {.connections = 50, .depth = 1});
  half_load(report, scale, "HTTP GET /auth", web.http(auth_request()));
  Subject envoy = subject("grpc", {.connections = 16, .depth = 32});
  half_load(report, scale, "gRPC", envoy.grpc());
}

// The load has to run on the same two cores. So that both servers are met by the same, it does so for one core, too.
void two_cores(Report& report, const Scale& scale) {
  if (cores() < 2) throw Missing{"a second core is not there"};
  const Shape shape{.connections = 50, .depth = 50, .keys = scale.keys, .threads = 2};
  const std::uint64_t keys = scale.keys * 6 / 5;
  const Process one = start_weir({.keys = keys}), two = start_weir({.keys = keys, .threads = 2});
  Subject alone("one core", one.address("resp"), one.pid(), shape);
  Subject both("two cores", two.address("resp"), two.pid(), shape);
  alone.resp(kThrottle).fill();
  both.resp(kThrottle).fill();
  alternate(std::vector{&alone, &both}, scale.rounds, scale.seconds);

  report.begin("RESP, 50 connections, pipeline 50, cold keys, two server cores");
  report.add({"processor time of a check", both.median_of(server_us_per_check), "us", rival(alone, server_us_per_check),
              at_most(1.15)});
}

// A part whose servers cannot be had is left out, and said so.
template <void (*measure)(Report&, const Scale&)>
void unless_missing(Report& report, const Scale& scale) {
  try {
    measure(report, scale);
  } catch (const Missing& missing) {
    report.begin("Skipped: " + missing.why);
  }
}

constexpr Part<Scale> kParts[] = {
    {"cold", unless_missing<cold>},
    {"pipeline-1", unless_missing<pipeline_1>},
    {"round-trip", unless_missing<round_trip>},
    {"grpc", unless_missing<grpc>},
    {"http", unless_missing<http>},
    {"half", unless_missing<half>},
    {"two-cores", unless_missing<two_cores>},
};

}  // namespace

int main(int count, char** words) {
  return run_parts<Scale>(count, words, kParts, kQuick,
                          "Others were busy on this machine meanwhile: run it again when it is quiet.");
}
