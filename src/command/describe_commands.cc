// Prints man pages and completion scripts. See describe_commands.h.
#include "command/describe_commands.h"

#include <cstdio>
#include <utility>

#include "command/completion.h"

namespace weir {

const char* const kManualExamples =
    "  weir manual | man -l -                  this program; where it is installed from a package, man weir\n"
    "  weir manual weir.yaml | man -l -        the config\n"
    "\n";
const char* const kCompletionExamples =
    "  source <(weir completion bash)          in this shell, now\n"
    "  weir completion fish > ~/.config/fish/completions/weir.fish\n"
    "\n";

DescribeCommands::DescribeCommands(CLI::App& app, ExamplesOf examples_of, std::string version)
    : program_(&app), examples_of_(std::move(examples_of)), version_(std::move(version)) {
  manual_ = app.add_subcommand("manual", "Print a man page");
  manual_->add_option("PAGE", page_, "Of the program, or of the config")
      ->check(CLI::IsMember({"weir", "weir.yaml"}))
      ->capture_default_str();
  completion_ = app.add_subcommand("completion", "Print what a shell needs to complete our commands and options");
  completion_->add_option("SHELL", shell_, "Which shell")->required()->check(CLI::IsMember({"bash", "zsh", "fish"}));
}

std::optional<int> DescribeCommands::run() const {
  std::string text;
  if (*manual_) {
    text = page_ == "weir" ? program_manual(*program_, examples_of_, version_) : config_manual(version_);
  } else if (*completion_) {
    text = shell_ == "bash"  ? bash_completion(*program_)
           : shell_ == "zsh" ? zsh_completion(*program_)
                             : fish_completion(*program_);
  } else {
    return {};
  }
  std::fputs(text.c_str(), stdout);
  return 0;
}

}  // namespace weir
