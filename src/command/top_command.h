// `weir top`: a running server, live in the terminal: rates, rules, and who is busiest.
//
// Keys: `d` and `h` order by denials or hits, space stops and goes on, `q` leaves. Without a terminal, or with
// --once, one screen is printed. Exit codes: 0 left, 1 the server cannot be asked. One thread. Tested by
// tests/server/top.sh, in tmux.
#pragma once

#include <CLI/CLI.hpp>

#include <optional>
#include <string>

#include "command/remote.h"
#include "command/top_screen.h"

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
