// Converts the config files of Envoy's reference service to rules, for `weir import envoy`.
//
//   const auto imported = weir::envoy::import_envoy(*config);
//   print(to_yaml(imported.policy));
//   for (const std::string& note : imported.notes) warn(note);    // edge.yaml:7:5: ...
//
// Each descriptor with a limit becomes a rule. The rule matches the domain and exactly the descriptor's entries and
// values, but not what another descriptor of the same level matches first. What rules cannot express becomes a note
// with its position. Pure; any thread may call it. Tested by envoy_import_test.cc, and against the files themselves
// by tests/server/envoy_import.sh.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "envoy/envoy_config.h"
#include "weir/policy.h"

namespace weir::envoy {

struct ImportedEnvoy {
  Policy policy{};
  std::vector<std::string> notes{};  // what the rules leave out, or do differently
};

ImportedEnvoy import_envoy(const EnvoyConfig& config);

// Differences by design, independent of the files, as lines of display text.
std::string_view envoy_differences();

}  // namespace weir::envoy
