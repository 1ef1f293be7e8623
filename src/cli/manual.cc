// `weir manual`: the man pages. What weir.1.roff and weir.yaml.5.roff leave out comes from the tree of commands and
// from keys.yaml, so the pages have exactly the options that exist.
//
// Exit codes: 0 success, 2 invalid command line. One thread. Tested by tests/server/manual.sh.
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <string>
#include <string_view>

#include "base/filled.h"
#include "cli/command.h"
#include "cli/command_tree.h"
#include "weir/policy.h"

namespace weir::cli {
namespace {

struct Escape {
  char character;
  const char* text;
};
constexpr Escape kEscapes[] = {{'\\', "\\e"},  {'-', "\\-"},   {'\'', "\\(aq"},
                               {'`', "\\(ga"}, {'^', "\\(ha"}, {'~', "\\(ti"}};

// Escapes text, so that roff prints it unchanged.
std::string plain(std::string_view text) {
  std::string out;
  bool is_line_start = true;
  for (const char c : text) {
    if (is_line_start && (c == '.' || c == '\'')) out += "\\&";
    const auto* const escape = std::ranges::find(kEscapes, c, &Escape::character);
    out += escape == std::end(kEscapes) ? std::string(1, c) : escape->text;
    is_line_start = c == '\n';
  }
  return out;
}

std::string bold(std::string_view text) { return "\\fB" + plain(text) + "\\fR"; }
std::string slanted(std::string_view text) { return "\\fI" + plain(text) + "\\fR"; }

std::string block(std::string_view text) {
  while (text.ends_with('\n')) text.remove_suffix(1);
  return ".PP\n.EX\n" + plain(text) + "\n.EE\n";
}

std::string item(const std::string& term, std::string_view about) {
  return ".TP\n" + term + "\n" + plain(about) + "\n";
}

std::string option_term(const CLI::Option& option) {
  std::string term;
  if (option.get_positional()) {
    term = slanted(option.get_name(true));
  } else {
    for (const std::string& name : names_of(option)) term += (term.empty() ? "" : ", ") + bold(name);
    if (takes_value(option)) term += " " + slanted(value_name(option));
  }
  return term;
}

std::string option_about(const CLI::Option& option) {
  std::string about = option.get_description();
  if (!about.empty() && !about.ends_with('.')) about += '.';
  if (!option.get_default_str().empty()) about += " The default is " + option.get_default_str() + ".";
  return about;
}

std::string options_text(const CLI::App& command) {
  std::string out;
  for (const CLI::Option* option : options_of(command)) out += item(option_term(*option), option_about(*option));
  return out;
}

std::string full_name(const CLI::App& command) {
  const CLI::App* parent = command.get_parent();
  return parent == nullptr ? command.get_name() : full_name(*parent) + " " + command.get_name();
}

std::string command_text(const CLI::App& command) {
  std::string out = ".SS " + plain(full_name(command)) + "\n" + plain(command.get_description()) + ".\n";
  if (const std::string examples = command.get_footer(); !examples.empty()) out += block(examples);
  out += options_text(command);
  for (const CLI::App* below : commands_of(command)) out += command_text(*below);
  return out;
}

std::string program_manual(const CLI::App& program) {
  std::string commands;
  for (const CLI::App* command : commands_of(program)) commands += command_text(*command);
  return base::filled(program_page(), {{"@VERSION@", WEIR_VERSION},
                                       {"@EXAMPLES@\n", block(program.get_footer())},
                                       {"@OPTIONS@\n", options_text(program)},
                                       {"@COMMANDS@\n", commands}});
}

std::string keys_text(PolicyKey::Place place) {
  std::string out;
  for (const PolicyKey& key : policy_keys()) {
    if (key.place == place) out += item(bold(key.name), key.about);
  }
  return out;
}

std::string config_manual() {
  using enum PolicyKey::Place;
  return base::filled(config_page(), {{"@VERSION@", WEIR_VERSION},
                                      {"@CONFIG@\n", keys_text(config)},
                                      {"@RULE@\n", keys_text(rule)},
                                      {"@MATCH@\n", keys_text(match)},
                                      {"@ANSWERS@\n", keys_text(answers)},
                                      {"@PLANS@\n", keys_text(plans)}});
}

class ManualCommand {
 public:
  explicit ManualCommand(CLI::App& app) : program_(*app.get_parent()) {
    app.add_option("PAGE", page_, "weir: the program; weir.yaml: the format of a config")
        ->check(CLI::IsMember({"weir", "weir.yaml"}))
        ->capture_default_str();
  }
  Result<int> run() const {
    std::fputs((page_ == "weir" ? program_manual(program_) : config_manual()).c_str(), stdout);
    return 0;
  }

 private:
  const CLI::App& program_;
  std::string page_ = "weir";
};

}  // namespace

const Command kManualCommand{"manual", "Print a man page", declare<ManualCommand>};

}  // namespace weir::cli
