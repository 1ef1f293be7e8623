// The flags for bounds, logs, shutdown, administration and reports. See serve_flags.h.
#include "serve/serve_flags.h"

#include <tuple>
#include <utility>

#include "base/nearest.h"
#include "base/text.h"
#include "cli/flags.h"
#include "control/config_file.h"
#include "weir/duration.h"

namespace weir::serve {
namespace {

constexpr std::uint64_t kBytesMax = std::uint64_t{1} << 30;
constexpr std::uint64_t kCountMax = 1'000'000;
constexpr std::int64_t kSecondsMax = 86'400;

// Declares one flag in the help's group "Bounds".
template <class Number>
void bound(CLI::App& app, const char* name, Number& value, cli::Within within, const char* unit, const char* help) {
  cli::number_flag(app, name, value, within, unit, help)->group("Bounds");
}

constexpr std::size_t kTokenBytesMin = 16;

// Parses a duration, or whole seconds.
Result<Micros> read_wait(const char* option, const std::string& text) {
  const auto seconds = base::to_number<std::int64_t>(text);
  if (seconds && *seconds >= 0 && *seconds <= kSecondsMax) return Micros{*seconds * 1'000'000};
  auto wait = parse_duration(text);
  if (!wait) return fail(wait.error().code, std::string(option) + ": " + wait.error().message);
  return wait;
}

}  // namespace

void BoundFlags::add(CLI::App& app) {
  bound(app, "--connections", connections, {1, kCountMax}, "N", "Maximum open connections of each listener");
  bound(app, "--buffers", buffers_mib, {1, 1'048'576}, "MIB",
        "Maximum memory for unfinished requests and unread answers");
  bound(app, "--header-max", bounds.http.header_max, {256, kBytesMax}, "BYTES",
        "Maximum size of a request's header or gRPC metadata");
  bound(app, "--header-fields", bounds.http.fields_max, {1, 10'000}, "N", "Maximum header fields of a request");
  bound(app, "--body-max", bounds.body_max, {256, kBytesMax}, "BYTES",
        "Maximum size of an HTTP body (/v1/checks: 4 times this), RESP bulk string or gRPC message");
  bound(app, "--key-max", bounds.key_max, {1, kKeyBytesMax}, "BYTES", "Maximum length of a key");
  bound(app, "--checks-max", bounds.checks_max, {1, kCountMax}, "N",
        "Maximum checks in one call of /v1/checks, and commands in a transaction of a Redis client");
  bound(app, "--holds", bounds.holds_max, {1, kCountMax}, "N",
        "Maximum answers that a thread delays at once (leaky_bucket)");
  bound(app, "--resp-args", bounds.resp_args_max, {4, 1024}, "N", "Maximum arguments of a RESP command");
  bound(app, "--resp-line", bounds.resp_line_max, {64, kBytesMax}, "BYTES",
        "Maximum length of a line from a RESP client");
  bound(app, "--output-max", bounds.output_max, {4096, kBytesMax}, "BYTES", "Maximum unread answers of a connection");

  server::loop::Timeouts& timeouts = bounds.timeouts;
  bound(app, "--idle-timeout", timeouts.idle, {0, kSecondsMax}, "S",
        "Close an HTTP connection after S idle seconds; 0: never");
  bound(app, "--header-timeout", timeouts.header, {1, kSecondsMax}, "S",
        "Maximum time from a request's first byte to the end of its header");
  bound(app, "--body-timeout", timeouts.body, {1, kSecondsMax}, "S",
        "Maximum time from the end of a request's header to the end of its body");
  bound(app, "--write-timeout", bounds.write_seconds, {1, kSecondsMax}, "S",
        "Close a connection whose client reads none of its answers for S seconds");
  bound(app, "--shed-after", shed_after_ms, {0, 60'000}, "MS",
        "A thread is overloaded when its event loop iterations stay above MS milliseconds; 0: never");

  server::loop::GrpcBounds& grpc = bounds.grpc;
  bound(app, "--grpc-streams", grpc.calls_max, {1, 100'000}, "N", "Maximum concurrent calls of a gRPC connection");
  bound(app, "--grpc-resets", grpc.resets_per_second, {1, kCountMax}, "N",
        "Maximum calls that a gRPC connection may reset per second");
  bound(app, "--grpc-frames", grpc.frames_per_second, {1, kCountMax}, "N",
        "Maximum frames without a call, such as PING, per second of a gRPC connection");
  app.add_option("--on-overload", on_overload, "Answer of an overloaded server (see --shed-after): deny or allow")
      ->type_name("WHAT")
      ->check(CLI::IsMember({"deny", "allow"}))
      ->capture_default_str()
      ->group("Bounds");
}

Result<void> BoundFlags::fill(server::ServerOptions& options) const {
  options.connections_max = connections;
  options.buffers_max = buffers_mib << 20;
  options.bounds = bounds;
  options.bounds.shed_after = Micros{static_cast<std::int64_t>(shed_after_ms) * 1000};
  options.bounds.on_overload =
      on_overload == "allow" ? server::loop::OnOverload::allow : server::loop::OnOverload::deny;
  return {};
}

void LogFlags::add(CLI::App& app) {
  app.add_option_function<std::string>(
         "--log-format",
         [this](const std::string& name) {
           if (name != "text" && name != "json") {
             throw CLI::ValidationError("--log-format",
                                        "unknown format " + base::in_quotes(name) + "; write text or json");
           }
           format = name == "json" ? log::LogFormat::json : log::LogFormat::text;
         },
         "Log format on stderr: text or json")
      ->type_name("FORMAT")
      ->default_str("text");
  app.add_option_function<std::string>(
         "--log-level",
         [this](const std::string& name) {
           const auto known = log::log_level_of(name);
           if (!known) {
             throw CLI::ValidationError(
                 "--log-level", "unknown level " + base::in_quotes(name) + "; write debug, info, warn or error");
           }
           level = *known;
         },
         "Minimum log level: debug, info, warn or error")
      ->type_name("LEVEL")
      ->default_str("info");
  cli::number_flag(app, "--log-denials", denials.per_second, {0, 1'000'000}, "N",
                   "Maximum denials to log per second, one line each; 0: none");
  cli::text_flag(app, "--traces", traces, "http://HOST:4318",
                 "Send trace spans of checks to this collector, as OTLP over plain HTTP; default: none");
  app.add_option("--traces-sample", traces_sample,
                 "Share of requests to trace, 0 to 1; requests with a sampled traceparent are always traced")
      ->type_name("SHARE")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  app.add_flag("--log-keys", denials.in_clear,
               "Log the keys of denials in clear text instead of as hashes; keys are personal data");
}

Result<void> LogFlags::fill(server::ServerOptions& options) const {
  options.denials = denials;
  if (traces.empty()) return {};
  auto target = server::observe::parse_trace_target(traces);
  if (!target) return fail(target.error().code, "--traces: " + target.error().message);
  options.traces = *std::move(target);
  options.traces.sample = traces_sample;
  options.traces.version = options.version;
  return {};
}

void LifeFlags::add(CLI::App& app) {
  cli::text_flag(app, "--drain-delay", drain_delay, "TIME",
                 "Time to keep serving after SIGTERM while /readyz returns 503; 0: none");
  cli::text_flag(app, "--upgrade-max", upgrade_max, "TIME",
                 "Maximum time for the new process to become ready after SIGUSR2");
  cli::text_flag(app, "--drain-max", drain_max, "TIME",
                 "Maximum time to finish requests in flight, after --drain-delay");
}

Result<void> LifeFlags::fill(server::ServerOptions& options) const {
  const std::tuple<const char*, const std::string&, Micros&> waits[] = {
      {"--drain-delay", drain_delay, options.life.drain_delay},
      {"--drain-max", drain_max, options.life.drain_max},
      {"--upgrade-max", upgrade_max, options.life.upgrade_max}};
  for (const auto& [option, text, wait] : waits) {
    const auto read = read_wait(option, text);
    if (!read) return fail(read.error());
    wait = *read;
  }
  options.life.succession = server::life::own_command();
  auto inherited = server::life::take_inheritance();
  if (!inherited) return fail(std::move(inherited.error()));
  options.life.inherited = *std::move(inherited);
  return {};
}

void AdminFlags::add(CLI::App& app) {
  cli::text_flag(app, "--config", config, "FILE", "Config file with the rules");
  cli::text_flag(app, "--envoy", envoy, "DIR",
                 "Folder with the config files of Envoy's rate limit service, for Envoy's descriptors");
  app.add_option("--envoy-algorithm", envoy_algorithm, "Algorithm of the limits in the --envoy files")
      ->capture_default_str();
  app.add_flag("--envoy-count-denied", envoy_count_denied,
               "Charge denied requests to the --envoy limits too, as Envoy's service does");
  app.add_flag("--force", force, "Reload configs even if they change more than max_change allows");
  app.add_flag("--no-watch", no_watch,
               "Do not reload when a config file changes, only on SIGHUP or through the admin API");
  cli::text_flag(app, "--changes", changes, "FILE",
                 "File for runtime changes (bans, rule modes); default with --state: STATE.changes, in a fleet "
                 "STATE.fleet-changes");
  cli::text_flag(app, "--admin-token-file", token_file, "FILE",
                 "File with the token that admin API clients must send as Authorization: Bearer TOKEN");
  app.add_option("--admin-host", hosts,
                 "Host name that clients may use for the admin API, in addition to localhost and IP addresses")
      ->type_name("NAME");
}

Result<void> AdminFlags::fill(server::ServerOptions& options) const {
  const auto algorithm = parse_algorithm(envoy_algorithm);
  if (!algorithm) return fail(algorithm.error().code, "--envoy-algorithm: " + algorithm.error().message);
  if (*algorithm == Algorithm::concurrency) {
    return fail(ErrorCode::invalid_argument,
                "--envoy-algorithm: concurrency limits permits in flight, not requests per unit; write "
                "fixed_window, sliding_window or token_bucket");
  }
  if (!token_file.empty()) {
    auto token = control::read_secret(token_file);
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

control::ControlOptions AdminFlags::control(const std::string& state, bool is_of_fleet) const {
  control::ControlOptions options;
  options.file = config;
  options.envoy.path = envoy;
  options.envoy.count_denied = envoy_count_denied;
  if (const auto algorithm = parse_algorithm(envoy_algorithm)) options.envoy.algorithm = *algorithm;
  options.force = force ? Force::yes : Force::no;
  if (!state.empty()) options.plans = state + ".plans";
  options.changes = !changes.empty() || state.empty() ? changes : state + (is_of_fleet ? ".fleet-changes" : ".changes");
  return options;
}

void UsageFlags::add(CLI::App& app) {
  app.add_flag("--hash-keys", hash_keys, "Show top keys as hashes, never users or addresses in clear text");
  cli::number_flag(app, "--usage-subjects", subjects, {0, kUsageSubjectsMax}, "N",
                   "Usage accounts per day, one for each subject and rule; 0: none, maximum 1000000");
  cli::number_flag(app, "--usage-days", days, {1, 3'660}, "N", "Days of usage to keep, including today");
}

GateOptions UsageFlags::gate_options() const {
  return {.key_names = hash_keys ? KeyNames::hashed : KeyNames::plain, .usage = {.subjects = subjects, .days = days}};
}

control::UsageControlOptions UsageFlags::control_options(const std::string& state) const {
  control::UsageControlOptions options;
  if (!state.empty()) options.folder = state + ".usage";
  options.days = days;
  return options;
}

}  // namespace weir::serve
