// The commands of `weir`: what each consists of, how it reports errors, and what the program does with all of them.
//
// A command is a class without a header, in a file NAME_command.cc that ends with its constant. One thread. Tested by
// tests/server/cli.sh.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "weir/result.h"

namespace CLI {
class App;
}

namespace weir::cli {

inline constexpr int kCouldNot = 1;
inline constexpr int kNotUnderstood = 2;

// Runs a command and returns its exit code. The program prints an error, and exits with kNotUnderstood if the command
// line is invalid (ErrorCode::invalid_argument), otherwise with kCouldNot.
using Run = std::function<Result<int>()>;

struct Command {
  const char* name;
  const char* about;              // one line
  Run (*declare)(CLI::App& app);  // adds the flags to the command
};

// The `declare` of a class whose constructor adds the flags, and whose run() is the command.
template <class Class>
Run declare(CLI::App& app) {
  return [made = std::make_shared<Class>(app)]() -> Result<int> { return made->run(); };
}

extern const Command kBenchCommand, kCheckCommand, kCompletionCommand, kDoctorCommand, kExplainCommand, kImportCommand,
    kKeysCommand, kManualCommand, kNodesCommand, kPlanCommand, kRulesCommand, kSchemaCommand, kStateCommand,
    kTopCommand, kUsageCommand, kValidateCommand;

// Prints an error of one or more lines. The message may quote a server or a file, so characters that a terminal would
// act upon are replaced.
int complain(std::string_view message, int exit_code);
// Prints an error about a file, which begins with the name of the file instead of `weir:`. Returns kCouldNot.
int complain_of_file(const std::string& message);

// Raises the process's limit of file descriptors to `wanted`, as far as the system allows. Returns the new limit,
// but at most `wanted`. Many systems give a process 1,024 descriptors, and more on request.
std::size_t ask_for_descriptors(std::size_t wanted);

// The examples with which the help of each command begins, and the templates of the man pages and of a script.
std::string_view help_texts();    // help.txt
std::string_view bash_script();   // completion.bash.in
std::string_view program_page();  // weir.1.roff
std::string_view config_page();   // weir.yaml.5.roff

// Selects a command by the command line, runs it and returns the exit code. `serve` is the one command that this
// folder lacks.
int run_program(int argc, char** argv, const Command& serve);

}  // namespace weir::cli
