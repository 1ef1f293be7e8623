// Prints man pages and completion scripts. See describe_commands.h.
#include "cli/describe_commands.h"

#include <cstdio>
#include <utility>

#include "cli/completion.h"

namespace weir {

const char* const kManualExamples =
    "  weir manual | man -l -                  show weir(1); with a package installed: man weir\n"
    "  weir manual weir.yaml | man -l -        show weir.yaml(5), the format of a config\n"
    "\n";
const char* const kCompletionExamples =
    "  source <(weir completion bash)          enable completion in this shell\n"
    "  weir completion fish > ~/.config/fish/completions/weir.fish\n"
    "\n";

DescribeCommands::DescribeCommands(CLI::App& app, ExamplesOf examples_of, std::string version)
    : program_(&app), examples_of_(std::move(examples_of)), version_(std::move(version)) {
  manual_ = app.add_subcommand("manual", "Print a man page");
  manual_->add_option("PAGE", page_, "weir: the program; weir.yaml: the format of a config")
      ->check(CLI::IsMember({"weir", "weir.yaml"}))
      ->capture_default_str();
  completion_ = app.add_subcommand("completion", "Print a shell completion script for commands and options");
  completion_->add_option("SHELL", shell_, "Shell that the script is for")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
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
