// What a careful colleague would look at in a running server, and say: all is well, or what is not and what to do.
//
// Pure: from what a server has answered and what this machine knows, to findings. One thread. Tested by
// doctor_test.cc and tests/server/doctor.sh.
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

// What is known of the server under examination.
struct Patient {
  JsonValue status{}, rules{};   // of /admin/v1/status and /rules
  JsonValue nodes{};             // of /admin/v1/nodes
  std::string metrics{};         // of /metrics
  Policy policy{};               // in force
  std::string policy_problem{};  // why it is not known; empty: it is
  Micros now{0};                 // since the epoch
  bool is_here = true;           // it runs on this machine; if not, nothing is known of the next two
  bool is_clock_kept = true;     // by NTP or the like, as far as this machine knows
  std::string filesystem{};      // that the state file is on: `ext4`, `tmpfs`; empty if there is none or it is unknown
  std::string version{};         // of this program
};

std::vector<Finding> examine(const Patient& patient);

// The value of a sample without labels; `otherwise` if there is none.
double metric(std::string_view metrics, std::string_view name, double otherwise);

}  // namespace weir
