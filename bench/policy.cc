// What rules cost: finding and charging them among few and many, beside one limit given with the call, and a reload of
// ten thousand under load.
//
// All contestants take turns in one process and medians count; only the ratios mean anything on a shared machine. A
// missed bar is printed and is not an error, for a noisy machine is not a bug.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <deque>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "kit/machine.h"
#include "kit/parts.h"
#include "kit/report.h"
#include "kit/rounds.h"
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
constexpr std::size_t kSubjects = 20'000;          // keys that the requests of every contestant have
constexpr std::size_t kHotSubjects = 2'000;        // of those that are to find their keys in the cache
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

// The requests of a contestant, in the same random order for all: each subject asks for one path.
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
      if (!checked || !answer.allowed) give_up("a check was denied: distrust the figures");
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
  report.begin("Match and charge, 20,000 keys, one rule of all matches; nanoseconds of a check");
  const Rival ten{contestants[0].name(), contestants[0].figure()};
  report.add({contestants[0].name(), ten.value, "ns"});
  report.add({contestants[1].name(), contestants[1].figure(), "ns", ten});
  report.add({contestants[2].name(), contestants[2].figure(), "ns", ten, at_most(2)});
}

// Eight rules, of which a request meets two: its path's and that of its user.
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
      if (!decision || !decision->allowed) give_up("a check was denied: distrust the figures");
    }
  });
  // As `"limit":"9/s burst 1000000000"` of a POST /v1/check is handled: read, compiled, charged.
  Contestant inlined("one inline limit, as text", scale.checks, [&] {
    for (std::size_t i = 0; i < scale.checks; ++i) {
      const auto written = compile(kQuota);
      const auto decision = limiter.check(keys[i % kHotSubjects], *written);
      if (!decision || !decision->allowed) give_up("a check was denied: distrust the figures");
    }
  });
  Contestant two("two limits, compiled before", scale.checks, [&] {
    for (std::size_t i = 0; i < scale.checks; ++i) {
      const Charge charges[] = {{keys[i % kHotSubjects], &limit, 1}, {keys[(i + 1) % kHotSubjects], &limit, 1}};
      const auto verdict = limiter.check_all(charges);
      if (!verdict || !verdict->allowed) give_up("a check was denied: distrust the figures");
    }
  });
  Contestant rules = contestant("8 rules, of which 2 match", eight, scale);
  Contestant* all[] = {&one, &inlined, &two, &rules};
  alternate(all, scale.rounds);
  report.begin("Rules beside a limit that needs none, 2,000 users; nanoseconds of a check");
  report.add({one.name(), one.figure(), "ns"});
  report.add({inlined.name(), inlined.figure(), "ns", Rival{one.name(), one.figure()}});
  report.add({two.name(), two.figure(), "ns", Rival{one.name(), one.figure()}});
  report.add({rules.name(), rules.figure(), "ns", Rival{inlined.name(), inlined.figure()}, at_most(2)});
  report.add({rules.name(), rules.figure(), "ns", Rival{one.name(), one.figure()}});
  report.add({rules.name(), rules.figure(), "ns", Rival{two.name(), two.figure()}});
}

// What it costs to know what everybody spent: who comes again soon, who comes seldom, and more than there is room for.
void measure_spending(Report& report, const Scale& scale) {
  report.begin("The accounts of what each user spent, 10,000 of them; nanoseconds of a check");
  const std::string text = std::string("rules:\n- {name: users, per: user, limit: ") + kQuota + "}\n";
  for (const std::size_t users : {std::size_t{500}, std::size_t{9'000}, std::size_t{100'000}}) {
    Subject without(text, 1, users), with(text, 1, users, {.spending = {.subjects = 10'000}});
    Contestant none = contestant(std::to_string(users) + " users, without", without, scale);
    Contestant kept = contestant(std::to_string(users) + " users, with accounts", with, scale);
    Contestant* all[] = {&none, &kept};
    alternate(all, scale.rounds);
    report.add({none.name(), none.figure(), "ns"});
    report.add({kept.name(), kept.figure(), "ns", Rival{none.name(), none.figure()}});
  }
}

struct Latencies {
  double p50 = 0, p99 = 0, p999 = 0;
  std::size_t checks = 0;
};

Latencies measure_for(Gate& gate, Traffic& traffic, std::chrono::seconds time) {
  using Clock = std::chrono::steady_clock;
  std::vector<float> figures;
  figures.reserve(20'000'000);
  const auto end = Clock::now() + time;
  auto before = Clock::now();
  while (before < end) {
    const auto answer = gate.check(traffic.next());
    const auto after = Clock::now();
    if (!answer || !answer->allowed || answer->limits.size() != 1) give_up("a check was lost: distrust the figures");
    if (figures.size() < figures.capacity())
      figures.push_back(std::chrono::duration<float, std::nano>(after - before).count());
    before = after;
  }
  const auto at = [&](double part) {
    const auto place = figures.begin() + static_cast<std::ptrdiff_t>(part * static_cast<double>(figures.size() - 1));
    std::nth_element(figures.begin(), place, figures.end());
    return static_cast<double>(*place);
  };
  return {at(0.5), at(0.99), at(0.999), figures.size()};
}

// The checks on one core, the reading and applying on the other, one after the other without a pause.
void measure_reload(Report& report, const Scale& scale) {
  const std::string text = path_rules(10'000);
  Subject subject(text, 10'000, kSubjects);
  const std::chrono::seconds time{scale.reload_seconds};
  measure_for(subject.gate, subject.traffic, std::chrono::seconds{1});
  const Latencies calm = measure_for(subject.gate, subject.traffic, time);
  std::atomic<bool> stop{false};
  std::atomic<int> reloads{0};
  std::jthread reloader([&] {
    pin_to_core(1);
    while (!stop) {
      if (auto applied = subject.gate.apply(parsed(text)); !applied) give_up(applied.error().message);
      ++reloads;
    }
  });
  const Latencies busy = measure_for(subject.gate, subject.traffic, time);
  stop = true;
  report.begin("Reload of 10,000 rules, again and again, while checks go on; nanoseconds of a check");
  report.add({"p50 while the rules stay", calm.p50, "ns"});
  report.add({"p50 while they are reloaded", busy.p50, "ns", Rival{"p50 while the rules stay", calm.p50}});
  report.add({"p99 while the rules stay", calm.p99, "ns"});
  report.add({"p99 while they are reloaded", busy.p99, "ns", Rival{"p99 while the rules stay", calm.p99}, at_most(2)});
  report.add({"p99.9 while they are reloaded", busy.p999, "ns", Rival{"p99.9 while the rules stay", calm.p999}});
  report.add({"reloads meanwhile", static_cast<double>(reloads), ""});
  report.add({"checks lost", 0, ""});  // the first would have ended the program
}

constexpr Part<Scale> kParts[] = {
    {"paths", measure_paths}, {"eight", measure_eight}, {"spending", measure_spending}, {"reload", measure_reload}};

}  // namespace

int main(int count, char** words) {
  return run_parts<Scale>(count, words, kParts, kQuick, "The machine was busy: the figures mean little.");
}
