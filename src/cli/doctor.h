// Examines a running server: either all is well, or what is wrong and what to do.
//
// Pure: takes a server's answers and facts about this machine, returns findings. One thread. Tested by doctor_test.cc
// and tests/server/doctor.sh.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/json_value.h"
#include "weir/clock.h"
#include "weir/policy.h"

namespace weir {

struct Finding {
  enum class Level : std::uint8_t { fine, warning, failure };
  Level level = Level::fine;
  std::string what{};
  std::string advice{};  // empty if all is well
};

// What is known about the examined server.
struct Patient {
  JsonValue status{}, rules{};   // of /admin/v1/status and /rules
  JsonValue nodes{};             // of /admin/v1/nodes
  std::string metrics{};         // of /metrics
  Policy policy{};               // in effect
  std::string policy_problem{};  // why the config is unknown; empty: it is known
  Micros now{0};                 // since the epoch
  bool is_here = true;           // it runs on this machine; otherwise the next two are unknown
  bool is_clock_kept = true;     // whether NTP or the like sets the clock, as far as this machine knows
  std::string filesystem{};      // of the state file: `ext4`, `tmpfs`; empty: none, or unknown
  std::string version{};         // of this program
};

std::vector<Finding> examine(const Patient& patient);

// The value of a sample without labels; `otherwise` if there is no such sample.
double metric(std::string_view metrics, std::string_view name, double otherwise);

}  // namespace weir
