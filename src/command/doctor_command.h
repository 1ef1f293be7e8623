// `weir doctor`: examines a running server and says what is not well, and what to do.
//
// Exit codes: 0 nothing failed, 1 something did or the server cannot be asked, with --strict also if there are
// warnings. One thread. Tested by tests/server/doctor.sh.
#pragma once

#include <CLI/CLI.hpp>

#include <optional>
#include <string>

#include "command/doctor.h"
#include "command/remote.h"

namespace weir {

extern const char* const kDoctorExamples;

class DoctorCommand {
 public:
  // `version` is that of this program.
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
