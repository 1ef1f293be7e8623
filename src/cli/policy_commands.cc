// Validates, explains and describes configs. See policy_commands.h.
#include "cli/policy_commands.h"

#include <unistd.h>

#include <cstdio>

#include "base/nearest.h"
#include "cli/table_text.h"
#include "control/config_file.h"
#include "control/envoy_files.h"
#include "control/plan_desk.h"
#include "protocol/explain_text.h"
#include "weir/gate.h"

namespace weir {

const char* const kValidateExamples =
    "  weir validate weir.yaml                          all errors and warnings, with line and column\n"
    "  weir validate new.yaml --against weir.yaml       also list changes, and whether they need --force\n"
    "  weir validate - < weir.yaml                      read the standard input\n"
    "\n";
const char* const kExplainExamples =
    "  weir explain --path /api/login --method POST --ip 192.0.2.1      by weir.yaml in this folder\n"
    "  weir explain --config rules.yaml --user 42 --path /api/search --json\n"
    "  weir explain --state state.weir --user 42                        with the usage in a state file, also while a "
    "server uses it\n"
    "\n";
const char* const kSchemaExamples =
    "  weir schema > weir.schema.json          then begin weir.yaml with\n"
    "                                          # yaml-language-server: $schema=weir.schema.json\n"
    "\n";

namespace {

int complain(const std::string& message) {
  std::fprintf(stderr, "%s\n", message.c_str());
  return 1;
}

}  // namespace

PolicyCommands::PolicyCommands(CLI::App& app) {
  validate_ = app.add_subcommand("validate", "Check a config: all errors and warnings");
  validate_->add_option("FILE", file_, "Config file; - reads the standard input")->required();
  validate_->add_option("--against", against_, "Compare with this config: list what would change")->type_name("FILE");
  validate_->add_flag("--force", force_, "Accept changes beyond max_change");
  validate_->add_flag("--strict", strict_, "Exit with 1 on warnings, too");

  explain_ = app.add_subcommand("explain", "Explain which rules apply to a request, and why; charges nothing");
  explain_->add_option("--config", config_, "Config file")->type_name("FILE")->capture_default_str();
  explain_->add_option("--state", state_, "Read what was used from this state file; default: nothing used")
      ->type_name("FILE");
  request_.add(*explain_);
  explain_->add_flag("--json", json_, "Print one JSON object");

  schema_ = app.add_subcommand("schema", "Print the JSON Schema of a config, for editors");
  schema_->add_flag("--markdown", markdown_, "Print docs/configuration-reference.md: every key, as Markdown");
}

std::optional<int> PolicyCommands::run() {
  if (*validate_) return validate();
  if (*explain_) return explain();
  if (!*schema_) return {};
  std::fputs((markdown_ ? policy_reference() : policy_schema()).c_str(), stdout);
  return 0;
}

int PolicyCommands::validate() const {
  const auto policy = load_policy(file_);
  if (!policy) return complain(policy.error().message);
  auto warnings = review(*policy, file_, make_system_clock()->now());
  if (const auto sound = PlanDesk::check(policy->plans, {}); !sound) {
    return complain(file_ + ": " + sound.error().message);
  }
  std::string of_envoy;
  if (!policy->envoy.path.empty()) {
    const auto files = read_envoy_files(envoy_path(policy->envoy, file_));
    if (!files) return complain(files.error().message);
    auto loaded = load_envoy(*files, policy->envoy.algorithm);
    if (!loaded) return complain(loaded.error().message);
    warnings.insert(warnings.end(), loaded->warnings.begin(), loaded->warnings.end());
    of_envoy = ", " + counted(loaded->rules->rules().size(), "limit") + " from Envoy's files";
  }
  for (const std::string& warning : warnings) std::fprintf(stderr, "%s (warning)\n", warning.c_str());
  if (!against_.empty()) {
    const auto in_force = load_policy(against_);
    if (!in_force) return complain(in_force.error().message);
    const PolicyChanges changes = compare(*in_force, *policy);
    for (const std::string& line : changes.lines) std::printf("%s\n", line.c_str());
    for (const std::string& line : changes.refused) {
      std::fprintf(stderr, "%s: %s%s\n", file_.c_str(), line.c_str(),
                   force_ ? " (forced)" : "; use --force if it is intended");
    }
    if (!changes.refused.empty() && !force_) return 1;
  }
  std::printf("%s: %s%s, %s\n", file_.c_str(), counted(policy->rules.size(), "rule").c_str(), of_envoy.c_str(),
              warnings.empty() ? "valid" : "valid with warnings");
  return strict_ && !warnings.empty() ? 1 : 0;
}

int PolicyCommands::explain() {
  const auto request = request_.request();
  if (!request) return complain("weir: " + request.error().message) + 1;
  auto policy = load_policy(config_);
  if (!policy) {
    const bool is_away = policy.error().code == ErrorCode::unavailable;
    return complain(policy.error().message + (is_away ? "; name the config with --config FILE" : ""));
  }
  if (!state_.empty() && access(state_.c_str(), R_OK) != 0) {
    return complain("weir: " + state_ + ": no such state file");
  }
  auto limiter = open_limiter({.keys = state_.empty() ? 1'000U : 0U, .file = state_, .sweeping = Sweeping::by_hand});
  if (!limiter) return complain("weir: " + limiter.error().message);
  Gate gate(*limiter);
  if (const auto applied = gate.apply(*std::move(policy)); !applied)
    return complain("weir: " + applied.error().message);
  if (!gate.policy().plans.source.empty()) {
    std::fputs(
        "weir: this command does not query the plan database; name the plan with --plan, or use weir keys explain\n",
        stderr);
  }
  const auto explanation = gate.explain(*request);
  if (!explanation) return complain("weir: " + explanation.error().message);
  std::fputs((json_ ? to_json(*explanation) : to_text(*explanation)).c_str(), stdout);
  return 0;
}

}  // namespace weir
