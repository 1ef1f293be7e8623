// `weir nodes`: lists the servers of a fleet, and their Redis.
//
// Exit codes: 0 success, 1 failure, 2 invalid command line. One thread. Tested by tests/server/fleet_admin.sh.
#pragma once

#include <CLI/CLI.hpp>

#include <optional>

#include "cli/remote.h"

namespace weir {

extern const char* const kNodesExamples;

class NodesCommand {
 public:
  explicit NodesCommand(CLI::App& app);

  // The exit code, if this command was given.
  std::optional<int> run();

 private:
  CLI::App* nodes_ = nullptr;
  Remote server_{"--admin", "127.0.0.1:8082"};
};

}  // namespace weir
