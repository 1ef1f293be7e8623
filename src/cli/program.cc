// The command line: the table of commands, and help.
//
// Exit codes: 0 success, 1 failure, 2 invalid command line. Tested by tests/server/cli.sh, policy.sh and state.sh
// there.
#include <sys/resource.h>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/nearest.h"
#include "cli/command.h"
#include "cli/command_tree.h"
#include "cli/table_text.h"

namespace weir::cli {
namespace {

// The help of a command, or of the program: the section of help.txt with this name.
std::string help_of(std::string_view name) {
  const std::string head = '[' + std::string(name) + "]\n";
  const std::size_t begin = help_texts().find(head);
  WEIR_ASSERT(begin != std::string_view::npos);
  const std::string_view text = help_texts().substr(begin + head.size());
  return std::string(text.substr(0, text.find("\n[")));
}

constexpr const Command* kCommands[] = {&kValidateCommand, &kExplainCommand, &kSchemaCommand, &kImportCommand,
                                        &kBenchCommand,    &kStateCommand,   &kCheckCommand,  &kKeysCommand,
                                        &kRulesCommand,    &kNodesCommand,   &kPlanCommand,   &kTopCommand,
                                        &kUsageCommand,    &kDoctorCommand,  &kManualCommand, &kCompletionCommand};

// A command's help begins with its examples, which are the footer in the tree of commands.
class ExamplesFirst final : public CLI::Formatter {
 public:
  std::string make_description(const CLI::App* app) const override {
    const bool is_command = app->get_parent() != nullptr;
    return (is_command ? app->get_footer() : "") + CLI::Formatter::make_description(app);
  }
  std::string make_footer(const CLI::App*) const override { return {}; }
};

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names = {"help"};
  for (const CLI::App* command : commands_of(app)) names.push_back(command->get_name());
  return names;
}

// As the user wrote it, with its subcommands: `weir plan set`.
std::string given_command(const CLI::App& app) {
  const auto given = app.get_subcommands();
  return given.empty() ? app.get_name() : app.get_name() + ' ' + given_command(*given.back());
}

int unknown_command(std::string_view word, const std::vector<std::string>& known) {
  std::string message = "unknown command " + base::in_quotes(word) + ". ";
  const std::string_view meant = base::nearest(word, known);
  if (meant.empty()) {
    message += "See weir --help";
  } else {
    message.append("Did you mean weir ").append(meant).append("?");
  }
  return complain(message, kNotUnderstood);
}

// Fails if the output could not be written, for example to a full disk. Not for `serve`, which continues without
// readers.
int when_written(int exit_code) {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return exit_code;
  const int error = errno != 0 ? errno : EIO;  // an earlier write may have failed and kept the error flag
  return complain("cannot write: " + std::string(std::strerror(error)), kCouldNot);
}

}  // namespace

int complain(std::string_view message, int exit_code) {
  std::fputs(("weir: " + printable_lines(message) + '\n').c_str(), stderr);
  return exit_code;
}

int complain_of_file(const std::string& message) {
  std::fprintf(stderr, "%s\n", message.c_str());
  return kCouldNot;
}

std::size_t ask_for_descriptors(std::size_t wanted) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted) return wanted;
  const rlim_t before = std::exchange(limit.rlim_cur, std::min<rlim_t>(limit.rlim_max, wanted));
  return setrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : before;
}

int run_program(int argc, char** argv, const Command& serve) try {
  const std::string introduction = help_of("weir");
  CLI::App app(introduction, "weir");
  app.formatter(std::make_shared<ExamplesFirst>());
  app.set_version_flag("--version", "weir " WEIR_VERSION);
  app.require_subcommand(1);
  std::vector<std::pair<const CLI::App*, Run>> commands;
  const auto add = [&](const Command& command) {
    CLI::App* const one = app.add_subcommand(command.name, command.about);
    commands.emplace_back(one, command.declare(*one));
    one->footer(help_of(command.name) + '\n');  // after its subcommands, which would inherit it
  };
  add(serve);
  for (const Command* const command : kCommands) add(*command);
  const CLI::App* const version = app.add_subcommand("version", "Print the version");
  app.footer(introduction.substr(introduction.find("\n\n") + 2));

  const std::string_view first = argc < 2 ? "help" : argv[1];
  if (first == "help") {
    std::fputs(app.help().c_str(), stdout);
    return when_written(0);
  }
  const auto known = command_names(app);
  if (!first.starts_with('-') && std::ranges::find(known, first) == known.end()) return unknown_command(first, known);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return when_written(app.exit(error));  // --help and --version
    return complain(std::string(error.what()) + ". See " + given_command(app) + " --help", kNotUnderstood);
  }
  if (*version) {
    std::puts("weir " WEIR_VERSION);
    return when_written(0);
  }
  const auto& [given, run] = *std::ranges::find_if(commands, [](const auto& one) { return one.first->parsed(); });
  const auto done = run();
  if (!done) {
    const bool is_understood = done.error().code != ErrorCode::invalid_argument;
    return complain(done.error().message, is_understood ? kCouldNot : kNotUnderstood);
  }
  return given->get_name() == serve.name ? *done : when_written(*done);
} catch (const std::exception& exception) {
  return complain(exception.what(), kCouldNot);
}

}  // namespace weir::cli
