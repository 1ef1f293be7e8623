// What the rules of a policy have to do with a request, rule by rule: for people who wonder why.
//
// Plain values, made by Gate::explain(). Tested by tests/gate_test.cc.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "weir/verdict.h"

namespace weir {

// What one rule has to do with a request.
struct RuleExplanation {
  std::string rule{};
  bool applies = false;
  std::string reason{};  // why it does not apply, or how it does: enforced, in shadow
  std::string key{};     // what it would count the request by
  struct State {
    std::string quota{};
    std::string algorithm{};
    std::int64_t cost = 1;
    Decision decision{};       // what it would say now
    std::string worst_case{};  // the most that it can admit
    std::string when_away{};   // the same of a fleet, while Redis cannot be asked; empty: it shares with nobody
  };
  std::vector<State> limits{};
};

// One of several paths that servers read in the request's target: each is judged by itself, and all of it is charged.
struct ReadingExplanation {
  std::string path{};
  std::string outcome{};               // skipped, unlimited by a rule, charged, ...
  std::vector<std::string> charges{};  // `login per user "bob"`
};

struct Explanation {
  bool allowed = false;
  std::string summary{};  // why, in one sentence
  std::string client_ip{};
  std::string path{};                          // as rules see it
  std::string binding{};                       // `steps: 100/minute`
  std::vector<ReadingExplanation> readings{};  // empty if all servers read the path alike
  std::vector<RuleExplanation> rules{};
};

}  // namespace weir
