// `weir serve`: builds and runs the limiter, the rules and the server of one process.
//
// Flags are in groups, each with its own file: add() declares them, fill() copies them to the server's options. Exit
// codes: 0 stopped cleanly, 1 failed, or some requests got no answer. Tested by tests/server/*.sh.
#pragma once

#include <CLI/CLI.hpp>

#include "serve/admin_options.h"
#include "serve/bound_options.h"
#include "serve/door_options.h"
#include "serve/life_options.h"
#include "serve/log_options.h"
#include "serve/peer_options.h"
#include "serve/settings_file.h"
#include "serve/store_options.h"
#include "serve/tls_options.h"
#include "serve/usage_options.h"

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
