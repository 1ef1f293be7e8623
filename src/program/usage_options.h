// What is told of the clients that are met most, as flags of `weir serve`.
//
// Plain values. One thread. Tested by tests/server/metrics.sh.
#pragma once

#include <CLI/CLI.hpp>

#include "weir/gate.h"

namespace weir {

struct UsageOptions {
  bool hash_keys = false;

  void add(CLI::App& app);
  GateOptions gate_options() const;
};

}  // namespace weir
