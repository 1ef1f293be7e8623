// The commands about a config: `weir validate`, `weir explain`, `weir schema`.
//
// Nothing here touches a running server. Exit codes: 0 done, 1 the config is wrong or the change too large, 2 the
// command line was not understood. One thread. Tested by tests/server/policy.sh.
#pragma once

#include <CLI/CLI.hpp>

#include <optional>
#include <string>

#include "command/request_flags.h"

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
  bool force_ = false, strict_ = false;

  std::string config_ = "weir.yaml", state_;
  RequestFlags request_;
  bool json_ = false;
};

}  // namespace weir
