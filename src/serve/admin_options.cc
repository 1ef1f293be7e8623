// The flags for administration. See admin_options.h.
#include "serve/admin_options.h"

#include <utility>

#include "control/config_file.h"

namespace weir {
namespace {

constexpr std::size_t kTokenBytesMin = 16;

}  // namespace

void AdminOptions::add(CLI::App& app) {
  app.add_option("--config", config, "Config file with the rules")->type_name("FILE");
  app.add_option("--envoy", envoy,
                 "Folder with the config files of Envoy's rate limit service, for Envoy's descriptors")
      ->type_name("DIR");
  app.add_option("--envoy-algorithm", envoy_algorithm, "Algorithm of the limits in the --envoy files")
      ->capture_default_str();
  app.add_flag("--envoy-count-denied", envoy_count_denied,
               "Charge denied requests to the --envoy limits too, as Envoy's service does");
  app.add_flag("--force", force, "Reload configs even if they change more than max_change allows");
  app.add_flag("--no-watch", no_watch,
               "Do not reload when a config file changes, only on SIGHUP or through the admin API");
  app.add_option("--changes", changes,
                 "File for runtime changes (bans, rule modes); default with --state: STATE.changes, in a fleet "
                 "STATE.fleet-changes")
      ->type_name("FILE");
  app.add_option("--admin-token-file", token_file,
                 "File with the token that admin API clients must send as Authorization: Bearer TOKEN")
      ->type_name("FILE");
  app.add_option("--admin-host", hosts,
                 "Host name that clients may use for the admin API, in addition to localhost and IP addresses")
      ->type_name("NAME");
}

Result<void> AdminOptions::fill(ServerOptions& options) const {
  const auto algorithm = parse_algorithm(envoy_algorithm);
  if (!algorithm) return fail(algorithm.error().code, "--envoy-algorithm: " + algorithm.error().message);
  if (*algorithm == Algorithm::concurrency) {
    return fail(ErrorCode::invalid_argument,
                "--envoy-algorithm: concurrency limits permits in flight, not requests per unit; write "
                "fixed_window, sliding_window or token_bucket");
  }
  if (!token_file.empty()) {
    auto token = read_secret(token_file);
    if (!token) return fail(token.error().code, "--admin-token-file: " + token.error().message);
    if (token->size() < kTokenBytesMin) {
      return fail(ErrorCode::out_of_range, "--admin-token-file: " + token_file + " has fewer than 16 bytes; " +
                                               "create one with `openssl rand -hex 32`");
    }
    options.admin_access.token = *std::move(token);
  }
  options.admin_access.hosts = hosts;
  if (options.admin && !options.admin->is_loopback() && options.admin_access.token.empty()) {
    return fail(
        ErrorCode::invalid_argument,
        "--admin: a non-loopback address requires --admin-token-file FILE, since admin API clients control the server; "
        "or write 127.0.0.1:8082, unix:/run/weir-admin.sock or off");
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
