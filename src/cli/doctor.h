// Examines a running server: either all is well, or what is wrong and what to do.
//
// Pure: takes a server's answers and facts about this machine, returns findings. One thread. Tested by doctor_test.cc,
// doctor_store_test.cc and tests/server/doctor.sh.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "protocol/json_reader.h"
#include "weir/clock.h"
#include "weir/policy.h"

namespace weir::cli {

struct Finding {
  enum class Level : std::uint8_t { fine, warning, failure };
  Level level = Level::fine;
  std::string what{};
  std::string advice{};  // empty if all is well
};

using Findings = std::vector<Finding>;

inline void fine(Findings& out, std::string what) { out.push_back({Finding::Level::fine, std::move(what), {}}); }
inline void warn(Findings& out, std::string what, std::string advice) {
  out.push_back({Finding::Level::warning, std::move(what), std::move(advice)});
}
inline void bad(Findings& out, std::string what, std::string advice) {
  out.push_back({Finding::Level::failure, std::move(what), std::move(advice)});
}

// What is known about the examined server.
struct Patient {
  protocol::JsonValue status{}, rules{};  // of /admin/v1/status and /rules
  protocol::JsonValue nodes{};            // of /admin/v1/nodes
  std::string metrics{};                  // of /metrics
  Policy policy{};                        // in effect
  std::string policy_problem{};           // why the config is unknown; empty: it is known
  Micros now{0};                          // since the epoch
  bool is_here = true;                    // it runs on this machine; otherwise the next two are unknown
  bool is_clock_kept = true;              // whether NTP or the like sets the clock, as far as this machine knows
  std::string filesystem{};               // of the state file: `ext4`, `tmpfs`; empty: none, or unknown
  std::string version{};                  // of this program
};

Findings examine(const Patient& patient);

// The value of a sample without labels; `otherwise` if there is no such sample.
double metric(std::string_view metrics, std::string_view name, double otherwise);

// The part that examines the Redis that a server shares with others.
void look_at_store(const Patient& patient, Findings& out);

// A vulnerability of this version that any user with script permission could exploit; empty if none is known.
std::string_view known_vulnerability(std::string_view software, std::string_view version);

}  // namespace weir::cli
