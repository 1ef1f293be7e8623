// `weir check`: asks a running server whether a request may pass, as a service would.
//
// Exit codes: 0 allowed, 1 no answer from the server, 2 invalid command line, 3 denied. One thread. Tested by
// tests/server/commands.sh.
#pragma once

#include <CLI/CLI.hpp>

#include <optional>
#include <string>

#include "cli/remote.h"
#include "cli/request_flags.h"

namespace weir {

extern const char* const kCheckExamples;

class CheckCommand {
 public:
  explicit CheckCommand(CLI::App& app);

  // The exit code, if this command was given.
  std::optional<int> run();

 private:
  Result<std::string> body();

  CLI::App* check_ = nullptr;
  Remote server_{"--http", "127.0.0.1:8080"};
  RequestFlags request_;
  std::string key_, limit_;
  bool peek_ = false, json_ = false;
};

}  // namespace weir
