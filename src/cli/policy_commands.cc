// The commands for a config: `weir validate`, `weir explain`, `weir schema`.
//
// None of them contacts a running server. Exit codes: 0 success, 1 an invalid config or a change that is too large, 2
// invalid command line. One thread. Tested by tests/server/policy.sh.
#include <unistd.h>

#include <CLI/CLI.hpp>

#include <cstdio>
#include <string>

#include "base/text.h"
#include "cli/command.h"
#include "cli/flags.h"
#include "cli/request_flags.h"
#include "control/config_file.h"
#include "control/envoy_files.h"
#include "control/plan_control.h"
#include "protocol/explain_text.h"
#include "weir/gate.h"

namespace weir::cli {
namespace {

class ValidateCommand {
 public:
  explicit ValidateCommand(CLI::App& app) {
    app.add_option("FILE", file_, "Config file; - reads the standard input")->required();
    text_flag(app, "--against", against_, "FILE", "Compare with this config: list what would change");
    app.add_flag("--force", force_, "Accept changes beyond max_change");
    app.add_flag("--strict", strict_, "Exit with 1 on warnings, too");
  }
  Result<int> run() const;

 private:
  std::string file_, against_;
  bool force_ = false, strict_ = false;
};

class ExplainCommand {
 public:
  explicit ExplainCommand(CLI::App& app) {
    text_flag(app, "--config", config_, "FILE", "Config file");
    text_flag(app, "--state", state_, "FILE", "Read what was used from this state file; default: nothing used");
    request_.add(app);
    app.add_flag("--json", json_, "Print one JSON object");
  }
  Result<int> run();

 private:
  std::string config_ = "weir.yaml", state_;
  RequestFlags request_;
  bool json_ = false;
};

class SchemaCommand {
 public:
  explicit SchemaCommand(CLI::App& app) {
    app.add_flag("--markdown", markdown_, "Print docs/configuration-reference.md: every key, as Markdown");
  }
  Result<int> run() const {
    std::fputs((markdown_ ? policy_reference() : policy_schema()).c_str(), stdout);
    return 0;
  }

 private:
  bool markdown_ = false;
};

Result<int> ValidateCommand::run() const {
  const auto policy = control::load_policy(file_);
  if (!policy) return complain_of_file(policy.error().message);
  auto warnings = review(*policy, file_, make_system_clock()->now());
  if (const auto sound = control::PlanControl::check(policy->plans, {}); !sound) {
    return complain_of_file(file_ + ": " + sound.error().message);
  }
  std::string of_envoy;
  if (!policy->envoy.path.empty()) {
    const auto files = control::read_envoy_files(control::envoy_path(policy->envoy, file_));
    if (!files) return complain_of_file(files.error().message);
    auto loaded = control::load_envoy(*files, policy->envoy.algorithm);
    if (!loaded) return complain_of_file(loaded.error().message);
    warnings.insert(warnings.end(), loaded->warnings.begin(), loaded->warnings.end());
    of_envoy = ", " + base::counted(loaded->rules->rules().size(), "limit") + " from Envoy's files";
  }
  for (const std::string& warning : warnings) std::fprintf(stderr, "%s (warning)\n", warning.c_str());
  if (!against_.empty()) {
    const auto in_force = control::load_policy(against_);
    if (!in_force) return complain_of_file(in_force.error().message);
    const PolicyChanges changes = compare(*in_force, *policy);
    for (const std::string& line : changes.lines) std::printf("%s\n", line.c_str());
    for (const std::string& line : changes.refused) {
      std::fprintf(stderr, "%s: %s%s\n", file_.c_str(), line.c_str(),
                   force_ ? " (forced)" : "; use --force if it is intended");
    }
    if (!changes.refused.empty() && !force_) return 1;
  }
  std::printf("%s: %s%s, %s\n", file_.c_str(), base::counted(policy->rules.size(), "rule").c_str(), of_envoy.c_str(),
              warnings.empty() ? "valid" : "valid with warnings");
  return strict_ && !warnings.empty() ? 1 : 0;
}

Result<int> ExplainCommand::run() {
  const auto request = request_.request();
  if (!request) return complain(request.error().message, kNotUnderstood);
  auto policy = control::load_policy(config_);
  if (!policy) {
    const bool is_away = policy.error().code == ErrorCode::unavailable;
    return complain_of_file(policy.error().message + (is_away ? "; name the config with --config FILE" : ""));
  }
  if (!state_.empty() && access(state_.c_str(), R_OK) != 0) {
    return complain(state_ + ": no such state file", kCouldNot);
  }
  auto limiter = open_limiter({.keys = state_.empty() ? 1'000U : 0U, .file = state_, .sweeping = Sweeping::by_hand});
  if (!limiter) return complain(limiter.error().message, kCouldNot);
  Gate gate(*limiter);
  if (const auto applied = gate.apply(*std::move(policy)); !applied)
    return complain(applied.error().message, kCouldNot);
  if (!gate.policy().plans.source.empty()) {
    std::fputs(
        "weir: this command does not query the plan database; name the plan with --plan, or use weir keys explain\n",
        stderr);
  }
  const auto explanation = gate.explain(*request);
  if (!explanation) return complain(explanation.error().message, kCouldNot);
  std::fputs((json_ ? protocol::to_json(*explanation) : protocol::to_text(*explanation)).c_str(), stdout);
  return 0;
}

}  // namespace

const Command kValidateCommand{"validate", "Check a config: all errors and warnings", declare<ValidateCommand>};
const Command kExplainCommand{"explain", "Explain which rules apply to a request, and why; charges nothing",
                              declare<ExplainCommand>};
const Command kSchemaCommand{"schema", "Print the JSON Schema of a config, for editors", declare<SchemaCommand>};

}  // namespace weir::cli
