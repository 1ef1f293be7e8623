// `weir rules`: shows the rules of a running server and their counts, and makes runtime changes.
//
// Exit codes: 0 success, 1 failure, 2 invalid command line. One thread. Tested by tests/server/commands.sh.
#pragma once

#include <CLI/CLI.hpp>

#include <cstdint>
#include <optional>
#include <string>

#include "cli/remote.h"

namespace weir {

extern const char* const kRulesExamples;

class RulesCommand {
 public:
  explicit RulesCommand(CLI::App& app);

  // The exit code, if this command was given.
  std::optional<int> run();

 private:
  // Each prints its result and returns the exit code.
  Result<int> list();
  Result<int> show();
  Result<int> changes();
  Result<int> apply();
  // Posts a JSON object with the reason and the duration added, and prints the result.
  Result<int> turn(const char* target, std::string members);

  CLI::App *rules_ = nullptr, *list_ = nullptr, *show_ = nullptr, *mode_ = nullptr, *kill_ = nullptr, *apply_ = nullptr,
           *undo_ = nullptr, *changes_ = nullptr, *reload_ = nullptr;
  Remote server_{"--admin", "127.0.0.1:8082"};
  std::string rule_, to_, for_, reason_, file_;
  std::uint64_t id_ = 0, count_ = 20;
  bool force_ = false;
};

}  // namespace weir
