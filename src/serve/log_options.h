// The flags of `weir serve` for logs and traces.
//
// Plain values. One thread. Tested by tests/server/logs.sh.
#pragma once

#include <CLI/CLI.hpp>

#include <string>

#include "log/log.h"
#include "server/life/server.h"

namespace weir {

struct LogOptions {
  LogFormat format = LogFormat::text;
  LogLevel level = LogLevel::info;
  DenialLogOptions denials{};
  std::string traces{};  // the collector's URL; empty: none
  double traces_sample = 0;

  void add(CLI::App& app);
  Result<void> fill(ServerOptions& options) const;
};

}  // namespace weir
