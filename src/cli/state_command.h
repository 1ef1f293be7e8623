// `weir state`: inspects a state file, or changes its size.
//
// Exit codes: 0 success, 1 failure. One thread. Tested by tests/server/state.sh.
#pragma once

#include <CLI/CLI.hpp>

#include <optional>
#include <string>

#include "limiter/state.h"

namespace weir {

extern const char* const kStateExamples;

class StateCommand {
 public:
  explicit StateCommand(CLI::App& app);

  // The exit code, if this command was given.
  std::optional<int> run();

 private:
  CLI::App* state_ = nullptr;
  CLI::App* inspect_ = nullptr;
  CLI::App* export_ = nullptr;
  CLI::App* resize_ = nullptr;
  std::string file_;
  StateSize size_;
};

}  // namespace weir
