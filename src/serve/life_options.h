// The flags of `weir serve` for shutdown and upgrade.
//
// Plain values. One thread. Tested by tests/server/cli.sh and drain.sh there.
#pragma once

#include <CLI/CLI.hpp>

#include <string>

#include "server/life/server.h"

namespace weir {

struct LifeOptions {
  std::string drain_delay = "2s";
  std::string drain_max = "10s";
  std::string upgrade_max = "30s";

  void add(CLI::App& app);
  Result<void> fill(ServerOptions& options) const;
};

}  // namespace weir
