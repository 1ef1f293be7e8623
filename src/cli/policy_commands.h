// The commands for a config: `weir validate`, `weir explain`, `weir schema`.
//
// None of them contacts a running server. Exit codes: 0 success, 1 an invalid config or a change that is too large, 2
// invalid command line. One thread. Tested by tests/server/policy.sh.
#pragma once

#include <CLI/CLI.hpp>

#include <optional>
#include <string>

#include "cli/request_flags.h"

namespace weir {

extern const char* const kValidateExamples;
extern const char* const kExplainExamples;
extern const char* const kSchemaExamples;

class PolicyCommands {
 public:
  explicit PolicyCommands(CLI::App& app);

  // The exit code, if one of these commands was given.
  std::optional<int> run();

 private:
  int validate() const;
  int explain();

  CLI::App* validate_ = nullptr;
  CLI::App* explain_ = nullptr;
  CLI::App* schema_ = nullptr;

  std::string file_, against_;
  bool force_ = false, strict_ = false, markdown_ = false;

  std::string config_ = "weir.yaml", state_;
  RequestFlags request_;
  bool json_ = false;
};

}  // namespace weir
