// Explains a decision rule by rule: which rules apply to a request, and why. For people who debug a config.
//
// Plain values, made by Gate::explain(). Tested by tests/gate_test.cc.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "weir/verdict.h"

namespace weir {

// How one rule relates to a request.
struct RuleExplanation {
  std::string rule{};
  bool applies = false;
  std::string reason{};  // why it does not apply, or how it does: enforced, in shadow mode
  std::string key{};     // what the rule would count this request by
  struct State {
    std::string quota{};
    std::string algorithm{};
    std::int64_t cost = 1;
    Decision decision{};           // what it would decide now
    std::string worst_case{};      // the most that the limit can admit
    std::string on_unavailable{};  // the same for a fleet while Redis is unavailable; empty: no fleet
  };
  std::vector<State> limits{};
};

// One of several ways in which HTTP servers read the path. The rules judge each reading on its own, and the request is
// charged for all of them.
struct ReadingExplanation {
  std::string path{};
  std::string outcome{};               // skipped, unlimited by a rule, charged, ...
  std::vector<std::string> charges{};  // `login per user:42`
};

struct Explanation {
  bool allowed = false;
  std::string summary{};  // the reason, in one sentence
  std::string client_ip{};
  std::string path{};                          // as the rules see it
  std::string binding{};                       // `steps: 100/minute`
  std::vector<ReadingExplanation> readings{};  // empty if all HTTP servers read the path in the same way
  std::vector<RuleExplanation> rules{};
};

}  // namespace weir
