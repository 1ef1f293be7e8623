// The flags of `weir serve` for PROXY headers and TCP keep-alive.
//
// Plain values. One thread. Tested by tests/server/proxy_protocol.sh and half_open.sh there.
#pragma once

#include <CLI/CLI.hpp>

#include <cstdint>
#include <string>

#include "server/life/server.h"

namespace weir {

struct PeerFlags {
  std::string proxied{};
  std::string proxies{};
  std::uint64_t keepalive = PeerOptions{}.keepalive;

  void add(CLI::App& app);
  Result<void> fill(ServerOptions& options) const;
};

}  // namespace weir
