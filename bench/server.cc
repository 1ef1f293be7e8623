// Weir's listeners compared with other servers, and with the maximum that this machine can do.
//
// Each part starts the servers that it compares. A server has one core and the load generator another. The servers take
// turns, round after round, and the report has medians. On a shared machine only the ratios mean anything. If a server
// is not available, the part is skipped. A missed bar is printed and is not an error, because a noisy machine is not a
// bug.
#include <cstdio>
#include <string>
#include <vector>

#include "kit/parts.h"
#include "kit/process.h"
#include "kit/report.h"
#include "kit/rounds.h"
#include "server/servers.h"
#include "server/subject.h"
#include "weir/clock.h"

namespace {

using namespace weir;
using namespace weir::bench;

struct Scale {
  std::uint64_t keys = 10'000'000;  // of the parts with cold keys
  int rounds = 7;
  double seconds = 2;  // of a round
};
constexpr Scale kQuick{.keys = 2'000'000, .rounds = 3, .seconds = 0.7};

constexpr std::uint64_t kWarmKeys = 100'000;

// A burst of a million and one permit a minute: every key stays live during the benchmark, and none is denied.
constexpr char kThrottle[] = "CL.THROTTLE {key} 1000000 1 60 1";
std::string gcra_command(const std::string& script) { return "EVALSHA " + script + " 1 {key} 60000000 1000000"; }

// Writes the state of a key as gcra.lua would after an hour's permits. To fill Redis by the script would take minutes.
std::string fill_command() {
  const std::int64_t hour_us = 3'600'000'000;
  return "SET {key} " + std::to_string(read_clocks().wall_us + hour_us) + " PX 3600000";
}

load_generator::HttpRequestText auth_request() {
  return {.path = "/auth", .headers = {"X-Forwarded-Method: GET", "X-Forwarded-Uri: /users/{n}", "X-User: {key}"}};
}
load_generator::HttpRequestText batch_request(std::size_t batch) {
  return {.method = "POST",
          .path = "/v1/checks",
          .body = "{\"key\":\"{key}\",\"limit\":\"50000/s burst 1000000\"}",
          .batch = batch};
}

Rival rival(const Subject& subject, double (*figure)(const load_generator::Outcome&)) {
  return {subject.name(), subject.median_of(figure)};
}

// Checks per second, and checks per second of the server's processor time. If other processes use the machine, the
// first figure suffers most for the fastest server, because server and load generator must run at the same time.
void add_speed(Report& report, const Subject& ours, const Subject& theirs, Bar bar) {
  report.add({"checks", ours.median_of(checks_per_second), "/s", rival(theirs, checks_per_second), bar});
  report.add({"checks per second of its processor time", ours.median_of(checks_per_core_second), "/s",
              rival(theirs, checks_per_core_second), bar});
}

void cold(Report& report, const Scale& scale) {
  const load_generator::Options load{.connections = 50, .depth = 50, .keys = scale.keys};
  const Process weir = start_weir({.keys = scale.keys * 6 / 5});
  const Redis scripted = start_redis(), counting = start_redis();
  Subject ours("weir", weir.address("resp"), weir.pid(), load);
  Subject script("Redis with a GCRA script", scripted.address, scripted.process.pid(), load);
  Subject incr("Redis INCR", counting.address, counting.process.pid(), load);
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
  const load_generator::Options load{.connections = 50, .depth = 1, .keys = kWarmKeys};
  const Process weir = start_weir({}), constant = start_constant();
  Subject ours("weir", weir.address("resp"), weir.pid(), load);
  Subject most("a constant answer", constant.address("resp"), constant.pid(), load);
  alternate(std::vector{&ours.resp(kThrottle), &most.resp(kThrottle)}, scale.rounds, scale.seconds);

  report.begin("RESP, 50 connections, pipeline 1, one server core");
  add_speed(report, ours, most, at_least(0.9));
}

void round_trip(Report& report, const Scale& scale) {
  const load_generator::Options load{.connections = 1, .depth = 1, .keys = kWarmKeys};
  const Process weir = start_weir({});
  const Redis redis = start_redis();
  Subject ours("weir", weir.address("resp"), weir.pid(), load);
  Subject script("Redis with a GCRA script", redis.address, redis.process.pid(), load);
  alternate(std::vector{&ours.resp(kThrottle), &script.resp(gcra_command(load_gcra(redis)))}, scale.rounds,
            scale.seconds);

  report.begin("RESP, one client that waits for each reply");
  report.add({"half of the answers within", ours.median_of(p50_us), "us", rival(script, p50_us), at_most(0.7)});
  report.add({"99 % of the answers within", ours.median_of(p99_us), "us", rival(script, p99_us), at_most(0.6)});
}

void grpc(Report& report, const Scale& scale) {
  const load_generator::Options load{.connections = 16, .depth = 32, .keys = kWarmKeys};
  const Process weir = start_weir({}), grpcpp = start_grpcpp();
  Subject ours("weir", weir.address("grpc"), weir.pid(), load);
  Subject theirs("grpc++ with a constant answer", grpcpp.address("grpc"), grpcpp.pid(), load);
  alternate(std::vector{&ours.grpc(), &theirs.grpc()}, scale.rounds, scale.seconds);

  report.begin("gRPC, Envoy's rate limit service, 16 connections x 32 streams, one server core");
  add_speed(report, ours, theirs, at_least(4.5));
}

void http(Report& report, const Scale& scale) {
  const Folder folder;
  const Process weir = start_weir({}), constant = start_constant();
  const Nginx nginx = start_nginx(folder);
  const load_generator::Options load{.connections = 50, .depth = 1, .keys = kWarmKeys};
  load_generator::Options batches = load;
  batches.checks_per_request = 100;
  Subject ours("weir", weir.address("http"), weir.pid(), load);
  Subject many("weir, 100 checks a request", weir.address("http"), weir.pid(), batches);
  Subject theirs("nginx limit_req", nginx.address, nginx.process.pid(), load);
  Subject most("a constant answer", constant.address("http"), constant.pid(), load);
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

// One listener at half of its maximum rate. A burst has as many requests as a connection had in flight at the maximum:
// single requests cost more, so half of the maximum could be too much for the server.
void half_load(Report& report, const Scale& scale, const std::string& listener, Subject& subject) {
  const double most = subject.run(scale.seconds).checks_per_second();
  subject.set_rate(static_cast<std::uint64_t>(most / 2));
  alternate(std::vector{&subject}, scale.rounds, scale.seconds);
  char name[160];
  std::snprintf(name, sizeof name, "%s, at %.0fk of %.0fk checks/s: 99 %% of the answers within", listener.c_str(),
                most / 2e3, most / 1e3);
  report.add({name, subject.median_of(p99_us) / 1e3, "ms", {}, at_most(1)});
}

void half(Report& report, const Scale& scale) {
  const Process weir = start_weir({});
  const auto subject = [&](const char* listener, load_generator::Options load) {
    load.keys = kWarmKeys;
    load.burst = load.depth;
    return Subject("weir", weir.address(listener), weir.pid(), load);
  };
  report.begin("Half of the maximum rate, by a schedule; a time counts from when the request was due");
  Subject resp = subject("resp", {.connections = 50, .depth = 50});
  half_load(report, scale, "RESP", resp.resp(kThrottle));
  Subject web = subject("http", {.connections = 50, .depth = 1});
  half_load(report, scale, "HTTP GET /auth", web.http(auth_request()));
  Subject envoy = subject("grpc", {.connections = 16, .depth = 32});
  half_load(report, scale, "gRPC", envoy.grpc());
}

// With two server cores, the load generator runs on the same cores. It does so with one server core, too, so that both
// servers get the same load.
void two_cores(Report& report, const Scale& scale) {
  if (cores() < 2) throw Missing{"this machine has one core"};
  const load_generator::Options load{.connections = 50, .depth = 50, .threads = 2, .keys = scale.keys};
  const std::uint64_t keys = scale.keys * 6 / 5;
  const Process one = start_weir({.keys = keys}), two = start_weir({.keys = keys, .threads = 2});
  Subject alone("one core", one.address("resp"), one.pid(), load);
  Subject both("two cores", two.address("resp"), two.pid(), load);
  alone.resp(kThrottle).fill();
  both.resp(kThrottle).fill();
  alternate(std::vector{&alone, &both}, scale.rounds, scale.seconds);

  report.begin("RESP, 50 connections, pipeline 50, cold keys, two server cores");
  report.add({"processor time per check", both.median_of(server_us_per_check), "us", rival(alone, server_us_per_check),
              at_most(1.15)});
}

constexpr Part<Scale> kParts[] = {
    {"cold", cold}, {"pipeline-1", pipeline_1}, {"round-trip", round_trip}, {"grpc", grpc}, {"http", http},
    {"half", half}, {"two-cores", two_cores},
};

}  // namespace

int main(int count, char** words) {
  return run_parts<Scale>(count, words, kParts, kQuick,
                          "Other processes used this machine: run the benchmark again when it is idle.");
}
