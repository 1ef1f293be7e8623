// Scenario files: worked examples that a person reads and a program plays (tests/scenarios/*.txt).
//
//   # Five a minute, and the sixth.          a comment right above a quota is the title of the case
//   fixed_window 5/minute                    algorithm and quota begin a case, with nothing spent
//   0:05   1        -> allow, 4 left         at 0:05 a request of cost 1 passes and leaves 4
//   0:15   4 x 1    -> allow, 0 left         four such requests; all pass, the rest is the answer of the last one
//   0:20   0        -> allow, 0 left         a peek
//          change 10/minute                  from here on; `change token_bucket 10/minute` is another state
//   0:55   9        -> deny, retry 5s, reset 5s
//
//   concurrency 2 concurrent for 30s
//   0:01   acquire a         -> allow, 1 left
//   0:02   acquire b cost 2  -> deny, retry 29s
//   0:03   release a         -> held         or: not held
//
// Times: `0:05`, `:55`, `12:01:30`, `69.999999s`, `2024-03-31 01:30:00Z`; within a case they never run backwards.
// Waits: `5s`, `0.200001s`, `3d 2h 5min`, `never`. Answers: allow or deny first, then any of `limit N`, `N left`,
// `retry W`, `reset W`, `delay W`; what is not stated is not compared.
//
// Parsing knows nothing of engines and playing nothing of text, so that the library, Redis, each protocol and a
// simulator play the same files. Tested by scenario_test.cc.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weir/quota.h"
#include "weir/result.h"
#include "weir/verdict.h"

namespace weir::scenario {

// What a line states of an answer.
struct Expected {
  bool allowed = false;
  std::optional<std::int64_t> limit;
  std::optional<std::int64_t> remaining;
  std::optional<Micros> retry_after;
  std::optional<Micros> reset_after;
  std::optional<Micros> delay;
};

enum class Action : std::uint8_t { check, acquire, release, change };

struct Line {
  int number = 0;  // within the file
  std::string text;
  Action action = Action::check;
  std::int64_t now_us = 0;    // all but change
  std::int64_t requests = 1;  // check
  std::int64_t cost = 1;      // check, acquire
  std::string id;             // acquire, release
  Quota quota;                // change
  Expected expected;          // check, acquire
  bool held = false;          // release
};

struct Scenario {
  std::string file;
  int line = 0;
  std::string title;
  std::string quota_text;  // as written, without the algorithm
  Quota quota;             // names the algorithm
  std::vector<Line> lines;
};

// parse_scenarios()
//
// `name` is the file's, for messages: each begins with `name:line:`.
Result<std::vector<Scenario>> parse_scenarios(std::string_view text, std::string_view name);

// Anything that decides for one key, at the time of each call.
class Engine {
 public:
  virtual ~Engine() = default;
  virtual Result<Decision> check(std::int64_t now_us, std::int64_t cost) = 0;
  virtual Result<Decision> acquire(std::int64_t now_us, std::string_view id, std::int64_t cost) = 0;
  virtual Result<bool> release(std::int64_t now_us, std::string_view id) = 0;
  virtual Result<void> change(const Quota& quota) = 0;
};

struct Failure {
  int line = 0;
  std::string message;  // begins with `file:line:`
};

// One answer of an engine, to compare engines also in what a file does not state.
struct Answer {
  int line = 0;
  Decision decision;  // check, acquire
  bool held = false;  // release
  friend bool operator==(const Answer&, const Answer&) = default;
};

// play()
//
// Asks the engine line by line and reports every answer that is not as stated. An error of the engine ends the case.
std::vector<Failure> play(const Scenario& scenario, Engine& engine, std::vector<Answer>* answers = nullptr);

// The first difference between two engines' answers to one scenario, if there is one.
std::optional<Failure> compare(const Scenario& scenario, const std::vector<Answer>& expected,
                               const std::vector<Answer>& found);

std::string to_string(const Decision& decision);

}  // namespace weir::scenario
