// `weir manual` and `weir completion`: the program's man pages and shell completions.
//
// Exit codes: 0 success, 2 invalid command line. One thread. Tested by tests/server/manual.sh and completion.sh
// there.
#pragma once

#include <CLI/CLI.hpp>

#include <optional>
#include <string>

#include "cli/manual.h"

namespace weir {

extern const char* const kManualExamples;
extern const char* const kCompletionExamples;

class DescribeCommands {
 public:
  DescribeCommands(CLI::App& app, ExamplesOf examples_of, std::string version);

  // The exit code, if one of these commands was given.
  std::optional<int> run() const;

 private:
  CLI::App* program_ = nullptr;
  CLI::App* manual_ = nullptr;
  CLI::App* completion_ = nullptr;
  ExamplesOf examples_of_;
  std::string version_;
  std::string page_ = "weir";
  std::string shell_;
};

}  // namespace weir
