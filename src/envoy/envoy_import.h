// The files of Envoy's reference service as rules: what `weir import envoy` writes.
//
//   const auto imported = weir::import_envoy(*config);
//   print(to_yaml(imported.policy));
//   for (const std::string& note : imported.notes) warn(note);    // edge.yaml:7:5: ...
//
// Each descriptor with a limit becomes a rule that matches its domain, exactly its entries and their values, but not
// what another descriptor of the same level takes first. What rules cannot say is a note, with its place. Pure; any
// thread. Tested by envoy_import_test.cc, and against the files themselves by tests/server/envoy_import.sh.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "envoy/envoy_config.h"
#include "weir/policy.h"

namespace weir {

struct ImportedEnvoy {
  Policy policy{};
  std::vector<std::string> notes{};  // what the rules do not say, or say otherwise
};

ImportedEnvoy import_envoy(const EnvoyConfig& config);

// What is different on purpose, whatever the files say: lines for people.
std::string_view envoy_differences();

}  // namespace weir
