// What the server tells of itself and how, as flags of `weir serve`.
//
// Plain values. One thread. Tested by tests/server/logs.sh.
#pragma once

#include <CLI/CLI.hpp>

#include "log.h"

namespace weir {

struct LogOptions {
  LogFormat format = LogFormat::text;
  LogLevel level = LogLevel::info;

  void add(CLI::App& app);
};

}  // namespace weir
