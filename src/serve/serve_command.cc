// `weir serve`: builds and runs the limiter, the rules and the server of one process.
//
// Exit codes: 0 stopped cleanly, 1 failed, or some requests got no answer. Tested by tests/server/*.sh.
#include "serve/serve_command.h"

#include <algorithm>
#include <csignal>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "base/text.h"
#include "control/config_file.h"
#include "control/reloader.h"
#include "control/usage_control.h"
#include "log/log.h"
#include "serve/announce.h"
#include "serve/fleet_reporter.h"
#include "serve/serve_flags.h"
#include "serve/settings_file.h"
#include "serve/state_watch.h"
#include "server/loop/fiber_task.h"
#include "weir/gate.h"
#include "weir/limiter.h"

namespace weir::serve {
namespace {

// If there are too few file descriptors, lowers the connections of each listener. So no listener uses up those of the
// others, such as the one that answers health checks.
void share_descriptors(server::ServerOptions& options, std::size_t descriptors) {
  if (descriptors >= server::descriptors_needed(options)) return;
  const std::string connections = std::to_string(options.connections_max);
  const std::string wanted = std::to_string(server::descriptors_wanted(options));
  const bool fits = server::fit_connections(options, descriptors);
  log::log(log::LogLevel::warn, "too few file descriptors for --connections " + connections,
           {{"descriptors", std::to_string(descriptors)},
            {"connections", fits ? std::to_string(options.connections_max) + " on each listener" : "as many as fit"},
            {"fix", "raise the hard limit to " + wanted + " (ulimit -Hn, LimitNOFILE=), or lower --connections"}});
}

void warn_of_open_secret(std::string_view what, const std::string& file) {
  if (file.empty() || !control::is_open_to_others(file)) return;
  log::log(log::LogLevel::warn, "secret file is readable or writable by every user",
           {{"what", what}, {"file", file}, {"fix", "chmod o-rwx " + file}});
}

void warn_of_open_secrets(const base::redis::Target& target) {
  warn_of_open_secret("password_file of the store", target.credentials.password_file);
  warn_of_open_secret("sentinel_password_file of the store", target.sentinel_credentials.password_file);
  warn_of_open_secret("key of the store", target.tls.key);
}

std::string envoy_text(const control::ControlStatus& status) {
  if (status.envoy.empty()) return {};
  return status.envoy + ", " + base::counted(status.envoy_limits, "limit") + " of " +
         base::counted(status.envoy_domains, "domain");
}

// Runs a function at the end of its scope.
class AtEnd {
 public:
  explicit AtEnd(std::function<void()> run) : run_(std::move(run)) {}
  ~AtEnd() { run_(); }
  AtEnd(const AtEnd&) = delete;
  AtEnd& operator=(const AtEnd&) = delete;

 private:
  const std::function<void()> run_;
};

// The fleet's store as the backend that the fibers of one loop wait for. Belongs to the thread of that loop.
class FleetBackend final : public server::loop::AsyncBackend {
 public:
  FleetBackend(fleet::FleetStore& store, base::Fibers& fibers) : waiter_(store.make_waiter(fibers)) {}

  int descriptor() const override { return waiter_->descriptor(); }
  void on_readable() override { waiter_->turn(); }
  void send() override { waiter_->flush(); }
  void abandon() override { waiter_->close(); }

 private:
  std::unique_ptr<fleet::FiberWaiter> waiter_;
};

class ServeCommand {
 public:
  explicit ServeCommand(CLI::App& app);

  Result<int> run();

 private:
  Result<server::ServerOptions> server_options() const;

  CLI::App& app_;
  ListenerFlags listeners_;
  StoreFlags store_;
  BoundFlags bounds_;
  LogFlags log_;
  LifeFlags life_;
  TlsFlags tls_;
  PeerFlags peers_;
  SettingsFile settings_;
  UsageFlags usage_;
  AdminFlags admin_;
};

ServeCommand::ServeCommand(CLI::App& app) : app_(app) {
  listeners_.add(app);
  store_.add(app);
  admin_.add(app);
  bounds_.add(app);
  log_.add(app);
  life_.add(app);
  tls_.add(app);
  peers_.add(app);
  settings_.add(app);
  usage_.add(app);
}

Result<server::ServerOptions> ServeCommand::server_options() const {
  server::ServerOptions options;
  options.version = WEIR_VERSION;
  for (const auto& filled : {listeners_.fill(options), bounds_.fill(options), life_.fill(options), tls_.fill(options),
                             peers_.fill(options), log_.fill(options), admin_.fill(options)}) {
    if (!filled) return fail(filled.error());
  }
  return Result<server::ServerOptions>(std::move(options));
}

Result<int> ServeCommand::run() {
  if (const auto set = settings_.apply(app_); !set) return cli::complain(set.error().message, cli::kNotUnderstood);
  auto wanted = server_options();
  if (!wanted) return cli::complain(settings_.with_place(wanted.error().message), cli::kCouldNot);
  server::ServerOptions& options = *wanted;
  server::life::ServiceManager manager;
  options.life.manager = &manager;
  options.life.keeps_state = !store_.state.empty();
  const std::size_t descriptors = cli::ask_for_descriptors(server::descriptors_wanted(options));
  std::signal(SIGPIPE, SIG_IGN);  // the reader of our output may close it
  log::set_log_level(log_.level);
  const log::LogWriter log_writer(log_.format);
  share_descriptors(options, descriptors);

  LimiterOptions limiter_options = store_.limiter_options();
  store_.take(admin_.config);
  auto fleet = store_.fleet();
  if (!fleet) return cli::complain(settings_.with_place(fleet.error().message), cli::kCouldNot);
  // After the last request: writes the saved state for the next start.
  const AtEnd keep([&] {
    if (*fleet != nullptr && !store_.saved_state_file().empty())
      log_if_not_saved(fleet::write_saved_fleet_state(store_.saved_state_file(), (*fleet)->close()));
  });
  if (*fleet != nullptr) {
    if (const auto why = refuse_to_join(**fleet)) return cli::complain(*why, cli::kCouldNot);
    limiter_options.shared = *fleet;
    options.fibers.emplace();
    options.make_backend = [store = *fleet](base::Fibers& fibers) {
      return std::make_unique<FleetBackend>(*store, fibers);
    };
  }
  auto limiter = open_limiter(std::move(limiter_options));
  if (!limiter) return cli::complain(limiter.error().message, cli::kCouldNot);
  const StateWatch state_watch(store_.state);
  Gate gate(*limiter, usage_.gate_options());
  options.counting = &gate;
  control::UsageControl usage(*limiter, gate, usage_.control_options(store_.state));
  options.usage = &usage;
  control::ControlOptions control_options = admin_.control(store_.state, *fleet != nullptr);
  control_options.log_level = log_.level;
  std::optional<FleetReporter> reporter;
  if (*fleet != nullptr) control_options.shared = &reporter.emplace(**fleet);
  control::Control control(*limiter, gate, std::move(control_options));
  if (const auto started = control.start(); !started) return cli::complain(started.error().message, cli::kCouldNot);
  if (reporter) reporter->warn_of_redis();
  if (reporter) reporter->report_rules_of(control);
  // Before the Control is destroyed: stops the heartbeat's reports, which read it.
  const AtEnd stop_reporting([&] {
    if (reporter) reporter->stop_reporting();
  });
  control::Reloader reloader(control, admin_.no_watch ? control::Watching::off : control::Watching::on);
  options.control = &control;
  options.state = store_.state;
  if (reporter) options.fleet = reporter->reports();
  if (control.has_rules()) {
    options.gate = &gate;
    options.envoy = &control.envoy();
    reloader.when_done([&manager] { manager.ready(); });
    options.on_hangup = [&reloader] { reloader.reload(); };
  }
  const bool needs_client_certificate = !options.tls.client_ca.empty();
  auto server = server::make_server(std::move(options), *limiter);
  if (!server) return cli::complain(server.error().message, cli::kCouldNot);
  warn_of_open_secret("--admin-token-file", admin_.token_file);
  warn_of_open_secret("--password-file", listeners_.password_file);
  warn_of_open_secret("--tls-key", tls_.key);
  if (*fleet != nullptr) warn_of_open_secrets((*fleet)->options().target);
  announce(**server, {store_.state, admin_.config, gate.policy().rules.size(), needs_client_certificate,
                      control.status().changes_file, envoy_text(control.status()),
                      *fleet == nullptr ? "" : base::redis::to_string((*fleet)->options().target), !admin_.no_watch});
  if ((*server)->run() == server::loop::Stopped::drained) return 0;
  log::log(log::LogLevel::error, "stopped before every request in flight was answered");
  return cli::kCouldNot;
}

}  // namespace

const cli::Command kServeCommand{"serve", "Run the server: HTTP, gRPC and RESP, until SIGTERM",
                                 cli::declare<ServeCommand>};

}  // namespace weir::serve
