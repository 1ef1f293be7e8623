// The flags of `weir serve` for TLS: its files, and the listeners that use it.
//
// Plain values. One thread. Tested by tests/server/tls.sh.
#pragma once

#include <CLI/CLI.hpp>

#include <string>

#include "server/life/server.h"

namespace weir {

struct TlsFlags {
  std::string certificate{};
  std::string key{};
  std::string client_ca{};
  std::string doors{};

  void add(CLI::App& app);
  // Call it after the listeners' flags.
  Result<void> fill(ServerOptions& options) const;
};

}  // namespace weir
