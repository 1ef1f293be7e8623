// `weir import`: the config of another limiter, rewritten as rules. So far of Envoy's reference service.
//
// What rules cannot say is told on stderr and stands at the head of what is written. Exit codes: 0 done, 1 a file is
// wrong or nothing could be written, 2 the command line was not understood. One thread. Tested by
// tests/server/envoy_import.sh.
#pragma once

#include <CLI/CLI.hpp>

#include <optional>
#include <string>
#include <vector>

#include "envoy/envoy_import.h"
#include "weir/result.h"

namespace weir {

extern const char* const kImportExamples;

class ImportCommand {
 public:
  explicit ImportCommand(CLI::App& app);

  // The exit code, if this command was given.
  std::optional<int> run() const;

 private:
  int explain() const;
  int write(const ImportedEnvoy& imported) const;
  std::string text_of(const ImportedEnvoy& imported) const;

  CLI::App* import_ = nullptr;
  CLI::App* envoy_ = nullptr;
  std::vector<std::string> files_;
  std::string output_;
  bool explain_ = false;
};

}  // namespace weir
