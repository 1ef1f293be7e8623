// The flags and help of `weir state`. See state_command.h; state.cc does the work.
#include "cli/state_command.h"

#include <cstdio>

#include "cli/complain.h"

namespace weir {

const char* const kStateExamples =
    "  weir state inspect state.weir                    fill level and limits; also while a server uses it\n"
    "  weir state export state.weir | jq .remaining     a line of JSON for each live key; keys are hashed\n"
    "  weir state resize state.weir --keys 5000000      change the capacity; stop the server first\n"
    "\n";

StateCommand::StateCommand(CLI::App& app) {
  state_ = app.add_subcommand("state", "Inspect a state file, or change its size");
  state_->require_subcommand(1);
  inspect_ = state_->add_subcommand("inspect", "Show the fill level and the limits");
  export_ = state_->add_subcommand("export", "Print a line of JSON for each live key");
  resize_ = state_->add_subcommand("resize", "Change the capacity; stop the server first");
  for (CLI::App* one : {inspect_, export_, resize_}) {
    one->add_option("FILE", file_, "State file")->required();
  }
  resize_->add_option("--keys", size_.keys, "Capacity in live keys")
      ->type_name("N")
      ->check(whole_number_to(1'000'000'000));
  resize_
      ->add_option(
          "--memory", size_.memory_bytes,
          "Size of the whole table; what the keys do not need is for logs of sliding_log and permits in flight")
      ->type_name("BYTES")
      ->check(whole_number_to(kMemoryMax));
}

std::optional<int> StateCommand::run() {
  if (!*state_) return std::nullopt;
  if (*export_) {
    const auto exported = export_state(file_, stdout);
    return exported ? 0 : complain(exported.error().message, kCouldNot);
  }
  const auto text = *inspect_ ? inspect_state(file_) : resize_state(file_, size_);
  if (!text) return complain(text.error().message, kCouldNot);
  std::fputs(text->c_str(), stdout);
  return 0;
}

}  // namespace weir
