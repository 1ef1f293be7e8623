// `weir usage`: a subject's usage by rule and day, or the subjects with the most usage, from a running server.
//
// Exit codes: 0 success, 1 failure, 2 invalid command line. One thread. Tested by tests/server/usage.sh.
#pragma once

#include <CLI/CLI.hpp>

#include <cstdint>
#include <optional>
#include <string>

#include "cli/remote.h"

namespace weir {

extern const char* const kUsageExamples;

class UsageCommand {
 public:
  explicit UsageCommand(CLI::App& app);

  // The exit code, if this command was given.
  std::optional<int> run();

 private:
  CLI::App* usage_ = nullptr;
  Remote server_{"--admin", "127.0.0.1:8082"};
  std::string subject_, rule_, from_, to_;
  std::uint64_t days_ = 30, top_ = 20;
  bool csv_ = false;
};

}  // namespace weir
