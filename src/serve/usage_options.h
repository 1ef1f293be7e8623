// The flags of `weir serve` for reports on clients: the top keys, and each subject's usage.
//
// Plain values. One thread. Tested by tests/server/metrics.sh and usage.sh there.
#pragma once

#include <CLI/CLI.hpp>

#include <cstddef>
#include <string>

#include "control/usage_keeper.h"
#include "weir/gate.h"

namespace weir {

struct UsageOptions {
  bool hash_keys = false;
  std::size_t subjects = 10'000;
  std::size_t days = 35;

  void add(CLI::App& app);
  GateOptions gate_options() const;
  // Usage is kept beside the state file.
  UsageKeeperOptions keeper_options(const std::string& state) const;
};

}  // namespace weir
