// Assembles a server from the flags, and runs it. See serve_command.h.
#include "serve/serve_command.h"

#include <sys/resource.h>

#include <algorithm>
#include <csignal>
#include <optional>
#include <string>
#include <utility>

#include "base/counted.h"
#include "cli/complain.h"
#include "control/config_file.h"
#include "control/reloader.h"
#include "control/usage_keeper.h"
#include "log/log.h"
#include "serve/announce.h"
#include "serve/fleet_desk.h"
#include "serve/fleet_end.h"
#include "serve/state_watch.h"
#include "weir/gate.h"
#include "weir/limiter.h"

namespace weir {

const char* const kServeExamples =
    "  weir serve                              HTTP on 8080, gRPC on 8081, RESP on 6380; loopback only\n"
    "  weir serve --http :9000 --grpc off      other ports; :0 picks a free one, off disables a listener\n"
    "  weir serve --resp unix:/run/weir.sock   on a unix socket\n"
    "  weir serve --config weir.yaml           with rules; SIGHUP reloads them, a bad file changes nothing\n"
    "  weir serve --envoy DIR                  with the unchanged files of Envoy's rate limit service\n"
    "  weir serve --store redis://host         share limits between servers; see weir nodes\n"
    "  weir serve --state state.weir           keep counts across restarts, upgrades and kill -9\n"
    "  weir serve --tls-cert c.pem --tls-key k.pem   TLS on every TCP listener; reloads a renewed certificate\n"
    "  weir serve --settings weir.conf         read options from a file: http = \"0.0.0.0:8080\"\n"
    "  weir serve --http 0.0.0.0:8080          reachable from other machines: use a firewall\n"
    "\n";

namespace {

// Many systems give a process 1,024 descriptors, and more on request. Returns how many it has then.
std::size_t ask_for_descriptors(std::size_t wanted) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted) return wanted;
  const rlim_t before = std::exchange(limit.rlim_cur, std::min<rlim_t>(limit.rlim_max, wanted));
  return setrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : before;
}

// No listener may take the descriptors of another, least of all of the one that answers health checks.
void share_descriptors(ServerOptions& options, std::size_t descriptors) {
  if (descriptors >= descriptors_needed(options)) return;
  const std::string connections = std::to_string(options.connections_max);
  const std::string wanted = std::to_string(descriptors_wanted(options));
  const bool fits = fit_connections(options, descriptors);
  log(LogLevel::warn, "too few file descriptors for --connections " + connections,
      {{"descriptors", std::to_string(descriptors)},
       {"connections", fits ? std::to_string(options.connections_max) + " on each listener" : "as many as fit"},
       {"fix", "raise the hard limit to " + wanted + " (ulimit -Hn, LimitNOFILE=), or lower --connections"}});
}

void warn_of_open_secret(std::string_view what, const std::string& file) {
  if (file.empty() || !is_open_to_others(file)) return;
  log(LogLevel::warn, "secret file is readable or writable by every user",
      {{"what", what}, {"file", file}, {"fix", "chmod o-rwx " + file}});
}

void warn_of_open_secrets(const redis::Target& target) {
  warn_of_open_secret("password_file of the store", target.credentials.password_file);
  warn_of_open_secret("sentinel_password_file of the store", target.sentinel_credentials.password_file);
  warn_of_open_secret("key of the store", target.tls.key);
}

std::string envoy_text(const ControlStatus& status) {
  if (status.envoy.empty()) return {};
  return status.envoy + ", " + counted(status.envoy_limits, "limit") + " of " + counted(status.envoy_domains, "domain");
}

// Stops the heartbeat's reports before the Control that they read is destroyed.
class Hush {
 public:
  explicit Hush(std::optional<FleetDesk>& desk) : desk_(desk) {}
  ~Hush() {
    if (desk_) desk_->hush();
  }
  Hush(const Hush&) = delete;
  Hush& operator=(const Hush&) = delete;

 private:
  std::optional<FleetDesk>& desk_;
};

// At the end, after the last request: writes the saved state for the next start.
class Keeping {
 public:
  Keeping(std::shared_ptr<FleetStore> store, std::string path) : store_(std::move(store)), path_(std::move(path)) {}
  ~Keeping() {
    if (store_ != nullptr && !path_.empty()) log_unless(write_keepsake(path_, store_->close()));
  }
  Keeping(const Keeping&) = delete;
  Keeping& operator=(const Keeping&) = delete;

 private:
  const std::shared_ptr<FleetStore> store_;
  const std::string path_;
};

}  // namespace

ServeCommand::ServeCommand(CLI::App& app) {
  serve_ = app.add_subcommand("serve", "Run the server: HTTP, gRPC and RESP, until SIGTERM");
  doors_.add(*serve_);
  store_.add(*serve_);
  admin_.add(*serve_);
  bounds_.add(*serve_);
  log_.add(*serve_);
  life_.add(*serve_);
  tls_.add(*serve_);
  peers_.add(*serve_);
  settings_.add(*serve_);
  usage_.add(*serve_);
}

Result<ServerOptions> ServeCommand::server_options() const {
  ServerOptions options;
  options.version = WEIR_VERSION;
  for (const auto& filled : {doors_.fill(options), bounds_.fill(options), life_.fill(options), tls_.fill(options),
                             peers_.fill(options), log_.fill(options), admin_.fill(options)}) {
    if (!filled) return fail(filled.error());
  }
  return Result<ServerOptions>(std::move(options));
}

int ServeCommand::run() {
  if (const auto set = settings_.apply(*serve_); !set) return complain(set.error().message, kNotUnderstood);
  auto wanted = server_options();
  if (!wanted) return complain(settings_.with_place(wanted.error().message), kCouldNot);
  ServerOptions& options = *wanted;
  ServiceManager manager;
  options.life.manager = &manager;
  options.life.keeps_state = !store_.state.empty();
  const std::size_t descriptors = ask_for_descriptors(descriptors_wanted(options));
  std::signal(SIGPIPE, SIG_IGN);  // the reader of our output may close it
  set_log_level(log_.level);
  const LogWriter log_writer(log_.format);
  share_descriptors(options, descriptors);

  auto limiter_options = store_.limiter_options();
  if (!limiter_options) return complain(settings_.with_place(limiter_options.error().message), kCouldNot);
  store_.take(admin_.config);
  auto fleet = store_.fleet();
  if (!fleet) return complain(settings_.with_place(fleet.error().message), kCouldNot);
  const Keeping keeping(*fleet, store_.kept());
  if (*fleet != nullptr) {
    if (const auto why = refuse_to_join(**fleet)) return complain(*why, kCouldNot);
    limiter_options->shared = *fleet;
    options.fibers.emplace();
    options.make_far_end = [store = *fleet](Fibers& fibers) { return std::make_unique<FleetEnd>(*store, fibers); };
  }
  auto limiter = open_limiter(*std::move(limiter_options));
  if (!limiter) return complain(limiter.error().message, kCouldNot);
  const StateWatch state_watch(store_.state);
  Gate gate(*limiter, usage_.gate_options());
  options.counting = &gate;
  UsageKeeper usage(*limiter, gate, usage_.keeper_options(store_.state));
  options.usage = &usage;
  options.metrics.usage = [&gate, &usage] {
    const UsageKept kept = usage.kept();
    return UsageMetrics{.stats = gate.spending_stats(), .written_at = kept.written_at, .write_failures = kept.failures};
  };
  ControlOptions control_options = admin_.control(store_.state, *fleet != nullptr);
  control_options.log_level = log_.level;
  std::optional<FleetDesk> desk;
  if (*fleet != nullptr) control_options.shared = &desk.emplace(**fleet);
  Control control(*limiter, gate, std::move(control_options));
  if (const auto started = control.start(); !started) return complain(started.error().message, kCouldNot);
  if (desk) desk->warn_of_redis();
  if (desk) desk->speak_for(control);
  const Hush hush(desk);
  Reloader reloader(control, admin_.no_watch ? Watching::off : Watching::on);
  options.control = &control;
  options.state = store_.state;
  options.metrics.config = [&control] {
    const ControlStatus status = control.status();
    return ConfigMetrics{.last_reload_ok = status.last_reload.ok,
                         .last_success = status.last_ok_at,
                         .reloads_ok = status.reloads_ok,
                         .reloads_failed = status.reloads_failed,
                         .kill_switch = status.kill_switch,
                         .changes_active = status.changes_active,
                         .envoy_domains = status.envoy_domains,
                         .envoy_limits = status.envoy_limits};
  };
  options.metrics.plans = [&control]() -> std::optional<PlanMetrics> {
    const auto directory = control.plans().directory();
    if (directory == nullptr) return {};
    const PlanStatus status = directory->status();
    return PlanMetrics{status.is_up,    status.age,     status.subjects,     status.pending,
                       status.lookups,  status.changes, status.evicted,      status.refused,
                       status.failures, status.waits,   status.waits_in_vain};
  };
  if (desk) {
    options.fleet = desk->tells();
    options.metrics.fleet = options.fleet.view;
  }
  options.metrics.log_dropped = [] { return log_counts().dropped; };
  if (control.has_rules()) {
    options.gate = &gate;
    options.envoy = &control.envoy();
    reloader.when_done([&manager] { manager.ready(); });
    options.on_hangup = [&reloader] { reloader.reload(); };
  }
  const bool asks_clients = !options.tls.client_ca.empty();
  auto server = make_server(std::move(options), *limiter);
  if (!server) return complain(server.error().message, kCouldNot);
  warn_of_open_secret("--admin-token-file", admin_.token_file);
  warn_of_open_secret("--password-file", doors_.password_file);
  warn_of_open_secret("--tls-key", tls_.key);
  if (*fleet != nullptr) warn_of_open_secrets((*fleet)->options().target);
  announce(**server, {store_.state, admin_.config, gate.policy().rules.size(), asks_clients,
                      control.status().changes_file, envoy_text(control.status()),
                      *fleet == nullptr ? "" : redis::to_string((*fleet)->options().target), !admin_.no_watch});
  if ((*server)->run() == Stopped::drained) return 0;
  log(LogLevel::error, "stopped before every request in flight was answered");
  return kCouldNot;
}

}  // namespace weir
