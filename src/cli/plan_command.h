// `weir plan`: shows and changes who is on which plan, on a running server.
//
// Exit codes: 0 success, 1 failure, 2 invalid command line. One thread. Tested by tests/server/plans.sh.
#pragma once

#include <CLI/CLI.hpp>

#include <cstdint>
#include <optional>
#include <string>

#include "cli/remote.h"

namespace weir {

extern const char* const kPlanExamples;

class PlanCommand {
 public:
  explicit PlanCommand(CLI::App& app);

  // The exit code, if this command was given.
  std::optional<int> run();

 private:
  Result<int> set() const;
  Result<int> remove() const;
  Result<int> show() const;
  Result<int> list() const;
  Result<int> status() const;
  // A JSON object with the subject, the reason and further members, given as text.
  std::string body(const std::string& further) const;

  CLI::App *plan_ = nullptr, *set_ = nullptr, *override_ = nullptr, *remove_ = nullptr, *show_ = nullptr,
           *list_ = nullptr, *status_ = nullptr;
  Remote server_{"--admin", "127.0.0.1:8082"};
  std::string subject_, name_, until_, reason_, after_;
  std::uint64_t count_ = 100;
  bool is_override_ = false;
};

}  // namespace weir
