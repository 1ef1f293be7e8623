// The server's listeners and threads. See server.h; tested by tests/server/*.sh.
//
// The calling thread manages the server's life. Each other thread has a loop with every listener and the services of
// its sessions. Loops share only the limiter, the rules and the counts of open connections.
#include "server/server.h"

#include <fcntl.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <stop_token>
#include <thread>
#include <utility>

#include "base/mutex.h"
#include "log/log.h"
#include "server/admin/admin_service.h"
#include "server/grpc/grpc_session.h"
#include "server/http/http_session.h"
#include "server/life/held_sockets.h"
#include "server/life/signals.h"
#include "server/observe/compaction_watch.h"
#include "server/resp/resp_call.h"
#include "server/resp/resp_session.h"
#include "weir/clock.h"

namespace weir::server {
namespace {

// State shared by the sessions of all loops.
struct ForAllLoops {
  observe::DenialLog denials;
  std::optional<observe::Traces> traces{};
  observe::MetricsSources metrics;
  admin::AdminService admin{};
};

// The admin API handles one request at a time, since a request may hold a lock that the next one needs. It reads and
// compiles rules, which needs a larger stack than a check.
constexpr base::FiberOptions kAdminFibers{.stack_bytes = std::size_t{1} << 20, .most = 1};

// What one loop needs for decisions that wait.
struct Waiting {
  explicit Waiting(const base::FiberOptions& options) : fibers(options) {}

  base::Fibers fibers;
  loop::FiberTasks tasks{fibers};
  std::unique_ptr<loop::AsyncBackend> backend{};
};

// The services of one loop's sessions.
struct Services {
  Services(const ServerOptions& options, Limiter& limiter, const life::Ending& ending, ForAllLoops& all,
           loop::LoopCounts& counts)
      : http{.limiter = limiter, .gate = options.gate},
        admin{.limiter = limiter, .api = &all.admin},
        grpc(limiter, options.gate, {options.bounds, &counts.listeners[loop::ListenerName::grpc]}),
        resp{.limiter = limiter, .gate = options.gate} {
    for (http::HttpService* one : {&http, &admin}) {
      one->stopping = &ending.stopping;
      one->leaving = &ending.leaving;
    }
    http.counting = resp.counting = options.counting;
    http.bounds = {options.bounds, &counts.listeners[loop::ListenerName::http]};
    resp.bounds = {options.bounds, &counts.listeners[loop::ListenerName::resp]};
    admin.bounds = {options.bounds, &counts.listeners[loop::ListenerName::admin]};
    grpc.stopping = &ending.stopping;
    grpc.is_redis_command = [](std::string_view name) { return resp::find_command(name) != nullptr; };
    resp.version = options.version;
    resp.password = options.password;
    http.denials = {&all.denials, options.gate, "http"};
    resp.denials = {&all.denials, options.gate, "resp"};
    grpc.methods.denials() = {&all.denials, options.gate, "grpc"};
    http.origins = options.origins;
    http.envoy = options.envoy;
    grpc.methods.rate_limit().use_envoy(options.envoy);
    http.traces = grpc.traces = all.traces ? &*all.traces : nullptr;
  }

  // From now on, the requests of its sessions may wait.
  void use(loop::FiberTasks& tasks) {
    grpc.tasks = &tasks;
    http_contexts.emplace(
        tasks, [this] { return std::make_unique<http::HttpContext>(http); }, loop::WithoutFiber::shed);
    resp_contexts.emplace(
        tasks, [this] { return std::make_unique<resp::RespContext>(resp); }, loop::WithoutFiber::shed);
    admin_contexts.emplace(
        tasks, [this] { return std::make_unique<http::HttpContext>(admin); }, loop::WithoutFiber::wait);
  }

  http::HttpService http, admin;
  grpc::GrpcService grpc;
  resp::RespService resp;
  std::optional<loop::ContextPool> http_contexts{}, resp_contexts{}, admin_contexts{};  // none: nothing waits
};

class ThreadedServer final : public Server {
 public:
  ThreadedServer(ServerOptions options, Limiter& limiter)
      : options_(std::move(options)),
        proxies_(options_.peers.proxies),
        limiter_(limiter),
        all_{.denials = observe::DenialLog(options_.denials, limiter),
             .metrics = {.limiter = &limiter,
                         .gate = options_.counting,
                         .envoy = options_.envoy,
                         .version = options_.version,
                         .connections_max = options_.connections_max,
                         .started = limiter.now()}} {}

  Result<void> prepare() {
    fill_admin();
    add_metrics();
    if (!options_.traces.collector.host.empty()) all_.traces.emplace(options_.traces);
    for (std::size_t i = 0; i < options_.threads + (has_admin() ? 1 : 0); ++i) {
      Waiting* const waiting = add_waiting(i == options_.threads);
      auto loop = loop::make_loop(limiter_, {.buffers_max = options_.buffers_max / options_.threads,
                                             .bounds = options_.bounds,
                                             .counting = options_.counting,
                                             .fibers = waiting == nullptr ? nullptr : &waiting->fibers,
                                             .backend = waiting == nullptr ? nullptr : waiting->backend.get()});
      if (!loop) return fail(std::move(loop.error()));
      loops_.push_back(*std::move(loop));
      loop::LoopCounts& counts = loops_.back()->counts();
      services_.push_back(std::make_unique<Services>(options_, limiter_, life_.ending(), all_, counts));
      if (waiting != nullptr) services_.back()->use(waiting->tasks);
      all_.metrics.loops.push_back(&counts);
    }
    if (options_.tls.is_on()) {
      auto certificates = loop::load_certificates(options_.tls);
      if (!certificates) return fail(std::move(certificates.error()));
      certificates_ = *std::move(certificates);
    }
    if (auto opened = open_listeners(); !opened) return opened;
    all_.admin.access.any_host = addresses_.admin && addresses_.admin->is_unix();
    std::function<void()> on_hangup;
    if (options_.on_hangup || certificates_) on_hangup = [this] { hang_up(); };
    if (!life_.open(std::move(on_hangup), options_.threads)) {
      return fail(ErrorCode::unavailable, std::string("cannot watch for signals: ") + std::strerror(errno));
    }
    return {};
  }

  const ServerAddresses& addresses() const override { return addresses_; }

  void upgrade() override { life::Life::upgrade(); }
  void reload_certificates() override {
    if (certificates_) certificates_->reload();
  }
  loop::TlsStatus tls_status() const override { return certificates_ ? certificates_->status() : loop::TlsStatus{}; }

  loop::Stopped run() override {
    const std::jthread every_second([this](const std::stop_token& stop) { work_every_second(stop); });
    std::vector<loop::Stopped> ends(loops_.size(), loop::Stopped::drained);
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < loops_.size(); ++i) {
      threads.emplace_back([this, &ends, i] {
        ends[i] = loops_[i]->run();
        life::Life::note_loop_ended();
      });
    }
    life_.run();
    for (std::thread& thread : threads) thread.join();
    send_last_spans();
    const bool is_forced = std::ranges::count(ends, loop::Stopped::forced) > 0;
    return is_forced ? loop::Stopped::forced : loop::Stopped::drained;
  }

 private:
  // Null if nothing waits.
  Waiting* add_waiting(bool is_admin) {
    if (!options_.fibers) return nullptr;
    Waiting& waiting = *waiting_.emplace_back(std::make_unique<Waiting>(is_admin ? kAdminFibers : *options_.fibers));
    if (options_.make_backend) waiting.backend = options_.make_backend(waiting.fibers);
    return &waiting;
  }

  // Reloads a renewed certificate by itself, and logs when keys are compacted.
  void work_every_second(const std::stop_token& stop) {
    observe::CompactionWatch compaction(limiter_.stats().compacted);
    base::Mutex mutex;
    std::condition_variable_any stopped;
    base::MutexLock lock(mutex);
    while (!stopped.wait_for(lock, stop, std::chrono::seconds(1), [&] { return stop.stop_requested(); })) {
      if (certificates_) certificates_->reload_if_changed();
      observe::log_compaction(compaction, limiter_);
    }
  }

  // Waits until all spans are sent, for at most kMost, and no longer after a second stop signal.
  void send_last_spans() {
    constexpr std::chrono::milliseconds kMost{2'500}, kLook{50};
    if (!all_.traces) return;
    for (auto left = kMost; left.count() > 0 && !life_.is_hurried(); left -= kLook) {
      if (all_.traces->finish(kLook)) return;
    }
  }

  using MakeSessionOf = std::function<std::unique_ptr<loop::Session>(Services&, std::string peer)>;

  Result<void> open_listeners() {
    const auto http = [](Services& services, std::string peer) {
      if (services.http_contexts) return http::make_http_session(*services.http_contexts, std::move(peer));
      return http::make_http_session(services.http, std::move(peer));
    };
    const auto resp = [this](Services& services, std::string peer) {
      if (services.resp_contexts) return resp::make_resp_session(*services.resp_contexts, ++last_id_, std::move(peer));
      return resp::make_resp_session(services.resp, ++last_id_, std::move(peer));
    };
    const auto grpc = [](Services& services, std::string) { return grpc::make_grpc_session(services.grpc); };
    const auto admin = [](Services& services, std::string peer) {
      if (services.admin_contexts) return http::make_http_session(*services.admin_contexts, std::move(peer));
      return http::make_http_session(services.admin, std::move(peer));
    };
    const loop::Timeouts timeouts = options_.bounds.http_timeouts(), others = options_.bounds.other_timeouts();
    return open_listener(loop::ListenerName::http, options_.http, addresses_.http, timeouts, http)
        .and_then([&] { return open_listener(loop::ListenerName::grpc, options_.grpc, addresses_.grpc, others, grpc); })
        .and_then([&] { return open_listener(loop::ListenerName::resp, options_.resp, addresses_.resp, others, resp); })
        .and_then([&] {
          return open_listener(loop::ListenerName::admin, options_.admin, addresses_.admin, timeouts, admin);
        });
  }

  Result<void> open_listener(loop::ListenerName which, const std::optional<loop::Address>& wanted,
                             std::optional<loop::Address>& real, loop::Timeouts timeouts,
                             const MakeSessionOf& make_session) {
    const std::string name(loop::kListenerNames[which]);
    const bool is_admin = which == loop::ListenerName::admin;  // it has its own loop
    const std::size_t first = is_admin ? options_.threads : 0, loops = is_admin ? 1 : options_.threads;
    std::vector<base::Descriptor> sockets = take_inherited(name);
    if (!sockets.empty()) {
      real = loop::address_of(sockets[0]);
      if (is_admin && !real->is_loopback() && !options_.admin_access.has_token()) {
        return fail(ErrorCode::invalid_argument,
                    "the inherited admin socket listens on " + loop::to_string(*real) +
                        ", where other machines can control the server; use a loopback address or set "
                        "--admin-token-file");
      }
      if (std::ranges::count(options_.life.inherited.files, name) > 0) sockets_.own_file(name, real->path);
    } else if (wanted) {
      auto listening = loop::listen_on(*wanted, "--" + name, loops);
      if (!listening) return fail(std::move(listening.error()));
      real = listening->address;
      sockets = std::move(listening->sockets);
      if (wanted->is_unix()) sockets_.own_file(name, wanted->path);
    } else {
      return {};
    }
    const loop::HandshakeOptions handshake = handshake_of(which, *real);
    addresses_.tls[which] = handshake.tls != nullptr;
    all_.metrics.open[which] = &listeners_[which].open;
    // Every loop gets a socket, and every socket a loop, since the kernel may queue clients at any of them.
    for (std::size_t i = 0; i < std::max(sockets.size(), loops); ++i) {
      const std::size_t l = first + i % loops;
      Services& services = *services_[l];
      base::Descriptor socket(fcntl(sockets[i % sockets.size()].get(), F_DUPFD_CLOEXEC, 0));
      if (!socket) return fail(ErrorCode::unavailable, std::string("cannot listen: ") + std::strerror(errno));
      loop::keep_alive(socket.get(), options_.peers.keepalive);
      loops_[l]->open(std::move(socket),
                      {.timeouts = timeouts,
                       .make_session = [make_session, &services](
                                           std::string peer) { return make_session(services, std::move(peer)); },
                       .handshake = handshake,
                       .state = &listeners_[which],
                       .counts = &loops_[l]->counts().listeners[which],
                       .connections_max = options_.connections_max,
                       .refused_max = options_.refused_max,
                       .is_sheddable = !is_admin});
    }
    sockets_.hold(name, std::move(sockets));
    return {};
  }

  bool has_admin() const {
    return options_.admin || std::ranges::any_of(options_.life.inherited.sockets, [](const life::NamedSocket& given) {
             return given.listener == "admin";
           });
  }

  std::vector<base::Descriptor> take_inherited(const std::string& name) {
    std::vector<base::Descriptor> sockets;
    for (life::NamedSocket& given : options_.life.inherited.sockets) {
      if (given.listener == name) sockets.push_back(std::move(given.socket));
    }
    return sockets;
  }

  void fill_admin() {
    all_.admin.control = options_.control;
    all_.admin.metrics = &all_.metrics;
    all_.admin.usage = options_.usage;
    all_.admin.fleet = options_.fleet;
    all_.admin.access = options_.admin_access;
    all_.admin.version = options_.version;
    all_.admin.state = options_.state;
    all_.admin.threads = options_.threads;
    all_.admin.started = limiter_.now();
    all_.admin.listeners = [this] { return listener_views(); };
  }

  // This server's own values in /metrics, beside its counts.
  void add_metrics() {
    observe::MetricsHooks& hooks = all_.metrics.hooks;
    hooks.log_dropped = [] { return log::log_counts().dropped; };
    hooks.denials = [this] { return all_.denials.counts(); };
    hooks.traces = [this] { return all_.traces ? all_.traces->counts() : observe::TraceCounts{}; };
    hooks.tls = [this] { return tls_status(); };
    hooks.fleet = options_.fleet.view;
    if (options_.usage != nullptr) hooks.usage = [usage = options_.usage] { return usage->status(); };
    if (options_.control == nullptr) return;
    hooks.config = [control = options_.control] { return control->status(); };
    hooks.plans = [control = options_.control]() -> std::optional<plans::PlanStatus> {
      const auto directory = control->plans().directory();
      return directory == nullptr ? std::nullopt : std::optional(directory->status());
    };
  }

  std::vector<admin::ListenerView> listener_views() const {
    const loop::PerListener<const std::optional<loop::Address>*> addresses = {
        {{&addresses_.http, &addresses_.grpc, &addresses_.resp, &addresses_.admin}}};
    std::vector<admin::ListenerView> views;
    for (const loop::ListenerName name : loop::kEveryListener) {
      const std::optional<loop::Address>& address = *addresses[name];
      if (!address) continue;
      admin::ListenerView& view =
          views.emplace_back(admin::ListenerView{loop::kListenerNames[name], loop::to_string(*address),
                                                 listeners_[name].open.load(), options_.connections_max});
      for (const auto& loop : loops_) view.requests += loop->counts().listeners[name].requests.get();
    }
    return views;
  }

  loop::HandshakeOptions handshake_of(loop::ListenerName name, const loop::Address& address) const {
    constexpr loop::PerListener<loop::TlsInside> kInside = {
        {{loop::TlsInside::http1, loop::TlsInside::h2, loop::TlsInside::redis, loop::TlsInside::http1}}};
    const bool is_secret = options_.tls.listeners[name] && !address.is_unix();
    return {.proxies = options_.peers.proxied[name] ? &proxies_ : nullptr,
            .tls = is_secret ? certificates_.get() : nullptr,
            .inside = kInside[name]};
  }

  void hang_up() {
    reload_certificates();
    if (options_.on_hangup) return options_.on_hangup();
    if (options_.life.manager != nullptr) options_.life.manager->ready();  // there are no rules to reload
  }

  ServerOptions options_;
  const base::IpSet proxies_;
  std::unique_ptr<loop::TlsCertificates> certificates_;
  Limiter& limiter_;
  ServerAddresses addresses_;
  ForAllLoops all_;
  loop::PerListener<loop::ListenerState> listeners_{};
  std::atomic<std::int64_t> last_id_{0};
  life::HeldSockets sockets_;
  life::Life life_{options_.life, loops_, sockets_};
  std::vector<std::unique_ptr<Waiting>> waiting_;
  std::vector<std::unique_ptr<Services>> services_;
  std::vector<std::unique_ptr<loop::Loop>> loops_;  // last: sessions end before the services they use
};

}  // namespace

// Descriptors other than connections: listeners, loops, files.
static std::size_t descriptors_beside(const ServerOptions& options) {
  return 2 * loop::kListeners * options.threads + 64;
}

std::size_t descriptors_wanted(const ServerOptions& options) {
  return loop::kListeners * (options.connections_max + options.refused_max) + descriptors_beside(options);
}

std::size_t descriptors_needed(const ServerOptions& options) {
  return options.connections_max + loop::kListeners * options.refused_max + descriptors_beside(options);
}

bool fit_connections(ServerOptions& options, std::size_t descriptors) {
  constexpr std::size_t kShareMin = 8;
  const std::size_t beside = descriptors_beside(options);
  if (descriptors < beside + loop::kListeners * kShareMin) return false;
  const std::size_t share = (descriptors - beside) / loop::kListeners;
  options.refused_max = std::min(options.refused_max, share / 4);
  options.connections_max = std::min(options.connections_max, share - options.refused_max);
  return true;
}

Result<std::unique_ptr<Server>> make_server(ServerOptions options, Limiter& limiter) {
  auto server = std::make_unique<ThreadedServer>(std::move(options), limiter);
  if (auto prepared = server->prepare(); !prepared) return fail(std::move(prepared.error()));
  return server;
}

}  // namespace weir::server
