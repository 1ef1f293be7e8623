// The server's listeners and threads. See server.h; tested by tests/server/*.sh.
//
// The calling thread manages the server's life. Each other thread has a loop with every listener and the services of
// its sessions. Loops share only the limiter, the rules and the counts of open connections.
#include "server/life/server.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "server/admin/admin_service.h"
#include "server/grpc/grpc_session.h"
#include "server/http/http_session.h"
#include "server/life/certificate_watch.h"
#include "server/life/held_sockets.h"
#include "server/life/signals.h"
#include "server/loop/listener.h"
#include "server/observe/compact_notice.h"
#include "server/resp/resp_session.h"
#include "weir/clock.h"

namespace weir {
namespace {

// State shared by the sessions of all loops.
struct ForAllLoops {
  DenialLog denials;
  std::optional<Traces> traces{};
  MetricsSources metrics;
  AdminService admin{};
};

// The admin API handles one request at a time, since some take a lock that the next needs. It reads and compiles
// rules, which needs a larger stack than a check.
constexpr FiberOptions kAdminFibers{.stack_bytes = std::size_t{1} << 20, .most = 1};

// What one loop needs for decisions that wait.
struct Waiting {
  explicit Waiting(const FiberOptions& options) : fibers(options) {}

  Fibers fibers;
  Errands errands{fibers};
  std::unique_ptr<FarEnd> far_end{};
};

// The services of one loop's sessions.
struct Services {
  Services(const ServerOptions& options, Limiter& limiter, const Ending& ending, ForAllLoops& all, LoopCounts& counts)
      : http{.limiter = limiter, .gate = options.gate},
        admin{.limiter = limiter, .face = HttpFace::admin},
        grpc(limiter, options.gate, {options.bounds, &counts.doors[1]}),
        resp{.limiter = limiter, .gate = options.gate} {
    for (HttpService* one : {&http, &admin}) {
      one->stopping = &ending.stopping;
      one->leaving = &ending.leaving;
    }
    http.counting = resp.counting = options.counting;
    http.bounds = {options.bounds, &counts.doors[0]};
    resp.bounds = {options.bounds, &counts.doors[2]};
    admin.bounds = {options.bounds, &counts.doors[3]};
    admin.metrics = &all.metrics;
    admin.admin = &all.admin;
    grpc.stopping = &ending.stopping;
    resp.version = options.version;
    resp.password = options.password;
    http.denials = {&all.denials, options.gate, "http"};
    resp.denials = {&all.denials, options.gate, "resp"};
    grpc.methods.denials() = {&all.denials, options.gate, "grpc"};
    http.origins = options.origins;
    http.rls.envoy = options.envoy;
    grpc.methods.rate_limit().use_envoy(options.envoy);
    http.traces = grpc.traces = all.traces ? &*all.traces : nullptr;
  }

  // From now on its sessions' requests may wait.
  void use(Errands& errands) {
    grpc.errands = &errands;
    http_desks.emplace(
        errands, [this] { return std::make_unique<HttpDesk>(http); }, WithoutFiber::shed);
    resp_desks.emplace(
        errands, [this] { return std::make_unique<RespDesk>(resp); }, WithoutFiber::shed);
    admin_desks.emplace(
        errands, [this] { return std::make_unique<HttpDesk>(admin); }, WithoutFiber::wait);
  }

  HttpService http, admin;
  GrpcService grpc;
  RespService resp;
  std::optional<Desks> http_desks{}, resp_desks{}, admin_desks{};  // none: nothing waits
};

class ThreadedServer final : public Server {
 public:
  ThreadedServer(ServerOptions options, Limiter& limiter)
      : options_(std::move(options)),
        proxies_(options_.peers.proxies),
        limiter_(limiter),
        all_{.denials = DenialLog(options_.denials, limiter),
             .metrics = {.limiter = &limiter,
                         .gate = options_.counting,
                         .envoy = options_.envoy,
                         .version = options_.version,
                         .connections_max = options_.connections_max,
                         .started = limiter.now(),
                         .hooks = options_.metrics}} {}

  Result<void> prepare() {
    look_after();
    add_metrics();
    if (!options_.traces.host.empty()) all_.traces.emplace(options_.traces);
    for (std::size_t i = 0; i < options_.threads + (has_admin() ? 1 : 0); ++i) {
      Waiting* const waiting = add_waiting(i == options_.threads);
      auto loop = make_loop(limiter_, {.buffers_max = options_.buffers_max / options_.threads,
                                       .bounds = options_.bounds,
                                       .counting = options_.counting,
                                       .fibers = waiting == nullptr ? nullptr : &waiting->fibers,
                                       .far_end = waiting == nullptr ? nullptr : waiting->far_end.get()});
      if (!loop) return fail(std::move(loop.error()));
      loops_.push_back(*std::move(loop));
      LoopCounts& counts = loops_.back()->counts();
      services_.push_back(std::make_unique<Services>(options_, limiter_, life_.ending(), all_, counts));
      if (waiting != nullptr) services_.back()->use(waiting->errands);
      all_.metrics.loops.push_back(&counts);
    }
    if (options_.tls.is_on()) {
      auto certificates = load_certificates(options_.tls);
      if (!certificates) return fail(std::move(certificates.error()));
      certificates_ = *std::move(certificates);
    }
    if (auto opened = open_doors(); !opened) return opened;
    all_.admin.access.any_host = addresses_.admin && addresses_.admin->is_unix();
    std::function<void()> on_hangup;
    if (options_.on_hangup || certificates_) on_hangup = [this] { hang_up(); };
    if (!life_.open(std::move(on_hangup), options_.threads)) {
      return fail(ErrorCode::unavailable, std::string("cannot watch for signals: ") + std::strerror(errno));
    }
    return {};
  }

  const ServerAddresses& addresses() const override { return addresses_; }

  void upgrade() override { Life::upgrade(); }
  void reload_certificates() override {
    if (certificates_) certificates_->reload();
  }
  TlsStatus tls_status() const override { return certificates_ ? certificates_->status() : TlsStatus{}; }

  Stopped run() override {
    std::optional<CertificateWatch> watch;
    if (certificates_) watch.emplace(*certificates_);
    const CompactNotice notice(limiter_);
    std::vector<Stopped> ends(loops_.size(), Stopped::drained);
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < loops_.size(); ++i) {
      threads.emplace_back([this, &ends, i] {
        ends[i] = loops_[i]->run();
        Life::tell_loop_ended();
      });
    }
    life_.run();
    for (std::thread& thread : threads) thread.join();
    send_last_spans();
    for (const Stopped end : ends) {
      if (end == Stopped::forced) return end;
    }
    return Stopped::drained;
  }

 private:
  // Null if nothing waits.
  Waiting* add_waiting(bool is_admin) {
    if (!options_.fibers) return nullptr;
    Waiting& waiting = *waiting_.emplace_back(std::make_unique<Waiting>(is_admin ? kAdminFibers : *options_.fibers));
    if (options_.make_far_end) waiting.far_end = options_.make_far_end(waiting.fibers);
    return &waiting;
  }

  // Waits for a moment, and not at all after a second stop signal.
  void send_last_spans() {
    constexpr std::chrono::milliseconds kMost{2'500}, kLook{50};
    if (!all_.traces) return;
    for (auto left = kMost; left.count() > 0 && !life_.is_hurried(); left -= kLook) {
      if (all_.traces->finish(kLook)) return;
    }
  }

  using MakeSessionOf = std::function<std::unique_ptr<Session>(Services&, std::string peer)>;

  Result<void> open_doors() {
    const auto http = [](Services& services, std::string peer) {
      if (services.http_desks) return make_http_session(*services.http_desks, std::move(peer));
      return make_http_session(services.http, std::move(peer));
    };
    const auto resp = [this](Services& services, std::string peer) {
      if (services.resp_desks) return make_resp_session(*services.resp_desks, ++last_id_, std::move(peer));
      return make_resp_session(services.resp, ++last_id_, std::move(peer));
    };
    const auto grpc = [](Services& services, std::string) { return make_grpc_session(services.grpc); };
    const auto admin = [](Services& services, std::string peer) {
      if (services.admin_desks) return make_http_session(*services.admin_desks, std::move(peer));
      return make_http_session(services.admin, std::move(peer));
    };
    const Patience patience = options_.bounds.http_patience(), others = options_.bounds.other_patience();
    return open_door(0, options_.http, addresses_.http, patience, http)
        .and_then([&] { return open_door(1, options_.grpc, addresses_.grpc, others, grpc); })
        .and_then([&] { return open_door(2, options_.resp, addresses_.resp, others, resp); })
        .and_then([&] { return open_door(3, options_.admin, addresses_.admin, patience, admin); });
  }

  Result<void> open_door(std::size_t number, const std::optional<Address>& wanted, std::optional<Address>& real,
                         Patience patience, const MakeSessionOf& make_session) {
    const std::string door(kDoorNames[number]);
    const bool is_admin = number == static_cast<std::size_t>(DoorName::admin);  // it has its own loop
    const std::size_t first = is_admin ? options_.threads : 0, loops = is_admin ? 1 : options_.threads;
    std::vector<Descriptor> sockets = take_inherited(door);
    if (!sockets.empty()) {
      real = address_of(sockets[0]);
      if (is_admin && !real->is_loopback() && !options_.admin_access.has_token()) {
        return fail(ErrorCode::invalid_argument,
                    "the inherited admin socket listens on " + to_string(*real) +
                        ", where other machines can control the server; use a loopback address or set "
                        "--admin-token-file");
      }
      if (std::ranges::count(options_.life.inherited.files, door) > 0) sockets_.own_file(door, real->path);
    } else if (wanted) {
      auto listening = listen_on(*wanted, "--" + door, loops);
      if (!listening) return fail(std::move(listening.error()));
      real = listening->address;
      sockets = std::move(listening->sockets);
      if (wanted->is_unix()) sockets_.own_file(door, wanted->path);
    } else {
      return {};
    }
    const Entrance entrance = entrance_of(number, *real);
    addresses_.tls[number] = entrance.tls != nullptr;
    all_.metrics.open[number] = &doors_[number].open;
    // Every loop gets a socket, and every socket a loop, since the kernel may queue clients at any of them.
    for (std::size_t i = 0; i < std::max(sockets.size(), loops); ++i) {
      const std::size_t l = first + i % loops;
      Services& services = *services_[l];
      Descriptor socket(fcntl(sockets[i % sockets.size()].get(), F_DUPFD_CLOEXEC, 0));
      if (!socket) return fail(ErrorCode::unavailable, std::string("cannot listen: ") + std::strerror(errno));
      keep_alive(socket.get(), options_.peers.keepalive);
      loops_[l]->open(std::move(socket),
                      {.patience = patience,
                       .make_session = [make_session, &services](
                                           std::string peer) { return make_session(services, std::move(peer)); },
                       .entrance = entrance,
                       .state = &doors_[number],
                       .counts = &loops_[l]->counts().doors[number],
                       .connections_max = options_.connections_max,
                       .refused_max = options_.refused_max,
                       .is_sheddable = !is_admin});
    }
    sockets_.hold(door, std::move(sockets));
    return {};
  }

  bool has_admin() const {
    return options_.admin || std::ranges::any_of(options_.life.inherited.sockets,
                                                 [](const NamedSocket& given) { return given.door == "admin"; });
  }

  std::vector<Descriptor> take_inherited(const std::string& door) {
    std::vector<Descriptor> sockets;
    for (NamedSocket& given : options_.life.inherited.sockets) {
      if (given.door == door) sockets.push_back(std::move(given.socket));
    }
    return sockets;
  }

  void look_after() {
    all_.admin.control = options_.control;
    all_.admin.usage = options_.usage;
    all_.admin.fleet = options_.fleet;
    all_.admin.access = options_.admin_access;
    all_.admin.version = options_.version;
    all_.admin.state = options_.state;
    all_.admin.threads = options_.threads;
    all_.admin.started = limiter_.now();
    all_.admin.doors = [this] { return door_views(); };
  }

  // This server's own values in /metrics, beside its counts.
  void add_metrics() {
    MetricsHooks& hooks = all_.metrics.hooks;
    hooks.denials_logged = [this] { return all_.denials.counts().logged; };
    hooks.denials_dropped = [this] { return all_.denials.counts().dropped; };
    const auto traces = [this] { return all_.traces ? all_.traces->counts() : TraceCounts{}; };
    hooks.traces_sent = [traces] { return traces().sent; };
    hooks.traces_dropped = [traces] { return traces().dropped; };
    hooks.certificate_expiry = [this]() -> std::optional<Micros> {
      const TlsStatus tls = tls_status();
      return tls.is_on ? std::optional(Micros{tls.not_after * 1'000'000}) : std::nullopt;
    };
    hooks.certificate_reloads = [this] {
      const TlsStatus tls = tls_status();
      return ReloadCounts{tls.reloads, tls.failed_reloads};
    };
  }

  std::vector<DoorView> door_views() const {
    const std::array<const std::optional<Address>*, kDoors> addresses = {&addresses_.http, &addresses_.grpc,
                                                                         &addresses_.resp, &addresses_.admin};
    std::vector<DoorView> views;
    for (std::size_t i = 0; i < kDoors; ++i) {
      const std::optional<Address>& address = *addresses[i];
      if (!address) continue;
      DoorView& view = views.emplace_back(
          DoorView{kDoorNames[i], to_string(*address), doors_[i].open.load(), options_.connections_max});
      for (const auto& loop : loops_) view.requests += loop->counts().doors[i].requests.get();
    }
    return views;
  }

  Entrance entrance_of(std::size_t door, const Address& address) const {
    constexpr std::array<TlsInside, kDoors> kInside = {TlsInside::http1, TlsInside::h2, TlsInside::redis,
                                                       TlsInside::http1};
    const bool is_secret = options_.tls.doors[door] && !address.is_unix();
    return {.proxies = options_.peers.proxied[door] ? &proxies_ : nullptr,
            .tls = is_secret ? certificates_.get() : nullptr,
            .inside = kInside[door]};
  }

  void hang_up() {
    reload_certificates();
    if (options_.on_hangup) return options_.on_hangup();
    if (options_.life.manager != nullptr) options_.life.manager->ready();  // there are no rules to reload
  }

  ServerOptions options_;
  const IpSet proxies_;
  std::unique_ptr<TlsCertificates> certificates_;
  Limiter& limiter_;
  ServerAddresses addresses_;
  ForAllLoops all_;
  std::array<DoorState, kDoors> doors_{};
  std::atomic<std::int64_t> last_id_{0};
  HeldSockets sockets_;
  Life life_{options_.life, loops_, sockets_};
  std::vector<std::unique_ptr<Waiting>> waiting_;
  std::vector<std::unique_ptr<Services>> services_;
  std::vector<std::unique_ptr<Loop>> loops_;  // last: sessions end before the services they use
};

}  // namespace

// Descriptors other than connections: listeners, loops, files.
static std::size_t descriptors_beside(const ServerOptions& options) { return 2 * kDoors * options.threads + 64; }

std::size_t descriptors_wanted(const ServerOptions& options) {
  return kDoors * (options.connections_max + options.refused_max) + descriptors_beside(options);
}

std::size_t descriptors_needed(const ServerOptions& options) {
  return options.connections_max + kDoors * options.refused_max + descriptors_beside(options);
}

bool fit_connections(ServerOptions& options, std::size_t descriptors) {
  constexpr std::size_t kShareMin = 8;
  const std::size_t beside = descriptors_beside(options);
  if (descriptors < beside + kDoors * kShareMin) return false;
  const std::size_t share = (descriptors - beside) / kDoors;
  options.refused_max = std::min(options.refused_max, share / 4);
  options.connections_max = std::min(options.connections_max, share - options.refused_max);
  return true;
}

Result<std::unique_ptr<Server>> make_server(ServerOptions options, Limiter& limiter) {
  auto server = std::make_unique<ThreadedServer>(std::move(options), limiter);
  if (auto prepared = server->prepare(); !prepared) return fail(std::move(prepared.error()));
  return server;
}

}  // namespace weir
