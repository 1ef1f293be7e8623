// `weir serve`: the limiter, the rules and the server of one process, from the flags until the last answer.
//
// Flags stand in groups, each with a file of its own: add() names them, fill() puts them where the server wants them.
// Exit codes: 0 stopped in peace, 1 it could not be done or not all was answered. Tested by tests/server/*.sh.
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

  // The exit code.
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
