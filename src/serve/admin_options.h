// The flags of `weir serve` for administration: the rules' file, the runtime changes, and access to the admin API.
//
// Plain values. One thread. Tested by tests/server/admin.sh and hostile_admin.sh there.
#pragma once

#include <CLI/CLI.hpp>

#include <string>
#include <vector>

#include "control/control.h"
#include "server/life/server.h"

namespace weir {

struct AdminOptions {
  std::string config{};
  std::string envoy{};
  std::string envoy_algorithm = "fixed_window";
  bool envoy_count_denied = false;
  bool force = false;
  bool no_watch = false;
  std::string changes{};
  std::string token_file{};
  std::vector<std::string> hosts{};

  void add(CLI::App& app);
  // Call it after the listeners' flags.
  Result<void> fill(ServerOptions& options) const;
  // `state` is the state file; changes are kept beside it unless --changes is given. Empty: no state file.
  ControlOptions control(const std::string& state, bool is_of_fleet) const;
};

}  // namespace weir
