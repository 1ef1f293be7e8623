// `weir top`: a live view of a running server: rates, rules and top clients.
//
// Keys: `d` and `h` sort by denials or hits, space pauses and continues, `q` quits. Without a terminal, or with
// --once, it prints one screen. Exit codes: 0 quit, 1 no answer from the server. One thread. Tested by
// tests/server/top.sh, in tmux.
#pragma once

#include <CLI/CLI.hpp>

#include <optional>
#include <string>

#include "cli/remote.h"
#include "cli/top_screen.h"

namespace weir {

extern const char* const kTopExamples;

class TopCommand {
 public:
  explicit TopCommand(CLI::App& app);

  // The exit code, if this command was given.
  std::optional<int> run();

 private:
  Result<TopAnswers> ask() const;
  int print_once();
  int live();

  CLI::App* top_ = nullptr;
  Remote server_{"--admin", "127.0.0.1:8082", 2'000};
  TopScreen screen_;
  std::string by_ = "denied";
  double every_ = 1;
  bool once_ = false;
};

}  // namespace weir
