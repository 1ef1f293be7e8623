// `weir state`: inspects a state file, or changes its size.
//
// Exit codes: 0 success, 1 failure. One thread. Tested by tests/server/state.sh.
#include <CLI/CLI.hpp>

#include <cstdio>
#include <string>

#include "cli/command.h"
#include "cli/flags.h"
#include "limiter/state.h"

namespace weir::cli {
namespace {

class StateCommand {
 public:
  explicit StateCommand(CLI::App& app);

  Result<int> run();

 private:
  CLI::App* inspect_ = nullptr;
  CLI::App* export_ = nullptr;
  CLI::App* resize_ = nullptr;
  std::string file_;
  limiter::StateSize size_;
};

StateCommand::StateCommand(CLI::App& app) {
  app.require_subcommand(1);
  inspect_ = app.add_subcommand("inspect", "Show the fill level and the limits");
  export_ = app.add_subcommand("export", "Print a line of JSON for each live key");
  resize_ = app.add_subcommand("resize", "Change the capacity; stop the server first");
  for (CLI::App* one : {inspect_, export_, resize_}) {
    one->add_option("FILE", file_, "State file")->required();
  }
  number_flag(*resize_, "--keys", size_.keys, {1, 1'000'000'000}, "N", "Capacity in live keys");
  number_flag(*resize_, "--memory", size_.memory_bytes, {1, kMemoryMax}, "BYTES",
              "Size of the whole table; what the keys do not need is for logs of sliding_log and permits in flight");
}

Result<int> StateCommand::run() {
  if (*export_) {
    const auto exported = limiter::export_state(file_, stdout);
    return exported ? 0 : complain(exported.error().message, kCouldNot);
  }
  const auto text = *inspect_ ? limiter::inspect_state(file_) : limiter::resize_state(file_, size_);
  if (!text) return complain(text.error().message, kCouldNot);
  std::fputs(text->c_str(), stdout);
  return 0;
}

}  // namespace

const Command kStateCommand{"state", "Inspect a state file, or change its size", declare<StateCommand>};

}  // namespace weir::cli
