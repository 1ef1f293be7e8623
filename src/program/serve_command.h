// `weir serve`: builds and runs the limiter, the rules and the server of one process.
//
// Flags are in groups, each with its own file: add() declares them, fill() copies them to the server's options. Exit
// codes: 0 stopped cleanly, 1 failed, or some requests got no answer. Tested by tests/server/*.sh.
#pragma once

#include <CLI/CLI.hpp>

#include "program/admin_options.h"
#include "program/bound_options.h"
#include "program/door_options.h"
#include "program/life_options.h"
#include "program/log_options.h"
#include "program/peer_options.h"
#include "program/settings_file.h"
#include "program/store_options.h"
#include "program/tls_options.h"
#include "program/usage_options.h"

namespace weir {

extern const char* const kServeExamples;

class ServeCommand {
 public:
  explicit ServeCommand(CLI::App& app);

  // Returns the exit code.
  int run();

 private:
  Result<ServerOptions> server_options() const;

  CLI::App* serve_ = nullptr;
  DoorOptions doors_;
  StoreFlags store_;
  BoundOptions bounds_;
  LogOptions log_;
  LifeOptions life_;
  TlsFlags tls_;
  PeerFlags peers_;
  SettingsFile settings_;
  UsageOptions usage_;
  AdminOptions admin_;
};

}  // namespace weir
