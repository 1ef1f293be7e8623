// The tree of CLI11 commands and options, as the man page, the shell completions and the settings file read it. A new
// command appears in all of them automatically.
//
// Pure; any thread. Tested by tests/server/manual.sh.
#pragma once

#include <CLI/CLI.hpp>

#include <string>
#include <vector>

namespace weir::cli {

inline bool is_option_group(const CLI::App& app) { return app.get_name().empty(); }

// The subcommands, except hidden ones.
inline std::vector<const CLI::App*> commands_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App* one) { return !is_option_group(*one) && !one->get_group().empty(); });
}

// The options of a command and of its groups, except hidden ones.
inline std::vector<const CLI::Option*> options_of(const CLI::App& app) {
  auto options = app.get_options([](const CLI::Option* one) { return !one->get_group().empty(); });
  for (const CLI::App* group : app.get_subcommands([](const CLI::App* one) { return is_option_group(*one); })) {
    for (const CLI::Option* option : options_of(*group)) options.push_back(option);
  }
  return options;
}

// As on the command line: -n, --json.
inline std::vector<std::string> names_of(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  return names;
}

inline bool takes_value(const CLI::Option& option) { return option.get_items_expected_max() > 0; }
inline bool may_repeat(const CLI::Option& option) { return option.get_items_expected_max() > 1; }

// The value's placeholder in a help text: FILE, N, or the permitted words: {bash,zsh,fish}.
inline std::string value_name(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const std::size_t brace = type.find('{');
  return brace == type.npos ? type : type.substr(brace);
}

// The words that an option accepts, if it accepts nothing else.
inline std::vector<std::string> words_of(const CLI::Option& option) {
  const std::string name = value_name(option);
  if (!name.starts_with('{') || !name.ends_with('}')) return {};
  return CLI::detail::split(name.substr(1, name.size() - 2), ',');
}

// Whether the value is a file name.
inline bool takes_file(const CLI::Option& option) {
  const std::string name = option.get_positional() ? option.get_name(true) : value_name(option);
  return name.find("FILE") != name.npos || name.find("FOLDER") != name.npos || name.find("DIR") != name.npos;
}

}  // namespace weir::cli
