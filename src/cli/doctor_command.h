// `weir doctor`: examines a running server, and reports problems and fixes.
//
// Exit codes: 0 no failures, 1 a failure or no answer from the server, with --strict also warnings. One thread.
// Tested by tests/server/doctor.sh.
#pragma once

#include <CLI/CLI.hpp>

#include <optional>
#include <string>

#include "cli/doctor.h"
#include "cli/remote.h"

namespace weir {

extern const char* const kDoctorExamples;

class DoctorCommand {
 public:
  // `version` is this program's version.
  DoctorCommand(CLI::App& app, std::string version);

  // The exit code, if this command was given.
  std::optional<int> run();

 private:
  Result<Patient> ask() const;
  void ask_policy(Patient& patient) const;

  CLI::App* doctor_ = nullptr;
  Remote server_{"--admin", "127.0.0.1:8082"};
  std::string version_;
  bool strict_ = false, json_ = false;
};

}  // namespace weir
