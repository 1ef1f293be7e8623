// `weir import`: converts another limiter's config to rules. So far only that of Envoy's reference service.
//
// What rules cannot express is reported on stderr and in a comment at the top of the output. Exit codes: 0 success, 1
// an invalid file or a failed write, 2 invalid command line. One thread. Tested by tests/server/envoy_import.sh.
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
