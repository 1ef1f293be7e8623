// What clients may take, as flags of `weir serve`: each bound has a safe default.
//
// Plain values. One thread. Tested by tests/server/bounds.sh.
#pragma once

#include <CLI/CLI.hpp>

#include <cstdint>

#include "server/server.h"

namespace weir {

struct BoundOptions {
  std::uint64_t connections = ServerOptions{}.connections_max;
  std::uint64_t buffers_mib = ServerOptions{}.buffers_max >> 20;

  void add(CLI::App& app);
  Result<void> fill(ServerOptions& options) const;
};

}  // namespace weir
