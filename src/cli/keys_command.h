// `weir keys`: manages single keys of a running server: explain, reset, ban, and list the top keys.
//
// Exit codes: 0 success, 1 failure, 2 invalid command line. One thread. Tested by tests/server/commands.sh.
#pragma once

#include <CLI/CLI.hpp>

#include <cstdint>
#include <optional>
#include <string>

#include "cli/remote.h"
#include "cli/request_flags.h"

namespace weir {

extern const char* const kKeysExamples;

class KeysCommand {
 public:
  explicit KeysCommand(CLI::App& app);

  // The exit code, if this command was given.
  std::optional<int> run();

 private:
  // Each prints its result and returns the exit code.
  Result<int> explain();
  Result<int> reset();
  Result<int> ban();
  Result<int> top();
  // A JSON object with the request's flags and further members, given as text: `,"rule":"login"`.
  Result<std::string> body(std::string further);

  CLI::App *keys_ = nullptr, *explain_ = nullptr, *reset_ = nullptr, *ban_ = nullptr, *top_ = nullptr;
  Remote server_{"--admin", "127.0.0.1:8082"};
  RequestFlags request_;
  std::string rule_, for_ = "1h", reason_, by_ = "denied", of_rule_;
  std::uint64_t count_ = 20;
  bool force_ = false;
};

}  // namespace weir
