// The flags for administration. See admin_options.h.
#include "program/admin_options.h"

#include <utility>

#include "admin/config_file.h"

namespace weir {
namespace {

constexpr std::size_t kTokenBytesMin = 16;

}  // namespace

void AdminOptions::add(CLI::App& app) {
  app.add_option("--config", config, "Decide by the rules in this file")->type_name("FILE");
  app.add_option("--envoy", envoy, "Decide Envoy's descriptors by the files of its rate limit service in this folder")
      ->type_name("DIR");
  app.add_option("--envoy-algorithm", envoy_algorithm, "By which those limits count")->capture_default_str();
  app.add_flag("--envoy-count-denied", envoy_count_denied,
               "Charge denied requests to those limits, too, as Envoy's service does");
  app.add_flag("--force", force, "A reload may change the rules beyond their max_change");
  app.add_flag("--no-watch", no_watch, "Read the rules again only when told to, not when their file changes");
  app.add_option("--changes", changes,
                 "Keep changes made while it runs in this file; STATE.changes if there is a state, in a fleet "
                 "STATE.fleet-changes")
      ->type_name("FILE");
  app.add_option("--admin-token-file", token_file, "Whoever uses the admin port must know what it holds")
      ->type_name("FILE");
  app.add_option("--admin-host", hosts, "Names by which the admin port may be called, beside localhost and addresses")
      ->type_name("NAME");
}

Result<void> AdminOptions::fill(ServerOptions& options) const {
  const auto algorithm = parse_algorithm(envoy_algorithm);
  if (!algorithm) return fail(algorithm.error().code, "--envoy-algorithm: " + algorithm.error().message);
  if (*algorithm == Algorithm::concurrency) {
    return fail(ErrorCode::invalid_argument,
                "--envoy-algorithm: permits in flight are no requests per unit; write "
                "fixed_window, sliding_window or token_bucket");
  }
  if (!token_file.empty()) {
    auto token = read_secret(token_file);
    if (!token) return fail(token.error().code, "--admin-token-file: " + token.error().message);
    if (token->size() < kTokenBytesMin) {
      return fail(ErrorCode::out_of_range, "--admin-token-file: " + token_file + " holds fewer than 16 bytes; " +
                                               "openssl rand -hex 32 makes a good one");
    }
    options.admin_access.token = *std::move(token);
  }
  options.admin_access.hosts = hosts;
  if (options.admin && !options.admin->is_loopback() && options.admin_access.token.empty()) {
    return fail(ErrorCode::invalid_argument,
                "--admin: whoever reaches the admin port rules the server, so it listens on this machine only: write "
                "127.0.0.1:8082, unix:/run/weir-admin.sock or off, or give --admin-token-file FILE");
  }
  return {};
}

ControlOptions AdminOptions::control(const std::string& state, bool is_of_fleet) const {
  ControlOptions options;
  options.file = config;
  options.envoy.path = envoy;
  options.envoy.count_denied = envoy_count_denied;
  if (const auto algorithm = parse_algorithm(envoy_algorithm)) options.envoy.algorithm = *algorithm;
  options.force = force ? Force::yes : Force::no;
  if (!state.empty()) options.plans = state + ".plans";
  options.changes = !changes.empty() || state.empty() ? changes : state + (is_of_fleet ? ".fleet-changes" : ".changes");
  return options;
}

}  // namespace weir
