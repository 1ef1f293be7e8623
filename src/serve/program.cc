// The command line: selects a command from src/serve and src/cli, and prints help.
//
// Exit codes: 0 success, 1 failure, 2 invalid command line. Tested by tests/server/cli.sh, policy.sh and state.sh
// there.
#include "serve/program.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/nearest.h"
#include "cli/bench_command.h"
#include "cli/check_command.h"
#include "cli/command_tree.h"
#include "cli/complain.h"
#include "cli/describe_commands.h"
#include "cli/doctor_command.h"
#include "cli/import_command.h"
#include "cli/keys_command.h"
#include "cli/nodes_command.h"
#include "cli/plan_command.h"
#include "cli/policy_commands.h"
#include "cli/rules_command.h"
#include "cli/state_command.h"
#include "cli/top_command.h"
#include "cli/usage_command.h"
#include "serve/serve_command.h"

#ifndef WEIR_VERSION
#define WEIR_VERSION "0.0.0"
#endif

namespace weir {
namespace {

constexpr const char* kIntroduction =
    "weir: rate limiter for HTTP, gRPC and Redis clients\n"
    "\n"
    "  weir serve                                   start the server: HTTP 8080, gRPC 8081, RESP 6380\n"
    "  weir serve --config weir.yaml                with rules from a config file\n"
    "  weir validate weir.yaml                      check a config for errors and likely mistakes\n"
    "  weir explain --path /login --ip 192.0.2.1    show which rules apply to a request, and why\n"
    "  weir top                                     watch a running server: rates, rules, top clients\n"
    "  weir usage user:42                           show the usage of a client, by rule and day\n"
    "  weir nodes                                   list the servers that share limits, and their rules\n"
    "  weir doctor                                  find problems of a running server, and their fixes\n"
    "\n"
    "  curl -i http://127.0.0.1:8080/v1/check -d '{\"key\":\"user:42\",\"limit\":\"100/minute\"}'\n"
    "  redis-cli -p 6380 CL.THROTTLE user:42 15 30 60\n";

// Example command lines of a command, or of all commands if the name is empty. Empty for commands without examples.
std::string_view examples_of(std::string_view command) {
  constexpr std::pair<std::string_view, const char* const*> kExamples[] = {
      {"serve", &kServeExamples},     {"state", &kStateExamples},   {"validate", &kValidateExamples},
      {"explain", &kExplainExamples}, {"schema", &kSchemaExamples}, {"bench", &kBenchExamples},
      {"check", &kCheckExamples},     {"keys", &kKeysExamples},     {"rules", &kRulesExamples},
      {"top", &kTopExamples},         {"plan", &kPlanExamples},     {"usage", &kUsageExamples},
      {"doctor", &kDoctorExamples},   {"manual", &kManualExamples}, {"completion", &kCompletionExamples},
      {"import", &kImportExamples},   {"nodes", &kNodesExamples},
  };
  for (const auto& [name, examples] : kExamples) {
    if (command == name) return *examples;
  }
  if (!command.empty()) return {};
  const std::string_view all = kIntroduction;
  return all.substr(all.find("\n\n") + 2);
}

// A command's help begins with its examples.
class ExamplesFirst final : public CLI::Formatter {
 public:
  std::string make_description(const CLI::App* app) const override {
    if (app->get_parent() == nullptr || app->get_parent()->get_parent() != nullptr)
      return CLI::Formatter::make_description(app);
    return std::string(examples_of(app->get_name())) + CLI::Formatter::make_description(app);
  }
};

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names = {"help"};
  for (const CLI::App* command : commands_of(app)) names.push_back(command->get_name());
  return names;
}

int print_version() {
  std::puts("weir " WEIR_VERSION);
  return 0;
}

int unknown_command(std::string_view word, const std::vector<std::string>& known) {
  std::string message = "unknown command " + in_quotes(word) + ". ";
  const std::string_view meant = nearest(word, known);
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

int run_program(int argc, char** argv) try {
  CLI::App app(kIntroduction, "weir");
  app.formatter(std::make_shared<ExamplesFirst>());
  app.set_version_flag("--version", "weir " WEIR_VERSION);
  app.require_subcommand(1);

  ServeCommand serve_command(app);
  PolicyCommands policy_commands(app);
  ImportCommand import_command(app);
  BenchCommand bench_command(app);
  StateCommand state_command(app);
  CheckCommand check_command(app);
  KeysCommand keys_command(app);
  RulesCommand rules_command(app);
  NodesCommand nodes_command(app);
  PlanCommand plan_command(app);
  TopCommand top_command(app);
  UsageCommand usage_command(app);
  DoctorCommand doctor_command(app, WEIR_VERSION);
  DescribeCommands describe_commands(app, examples_of, WEIR_VERSION);
  CLI::App* version_command = app.add_subcommand("version", "Print the version");

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
    std::string command;
    for (const CLI::App* given : app.get_subcommands()) command = given->get_name() + ' ';
    return complain(std::string(error.what()) + ". See weir " + command + "--help", kNotUnderstood);
  }
  if (*version_command) return when_written(print_version());
  const auto first_given = [](auto&... commands) {
    std::optional<int> exit_code;
    static_cast<void>(((exit_code = commands.run()) || ...));
    return exit_code;
  };
  const auto exit_code = first_given(state_command, policy_commands, import_command, bench_command, check_command,
                                     keys_command, rules_command, nodes_command, plan_command, top_command,
                                     usage_command, doctor_command, describe_commands);
  return exit_code ? when_written(*exit_code) : serve_command.run();
} catch (const std::exception& exception) {
  return complain(exception.what(), kCouldNot);
}

}  // namespace weir
