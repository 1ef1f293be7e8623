// `weir completion`: completion scripts for bash, zsh and fish, from the tree of commands.
//
// Exit codes: 0 success, 2 invalid command line. One thread. Tested by tests/server/completion.sh, which asks bash
// itself.
#include <CLI/CLI.hpp>

#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "base/filled.h"
#include "cli/command.h"
#include "cli/command_tree.h"

namespace weir::cli {
namespace {

// The words of a command, such as {"state", "inspect"}; none for the program.
std::vector<std::string> words_to(const CLI::App& command) {
  if (command.get_parent() == nullptr) return {};
  auto words = words_to(*command.get_parent());
  words.push_back(command.get_name());
  return words;
}

// The command and all below it, each before its subcommands.
std::vector<const CLI::App*> places_of(const CLI::App& command) {
  std::vector<const CLI::App*> out = {&command};
  for (const CLI::App* below : commands_of(command)) {
    for (const CLI::App* place : places_of(*below)) out.push_back(place);
  }
  return out;
}

std::string join(const std::vector<std::string>& words, std::string_view between) {
  std::string out;
  for (const std::string& word : words) out.append(out.empty() ? "" : between).append(word);
  return out;
}

// Quotes a word of the script for bash and zsh.
std::string in_shell_quotes(std::string_view text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'') out += "'\\'";
    out += c;
  }
  return out + "'";
}

// The first positional argument of a command; null if it has none.
const CLI::Option* positional_of(const CLI::App& command) {
  for (const CLI::Option* option : options_of(command)) {
    if (option->get_positional()) return option;
  }
  return nullptr;
}

std::string bash_name(const CLI::App& place) { return in_shell_quotes(join(words_to(place), " ")); }

// The completions after an option with a value: files, fixed words, or none.
std::string bash_values(const CLI::App& place) {
  std::string out;
  for (const CLI::Option* option : options_of(place)) {
    if (option->get_positional() || !takes_value(*option)) continue;
    for (const std::string& name : names_of(*option)) {
      const auto words = words_of(*option);
      const std::string_view kind = takes_file(*option) ? "files" : words.empty() ? "anything" : "words";
      out += "    " + in_shell_quotes(join(words_to(place), " ") + " " + name) + ") _weir_" + std::string(kind) +
             (words.empty() ? "" : " " + in_shell_quotes(join(words, " "))) + "; return ;;\n";
    }
  }
  return out;
}

// The completions at a place: subcommands and options, or files if an argument is a file.
std::string bash_next(const CLI::App& place) {
  std::vector<std::string> words;
  for (const CLI::App* below : commands_of(place)) words.push_back(below->get_name());
  const CLI::Option* positional = positional_of(place);
  if (positional != nullptr) {
    for (const std::string& word : words_of(*positional)) words.push_back(word);
  }
  std::vector<std::string> options;
  for (const CLI::Option* option : options_of(place)) {
    if (option->get_positional()) continue;
    for (const std::string& name : names_of(*option)) options.push_back(name);
  }
  std::string out = "    " + bash_name(place) + ")\n      if [[ $cur == -* ]]; then _weir_words " +
                    in_shell_quotes(join(options, " ")) + "\n";
  if (positional != nullptr && takes_file(*positional)) {
    out += "      else _weir_files\n";
  } else if (!words.empty()) {
    out += "      else _weir_words " + in_shell_quotes(join(words, " ")) + "\n";
  } else {
    out += "      else _weir_words " + in_shell_quotes(join(options, " ")) + "\n";
  }
  return out + "      fi ;;\n";
}

std::string in_zsh_brackets(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

std::string zsh_function(const CLI::App& place) {
  return place.get_parent() == nullptr ? "_weir" : "_weir_" + join(words_to(place), "_");
}

// The value of an option or positional argument: `:FILE:_files`.
std::string zsh_value(const CLI::Option& option) {
  const auto words = words_of(option);
  const std::string name = option.get_positional() ? option.get_name(true) : value_name(option);
  std::string out = ":" + in_zsh_brackets(words.empty() ? name : "WORD") + ":";
  if (takes_file(option)) out += "_files";
  if (!words.empty()) out += "(" + join(words, " ") + ")";
  return out;
}

std::string zsh_text(const CLI::App& place) {
  std::string out = zsh_function(place) + "() {\n";
  const auto below = commands_of(place);
  if (!below.empty()) out += "  local context state state_descr line\n  typeset -A opt_args\n";
  out += "  _arguments -s -S";
  if (!below.empty()) out += " -C";
  for (const CLI::Option* option : options_of(place)) {
    if (option->get_positional()) {
      out += " \\\n    " + in_shell_quotes(zsh_value(*option));
      continue;
    }
    for (const std::string& name : names_of(*option)) {
      const bool is_long = name.starts_with("--");
      std::string spec = (may_repeat(*option) ? "*" : "") + name + (takes_value(*option) && is_long ? "=" : "");
      spec += "[" + in_zsh_brackets(option->get_description()) + "]";
      if (takes_value(*option)) spec += zsh_value(*option);
      out += " \\\n    " + in_shell_quotes(spec);
    }
  }
  if (below.empty()) return out + "\n}\n\n";
  out +=
      " \\\n    '1: :->command' \\\n    '*:: :->argument'\n  case $state in\n    command)\n      local -a commands\n";
  out += "      commands=(\n";
  std::string calls;
  for (const CLI::App* one : below) {
    std::string about = one->get_description();
    out += "        " + in_shell_quotes(one->get_name() + ":" + about) + "\n";
    calls += "        " + one->get_name() + ") " + zsh_function(*one) + " ;;\n";
  }
  return out + "      )\n      _describe command commands ;;\n    argument)\n      case $line[1] in\n" + calls +
         "      esac ;;\n  esac\n}\n\n";
}

std::string in_fish_quotes(std::string_view text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') out += '\\';
    out += c;
  }
  return out + "'";
}

// True when the words of a place are typed, and none of its subcommands.
std::string fish_condition(const CLI::App& place) {
  std::string out;
  for (const std::string& word : words_to(place)) out += "__fish_seen_subcommand_from " + word + "; and ";
  std::vector<std::string> below;
  for (const CLI::App* one : commands_of(place)) below.push_back(one->get_name());
  if (!below.empty()) return out + "not __fish_seen_subcommand_from " + join(below, " ");
  out.resize(out.size() - std::string_view("; and ").size());
  return out;
}

std::string fish_value(const CLI::Option& option) {
  if (takes_file(option)) return " -r -F";
  const auto words = words_of(option);
  return words.empty() ? " -x" : " -x -a " + in_fish_quotes(join(words, " "));
}

std::string fish_text(const CLI::App& place) {
  const std::string begin = "complete -c weir -n " + in_fish_quotes(fish_condition(place));
  std::string out;
  for (const CLI::App* below : commands_of(place)) {
    out += begin + " -a " + below->get_name() + " -d " + in_fish_quotes(below->get_description()) + "\n";
  }
  for (const CLI::Option* option : options_of(place)) {
    if (option->get_positional()) {
      const auto words = words_of(*option);
      if (takes_file(*option)) out += begin + " -F\n";
      if (!words.empty()) out += begin + " -a " + in_fish_quotes(join(words, " ")) + "\n";
      continue;
    }
    out += begin;
    for (const std::string& name : option->get_snames()) out += " -s " + name;
    for (const std::string& name : option->get_lnames()) out += " -l " + name;
    if (takes_value(*option)) out += fish_value(*option);
    out += " -d " + in_fish_quotes(option->get_description()) + "\n";
  }
  return out;
}

std::string bash_completion(const CLI::App& program) {
  std::string commands, values, next;
  for (const CLI::App* place : places_of(program)) {
    if (place != &program) commands += (commands.empty() ? "" : " | ") + bash_name(*place);
    values += bash_values(*place);
    next += bash_next(*place);
  }
  return base::filled(bash_script(), {{"@COMMANDS@", commands}, {"@VALUES@\n", values}, {"@NEXT@\n", next}});
}

std::string zsh_completion(const CLI::App& program) {
  std::string out =
      "#compdef weir\n# Completes the commands and options of weir(1) in zsh. Generated by `weir completion zsh`.\n\n";
  for (const CLI::App* place : places_of(program)) out += zsh_text(*place);
  return out + "if [[ $funcstack[1] == _weir ]]; then _weir \"$@\"; else compdef _weir weir; fi\n";
}

std::string fish_completion(const CLI::App& program) {
  std::string out =
      "# Completes the commands and options of weir(1) in fish. Generated by `weir completion fish`.\ncomplete -c weir "
      "-f\n";
  for (const CLI::App* place : places_of(program)) out += fish_text(*place);
  return out;
}

class CompletionCommand {
 public:
  explicit CompletionCommand(CLI::App& app) : program_(*app.get_parent()) {
    app.add_option("SHELL", shell_, "Shell that the script is for")
        ->required()
        ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  }
  Result<int> run() const {
    const auto script = shell_ == "bash" ? bash_completion : shell_ == "zsh" ? zsh_completion : fish_completion;
    std::fputs(script(program_).c_str(), stdout);
    return 0;
  }

 private:
  const CLI::App& program_;
  std::string shell_;
};

}  // namespace

const Command kCompletionCommand{"completion", "Print a shell completion script for commands and options",
                                 declare<CompletionCommand>};

}  // namespace weir::cli
