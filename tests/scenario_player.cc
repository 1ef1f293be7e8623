// Plays a scenario on an engine and reports, line by line, where the answers differ from those stated.
//
// What a line does not state is only recorded, for compare() between engines. Uses the engine from the calling thread.
// Tested by scenario_test.cc.
#include <algorithm>
#include <string>

#include "scenario.h"

namespace weir::scenario {
namespace {

std::string seconds(Micros wait) {
  if (wait == kNever) return "never";
  const std::string sign = wait.count() < 0 ? "-" : "";
  const std::int64_t us = std::abs(wait.count());
  std::string text = std::to_string(us / 1'000'000);
  if (us % 1'000'000 != 0) {
    text += "." + std::to_string(us % 1'000'000 + 1'000'000).substr(1);
    text.erase(text.find_last_not_of('0') + 1);
  }
  return sign + text + "s";
}

bool matches(const Expected& expected, const Decision& decision) {
  const auto fits = [](const auto& stated, const auto& found) { return !stated || *stated == found; };
  return expected.allowed == decision.allowed && fits(expected.limit, decision.limit) &&
         fits(expected.remaining, decision.remaining) && fits(expected.retry_after, decision.retry_after) &&
         fits(expected.reset_after, decision.reset_after) && fits(expected.delay, decision.delay);
}

class Player {
 public:
  Player(const Scenario& scenario, Engine& engine) : scenario_(scenario), engine_(engine) {}

  std::vector<Failure> play(std::vector<Answer>* answers) {
    for (const Line& line : scenario_.lines) {
      if (auto played = play_line(line); !played) {
        report(line, "the engine failed: " + played.error().message);
        break;
      }
    }
    if (answers != nullptr) *answers = std::move(answers_);
    return std::move(failures_);
  }

 private:
  void report(const Line& line, const std::string& message) {
    failures_.push_back(
        {line.number, scenario_.file + ":" + std::to_string(line.number) + ": " + line.text + "\n    " + message});
  }

  Result<void> play_line(const Line& line) {
    switch (line.action) {
      case Action::change:
        return engine_.change(line.quota);
      case Action::release:
        return play_release(line);
      case Action::acquire:
        return judge(line, engine_.acquire(line.now_us, line.id, line.cost), line.expected);
      case Action::check:
        return play_checks(line);
    }
    return {};
  }

  Result<void> play_release(const Line& line) {
    const auto held = engine_.release(line.now_us, line.id);
    if (!held) return fail(held.error());
    answers_.push_back({line.number, {}, *held});
    if (*held != line.held) report(line, *held ? "answered: held" : "answered: not held");
    return {};
  }

  // Of several requests each must be allowed or denied as stated; the last one's answer is compared in full.
  Result<void> play_checks(const Line& line) {
    Expected verdict_only;
    verdict_only.allowed = line.expected.allowed;
    for (std::int64_t i = 1; i <= line.requests; ++i) {
      const bool last = i == line.requests;
      const std::size_t failures_before = failures_.size();
      auto judged = judge(line, engine_.check(line.now_us, line.cost), last ? line.expected : verdict_only);
      if (!judged) return judged;
      if (failures_.size() > failures_before) {
        if (line.requests > 1) failures_.back().message += " (request " + std::to_string(i) + ")";
        if (!last) return {};
      }
    }
    return {};
  }

  Result<void> judge(const Line& line, const Result<Decision>& decision, const Expected& expected) {
    if (!decision) return fail(decision.error());
    answers_.push_back({line.number, *decision, false});
    if (!matches(expected, *decision)) report(line, "answered: " + to_string(*decision));
    return {};
  }

  const Scenario& scenario_;
  Engine& engine_;
  std::vector<Failure> failures_;
  std::vector<Answer> answers_;
};

std::string describe(const Line& line, const Answer& answer) {
  if (line.action == Action::release) return answer.held ? "held" : "not held";
  return to_string(answer.decision);
}

}  // namespace

std::vector<Failure> play(const Scenario& scenario, Engine& engine, std::vector<Answer>* answers) {
  return Player(scenario, engine).play(answers);
}

std::optional<Failure> compare(const Scenario& scenario, const std::vector<Answer>& expected,
                               const std::vector<Answer>& found) {
  const auto [a, b] = std::mismatch(expected.begin(), expected.end(), found.begin(), found.end());
  if (a == expected.end() && b == found.end()) return {};
  const int number = a != expected.end() ? a->line : b->line;
  const std::string place = scenario.file + ":" + std::to_string(number) + ": ";
  if (a == expected.end() || b == found.end()) return Failure{number, place + "one engine answered, the other did not"};
  const auto line = std::find_if(scenario.lines.begin(), scenario.lines.end(),
                                 [&](const Line& candidate) { return candidate.number == number; });
  return Failure{number, place + line->text + "\n    the one:   " + describe(*line, *a) +
                             "\n    the other: " + describe(*line, *b)};
}

std::string to_string(const Decision& decision) {
  return (decision.allowed ? "allow, " : "deny, ") + std::to_string(decision.remaining) + " left, retry " +
         seconds(decision.retry_after) + ", reset " + seconds(decision.reset_after) + ", delay " +
         seconds(decision.delay) + ", limit " + std::to_string(decision.limit);
}

}  // namespace weir::scenario
