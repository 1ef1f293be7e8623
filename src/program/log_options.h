// What the server tells of itself and how, as flags of `weir serve`.
//
// Plain values. One thread. Tested by tests/server/logs.sh.
#pragma once

#include <CLI/CLI.hpp>

#include <string>

#include "log.h"
#include "server/server.h"

namespace weir {

struct LogOptions {
  LogFormat format = LogFormat::text;
  LogLevel level = LogLevel::info;
  DenialLogOptions denials{};
  std::string traces{};  // where to, empty: nowhere
  double traces_sample = 0;

  void add(CLI::App& app);
  Result<void> fill(ServerOptions& options) const;
};

}  // namespace weir
