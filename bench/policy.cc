// The cost of rules: matching and charging them among few and many rules, compared with one limit in the call. Also the
// accounts of usage, and a reload of ten thousand rules under load.
//
// All contestants take turns in one process, and the report has medians. On a shared machine only the ratios mean
// anything. A missed bar is printed and is not an error, because a noisy machine is not a bug.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <deque>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "kit/machine.h"
#include "kit/parts.h"
#include "kit/report.h"
#include "kit/rounds.h"
#include "weir/clock.h"
#include "weir/gate.h"

namespace {

using namespace weir;
using namespace weir::bench;

struct Scale {
  std::size_t checks = 400'000;  // of a round
  int rounds = 9;
  int reload_seconds = 4;
};
constexpr Scale kQuick{.checks = 100'000, .rounds = 3, .reload_seconds = 1};
constexpr std::size_t kSubjects = 20'000;          // users in the requests of each contestant
constexpr std::size_t kHotSubjects = 2'000;        // few, so that their keys are in the cache
constexpr char kQuota[] = "9/s burst 1000000000";  // no check is denied

[[noreturn]] void give_up(const std::string& why) {
  std::fprintf(stderr, "%s\n", why.c_str());
  std::exit(1);
}

Policy parsed(const std::string& text) {
  auto policy = parse_policy(text, "bench");
  if (!policy) give_up(policy.error().message);
  return *std::move(policy);
}

std::string path_rules(std::size_t count) {
  std::string text = "max_change: off\nrules:\n";
  for (std::size_t i = 0; i < count; ++i) {
    const std::string n = std::to_string(i);
    text += "- {name: r" + n + ", match: {path: /v1/svc-" + n + "/items}, per: [user, path], limit: " + kQuota + "}\n";
  }
  return text;
}

// The requests of a contestant, in the same random order for all. Each user requests one path.
class Traffic {
 public:
  Traffic(std::size_t paths, std::size_t subjects) {
    std::vector<std::size_t> order(subjects);
    for (std::size_t i = 0; i < subjects; ++i) order[i] = i;
    std::shuffle(order.begin(), order.end(), std::mt19937_64(7));
    for (const std::size_t i : order) {
      const std::string& user = texts_.emplace_back("user-" + std::to_string(1'000'000 + i));
      const std::string& path = texts_.emplace_back("/v1/svc-" + std::to_string(i % paths) + "/items");
      requests_.push_back({.user = user, .ip = "192.0.2.17", .method = "GET", .path = path});
    }
  }
  const Request& next() {
    const Request& request = requests_[at_];
    at_ = at_ + 1 == requests_.size() ? 0 : at_ + 1;
    return request;
  }

 private:
  std::deque<std::string> texts_;
  std::vector<Request> requests_;
  std::size_t at_ = 0;
};

// A gate with its own limiter and traffic.
struct Subject {
  Subject(const std::string& text, std::size_t paths, std::size_t subjects, const GateOptions& options = {})
      : gate(limiter, options), traffic(paths, subjects) {
    if (auto applied = gate.apply(parsed(text)); !applied) give_up(applied.error().message);
  }

  void check(std::size_t checks) {
    const auto rules = gate.rules();
    for (std::size_t i = 0; i < checks; ++i) {
      const auto checked = gate.check(rules, traffic.next(), answer);
      if (!checked || !answer.allowed) give_up("a check was denied: do not trust the figures");
    }
  }

  Limiter limiter{{.sweeping = Sweeping::by_hand}};
  Gate gate;
  Traffic traffic;
  Answer answer;
};

Contestant contestant(std::string name, Subject& subject, const Scale& scale) {
  return {std::move(name), scale.checks, [&subject, scale] { subject.check(scale.checks); }};
}

void measure_paths(Report& report, const Scale& scale) {
  std::vector<std::unique_ptr<Subject>> subjects;
  std::vector<Contestant> contestants;
  for (const std::size_t count : {std::size_t{10}, std::size_t{1'000}, std::size_t{10'000}}) {
    subjects.push_back(std::make_unique<Subject>(path_rules(count), count, kSubjects));
    contestants.push_back(contestant(std::to_string(count) + " rules, each for a path", *subjects.back(), scale));
  }
  std::vector<Contestant*> all;
  for (Contestant& each : contestants) all.push_back(&each);
  alternate(all, scale.rounds);
  report.begin("Match and charge, 20,000 keys, one rule of each file matches; nanoseconds per check");
  const Rival ten{contestants[0].name(), contestants[0].figure()};
  report.add({contestants[0].name(), ten.value, "ns"});
  report.add({contestants[1].name(), contestants[1].figure(), "ns", ten});
  report.add({contestants[2].name(), contestants[2].figure(), "ns", ten, at_most(2)});
}

// Eight rules, of which two apply to a request: that of its path and that of its user.
std::string eight_rules() {
  std::string text = path_rules(6);
  text += std::string("- {name: users, per: user, limit: ") + kQuota + "}\n";
  text += std::string("- {name: posts, match: {method: POST}, per: user, limit: ") + kQuota + "}\n";
  return text;
}

void measure_eight(Report& report, const Scale& scale) {
  Subject eight(eight_rules(), 6, kHotSubjects);
  Limiter limiter({.sweeping = Sweeping::by_hand});
  const Limit limit = compile(kQuota).value();
  std::vector<std::string> keys;
  for (std::size_t i = 0; i < kHotSubjects; ++i) keys.push_back("rule-1:user-" + std::to_string(1'000'000 + i));
  std::shuffle(keys.begin(), keys.end(), std::mt19937_64(7));
  Contestant one("one limit, compiled before", scale.checks, [&] {
    for (std::size_t i = 0; i < scale.checks; ++i) {
      const auto decision = limiter.check(keys[i % kHotSubjects], limit);
      if (!decision || !decision->allowed) give_up("a check was denied: do not trust the figures");
    }
  });
  // As `"limit":"9/s burst 1000000000"` of a POST /v1/check is handled: parsed, compiled, charged.
  Contestant inlined("one inline limit, as text", scale.checks, [&] {
    for (std::size_t i = 0; i < scale.checks; ++i) {
      const auto written = compile(kQuota);
      const auto decision = limiter.check(keys[i % kHotSubjects], *written);
      if (!decision || !decision->allowed) give_up("a check was denied: do not trust the figures");
    }
  });
  Contestant two("two limits, compiled before", scale.checks, [&] {
    for (std::size_t i = 0; i < scale.checks; ++i) {
      const Charge charges[] = {{keys[i % kHotSubjects], &limit, 1}, {keys[(i + 1) % kHotSubjects], &limit, 1}};
      const auto verdict = limiter.check_all(charges);
      if (!verdict || !verdict->allowed) give_up("a check was denied: do not trust the figures");
    }
  });
  Contestant rules = contestant("8 rules, of which 2 match", eight, scale);
  const std::vector<Contestant*> all{&one, &inlined, &two, &rules};
  alternate(all, scale.rounds);
  report.begin("Rules compared with limits in the call, 2,000 users; nanoseconds per check");
  report.add({one.name(), one.figure(), "ns"});
  report.add({inlined.name(), inlined.figure(), "ns", Rival{one.name(), one.figure()}});
  report.add({two.name(), two.figure(), "ns", Rival{one.name(), one.figure()}});
  report.add({rules.name(), rules.figure(), "ns", Rival{inlined.name(), inlined.figure()}, at_most(2)});
  report.add({rules.name(), rules.figure(), "ns", Rival{one.name(), one.figure()}});
  report.add({rules.name(), rules.figure(), "ns", Rival{two.name(), two.figure()}});
}

// The cost of accounts of usage: for users that return soon, for users that return seldom, and for more users than
// accounts.
void measure_usage(Report& report, const Scale& scale) {
  report.begin("10,000 accounts of usage, one for each user; nanoseconds per check");
  const std::string text = std::string("rules:\n- {name: users, per: user, limit: ") + kQuota + "}\n";
  for (const std::size_t users : {std::size_t{500}, std::size_t{9'000}, std::size_t{100'000}}) {
    Subject without(text, 1, users), with(text, 1, users, {.usage = {.subjects = 10'000}});
    Contestant none = contestant(std::to_string(users) + " users, without", without, scale);
    Contestant kept = contestant(std::to_string(users) + " users, with accounts", with, scale);
    const std::vector<Contestant*> all{&none, &kept};
    alternate(all, scale.rounds);
    report.add({none.name(), none.figure(), "ns"});
    report.add({kept.name(), kept.figure(), "ns", Rival{none.name(), none.figure()}});
  }
}

struct Latencies {
  double p50 = 0, p99 = 0, p999 = 0;
};

Latencies measure_for(Gate& gate, Traffic& traffic, std::chrono::seconds time) {
  Times times;
  auto before = read_stopwatch();
  for (const auto end = before + time; before < end;) {
    const auto answer = gate.check(traffic.next());
    const auto after = read_stopwatch();
    if (!answer || !answer->allowed || answer->limits.size() != 1)
      give_up("a check was lost: do not trust the figures");
    times.add(after - before);
    before = after;
  }
  return {times.quantile_ns(0.5), times.quantile_ns(0.99), times.quantile_ns(0.999)};
}

// One core makes checks. The other parses and applies the rules, again and again without a pause.
void measure_reload(Report& report, const Scale& scale) {
  const std::string text = path_rules(10'000);
  Subject subject(text, 10'000, kSubjects);
  const std::chrono::seconds time{scale.reload_seconds};
  measure_for(subject.gate, subject.traffic, std::chrono::seconds{1});
  const Latencies calm = measure_for(subject.gate, subject.traffic, time);
  std::atomic<bool> stop{false};
  std::atomic<int> reloads{0};
  std::jthread reloader([&] {
    pin_to_cores(1, 2);
    while (!stop) {
      if (auto applied = subject.gate.apply(parsed(text)); !applied) give_up(applied.error().message);
      ++reloads;
    }
  });
  const Latencies busy = measure_for(subject.gate, subject.traffic, time);
  stop = true;
  report.begin("Reload of 10,000 rules, again and again, while checks run; nanoseconds per check");
  report.add({"p50 while the rules stay", calm.p50, "ns"});
  report.add({"p50 while they are reloaded", busy.p50, "ns", Rival{"p50 while the rules stay", calm.p50}});
  report.add({"p99 while the rules stay", calm.p99, "ns"});
  report.add({"p99 while they are reloaded", busy.p99, "ns", Rival{"p99 while the rules stay", calm.p99}, at_most(2)});
  report.add({"p99.9 while they are reloaded", busy.p999, "ns", Rival{"p99.9 while the rules stay", calm.p999}});
  report.add({"reloads", static_cast<double>(reloads), ""});
  report.add({"checks lost", 0, ""});  // the first lost one would have ended the program
}

constexpr Part<Scale> kParts[] = {
    {"paths", measure_paths}, {"eight", measure_eight}, {"usage", measure_usage}, {"reload", measure_reload}};

}  // namespace

int main(int count, char** words) {
  return run_parts<Scale>(count, words, kParts, kQuick, "The machine was busy: the figures mean little.");
}
