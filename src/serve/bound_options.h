// The flags of `weir serve` for bounds on clients; each has a safe default.
//
// Plain values. One thread. Tested by tests/server/bounds.sh and bounds_table.sh there.
#pragma once

#include <CLI/CLI.hpp>

#include <cstdint>
#include <string>

#include "server/life/server.h"

namespace weir {

struct BoundOptions {
  std::uint64_t connections = ServerOptions{}.connections_max;
  std::uint64_t buffers_mib = ServerOptions{}.buffers_max >> 20;
  Bounds bounds{};
  std::uint64_t shed_after_ms = static_cast<std::uint64_t>(Bounds{}.shed_after.count()) / 1000;
  std::string on_overload = "deny";

  void add(CLI::App& app);
  Result<void> fill(ServerOptions& options) const;

 private:
  void add_sizes(CLI::App& app);
  void add_times(CLI::App& app);
  void add_grpc(CLI::App& app);
};

}  // namespace weir
