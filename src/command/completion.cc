// Writes the completion scripts of three shells. See completion.h.
#include "command/completion.h"

#include <string_view>
#include <vector>

#include "command/command_tree.h"

namespace weir {
namespace {

// A command and its words: {"state", "inspect"}.
struct Place {
  const CLI::App* command;
  std::vector<std::string> words;
};

void collect(const CLI::App& command, const std::vector<std::string>& words, std::vector<Place>& out) {
  out.push_back({&command, words});
  for (const CLI::App* below : commands_of(command)) {
    auto longer = words;
    longer.push_back(below->get_name());
    collect(*below, longer, out);
  }
}

// All commands, each before its subcommands; the program is first.
std::vector<Place> places_of(const CLI::App& program) {
  std::vector<Place> out;
  collect(program, {}, out);
  return out;
}

std::string joined(const std::vector<std::string>& words, std::string_view between) {
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

std::vector<std::string> names_of(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  return names;
}

// Its first positional argument, if it has one.
const CLI::Option* positional_of(const CLI::App& command) {
  for (const CLI::Option* option : options_of(command)) {
    if (option->get_positional()) return option;
  }
  return nullptr;
}

std::string bash_name(const Place& place) { return in_shell_quotes(joined(place.words, " ")); }

// The completions after an option with a value: files, fixed words, or none.
std::string bash_values(const Place& place) {
  std::string out;
  for (const CLI::Option* option : options_of(*place.command)) {
    if (option->get_positional() || !takes_value(*option)) continue;
    for (const std::string& name : names_of(*option)) {
      const auto words = words_of(*option);
      const std::string_view kind = takes_file(*option) ? "files" : words.empty() ? "anything" : "words";
      out += "    " + in_shell_quotes(joined(place.words, " ") + " " + name) + ") _weir_" + std::string(kind) +
             (words.empty() ? "" : " " + in_shell_quotes(joined(words, " "))) + "; return ;;\n";
    }
  }
  return out;
}

// The completions at a place: subcommands and options, or files if an argument is a file.
std::string bash_next(const Place& place) {
  std::vector<std::string> words;
  for (const CLI::App* below : commands_of(*place.command)) words.push_back(below->get_name());
  const CLI::Option* positional = positional_of(*place.command);
  if (positional != nullptr) {
    for (const std::string& word : words_of(*positional)) words.push_back(word);
  }
  std::vector<std::string> options;
  for (const CLI::Option* option : options_of(*place.command)) {
    if (option->get_positional()) continue;
    for (const std::string& name : names_of(*option)) options.push_back(name);
  }
  std::string out = "    " + bash_name(place) + ")\n      if [[ $cur == -* ]]; then _weir_words " +
                    in_shell_quotes(joined(options, " ")) + "\n";
  if (positional != nullptr && takes_file(*positional)) {
    out += "      else _weir_files\n";
  } else if (!words.empty()) {
    out += "      else _weir_words " + in_shell_quotes(joined(words, " ")) + "\n";
  } else {
    out += "      else _weir_words " + in_shell_quotes(joined(options, " ")) + "\n";
  }
  return out + "      fi ;;\n";
}

constexpr const char* kBashHead =
    R"(# Completes the commands and options of weir(1) in bash. Made by `weir completion bash`.
_weir_words() { mapfile -t COMPREPLY < <(compgen -W "$1" -- "$cur"); }
_weir_files() {
  compopt -o filenames 2>/dev/null
  mapfile -t COMPREPLY < <(compgen -f -- "$cur")
}
_weir_anything() { COMPREPLY=(); }

_weir() {
  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} place='' i
  COMPREPLY=()
  # bash may take --option=value for three words.
  if [[ $cur == = ]]; then
    cur=''
  elif [[ $prev == = ]]; then
    prev=${COMP_WORDS[COMP_CWORD - 2]}
  fi
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "${place:+$place }${COMP_WORDS[i]}" in
)";

std::string in_zsh_brackets(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

std::string zsh_function(const Place& place) {
  return place.words.empty() ? "_weir" : "_weir_" + joined(place.words, "_");
}

// The value of an option or positional argument: `:FILE:_files`.
std::string zsh_value(const CLI::Option& option) {
  const auto words = words_of(option);
  const std::string name = option.get_positional() ? option.get_name(true) : value_name(option);
  std::string out = ":" + in_zsh_brackets(words.empty() ? name : "WORD") + ":";
  if (takes_file(option)) out += "_files";
  if (!words.empty()) out += "(" + joined(words, " ") + ")";
  return out;
}

std::string zsh_text(const Place& place) {
  std::string out = zsh_function(place) + "() {\n";
  const auto below = commands_of(*place.command);
  if (!below.empty()) out += "  local context state state_descr line\n  typeset -A opt_args\n";
  out += "  _arguments -s -S";
  if (!below.empty()) out += " -C";
  for (const CLI::Option* option : options_of(*place.command)) {
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
    auto words = place.words;
    words.push_back(one->get_name());
    calls += "        " + one->get_name() + ") " + zsh_function({one, words}) + " ;;\n";
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
std::string fish_condition(const Place& place) {
  std::string out;
  for (const std::string& word : place.words) out += "__fish_seen_subcommand_from " + word + "; and ";
  std::vector<std::string> below;
  for (const CLI::App* one : commands_of(*place.command)) below.push_back(one->get_name());
  if (!below.empty()) return out + "not __fish_seen_subcommand_from " + joined(below, " ");
  out.resize(out.size() - std::string_view("; and ").size());
  return out;
}

std::string fish_value(const CLI::Option& option) {
  if (takes_file(option)) return " -r -F";
  const auto words = words_of(option);
  return words.empty() ? " -x" : " -x -a " + in_fish_quotes(joined(words, " "));
}

std::string fish_text(const Place& place) {
  const std::string begin = "complete -c weir -n " + in_fish_quotes(fish_condition(place));
  std::string out;
  for (const CLI::App* below : commands_of(*place.command)) {
    out += begin + " -a " + below->get_name() + " -d " + in_fish_quotes(below->get_description()) + "\n";
  }
  for (const CLI::Option* option : options_of(*place.command)) {
    if (option->get_positional()) {
      const auto words = words_of(*option);
      if (takes_file(*option)) out += begin + " -F\n";
      if (!words.empty()) out += begin + " -a " + in_fish_quotes(joined(words, " ")) + "\n";
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

}  // namespace

std::string bash_completion(const CLI::App& program) {
  std::string commands, values, next;
  for (const Place& place : places_of(program)) {
    if (!place.words.empty()) commands += (commands.empty() ? "" : " | ") + bash_name(place);
    values += bash_values(place);
    next += bash_next(place);
  }
  return kBashHead + ("      " + commands) + ") place=${place:+$place }${COMP_WORDS[i]} ;;\n    esac\n  done\n" +
         "  case \"$place $prev\" in\n" + values + "  esac\n  case $place in\n" + next +
         "  esac\n}\ncomplete -F _weir weir\n";
}

std::string zsh_completion(const CLI::App& program) {
  std::string out =
      "#compdef weir\n# Completes the commands and options of weir(1) in zsh. Made by `weir completion zsh`.\n\n";
  for (const Place& place : places_of(program)) out += zsh_text(place);
  return out + "if [[ $funcstack[1] == _weir ]]; then _weir \"$@\"; else compdef _weir weir; fi\n";
}

std::string fish_completion(const CLI::App& program) {
  std::string out =
      "# Completes the commands and options of weir(1) in fish. Made by `weir completion fish`.\ncomplete -c weir -f\n";
  for (const Place& place : places_of(program)) out += fish_text(place);
  return out;
}

}  // namespace weir
