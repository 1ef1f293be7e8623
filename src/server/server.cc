// Doors, threads and signals. See server.h; tested by tests/server/*.sh.
//
// The calling thread waits for signals. Each other has a loop, and in it every door with what its sessions work with:
// nothing is shared between loops but the limiter, the rules and the counts of open connections.
#include "server/server.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "server/admin_service.h"
#include "server/certificate_watch.h"
#include "server/grpc_session.h"
#include "server/http_session.h"
#include "server/listener.h"
#include "server/resp_session.h"
#include "server/signals.h"
#include "weir/clock.h"

namespace weir {
namespace {

// What the sessions of all loops are told of the end.
struct Ending {
  std::atomic<bool> stopping{false};  // the server is: nobody should send more
  std::atomic<bool> leaving{false};   // this process is: connections should move on
};

// What the sessions of all loops share.
struct ForAllLoops {
  Ending ending{};
  DenialLog denials;
  std::optional<Traces> traces{};
  MetricsSources metrics;
  AdminService admin{};
};

// What the sessions of one loop work with.
struct Services {
  Services(const ServerOptions& options, Limiter& limiter, ForAllLoops& all, LoopCounts& counts)
      : http{.limiter = limiter, .gate = options.gate},
        admin{.limiter = limiter, .face = HttpFace::admin},
        grpc(limiter, options.gate, {options.bounds, &counts.doors[1]}),
        resp{.limiter = limiter, .gate = options.gate} {
    for (HttpService* one : {&http, &admin}) {
      one->stopping = &all.ending.stopping;
      one->leaving = &all.ending.leaving;
    }
    http.counting = resp.counting = options.counting;
    http.bounds = {options.bounds, &counts.doors[0]};
    resp.bounds = {options.bounds, &counts.doors[2]};
    admin.bounds = {options.bounds, &counts.doors[3]};
    admin.metrics = &all.metrics;
    admin.admin = &all.admin;
    grpc.stopping = &all.ending.stopping;
    resp.version = options.version;
    resp.password = options.password;
    http.denials = {&all.denials, options.gate, "http"};
    resp.denials = {&all.denials, options.gate, "resp"};
    grpc.methods.denials() = {&all.denials, options.gate, "grpc"};
    http.traces = grpc.traces = all.traces ? &*all.traces : nullptr;
  }

  HttpService http, admin;
  GrpcService grpc;
  RespService resp;
};

// The file of a unix socket. Another server may have put its own in the same place.
struct SocketFile {
  static SocketFile at(const std::string& path) {
    struct stat about {};
    if (::stat(path.c_str(), &about) != 0) return {path, 0, 0};
    return {path, about.st_dev, about.st_ino};
  }

  std::string path;
  dev_t device = 0;
  ino_t number = 0;
  friend bool operator==(const SocketFile&, const SocketFile&) = default;
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
                         .version = options_.version,
                         .connections_max = options_.connections_max,
                         .started = limiter.now(),
                         .hooks = options_.metrics}} {}
  ~ThreadedServer() override { remove_paths(); }

  Result<void> prepare() {
    look_after();
    add_metrics();
    if (!options_.traces.host.empty()) all_.traces.emplace(options_.traces);
    for (std::size_t i = 0; i < options_.threads + (options_.admin ? 1 : 0); ++i) {
      auto loop = make_loop(limiter_, {.buffers_max = options_.buffers_max / options_.threads,
                                       .bounds = options_.bounds,
                                       .counting = options_.counting});
      if (!loop) return fail(std::move(loop.error()));
      loops_.push_back(*std::move(loop));
      LoopCounts& counts = loops_.back()->counts();
      services_.push_back(std::make_unique<Services>(options_, limiter_, all_, counts));
      all_.metrics.loops.push_back(&counts);
    }
    if (options_.tls.is_on()) {
      auto certificates = load_certificates(options_.tls);
      if (!certificates) return fail(std::move(certificates.error()));
      certificates_ = *std::move(certificates);
    }
    if (auto opened = open_doors(); !opened) return opened;
    const bool is_opened = options_.on_hangup || certificates_ ? signals_.open({SIGTERM, SIGINT, SIGHUP})
                                                               : signals_.open({SIGTERM, SIGINT});
    if (!is_opened) {
      return fail(ErrorCode::unavailable, std::string("cannot watch for signals: ") + std::strerror(errno));
    }
    return {};
  }

  const ServerAddresses& addresses() const override { return addresses_; }

  void reload_certificates() override {
    if (certificates_) certificates_->reload();
  }
  TlsStatus tls_status() const override { return certificates_ ? certificates_->status() : TlsStatus{}; }

  Stopped run() override {
    std::optional<CertificateWatch> watch;
    if (certificates_) watch.emplace(*certificates_);
    std::vector<Stopped> ends(loops_.size(), Stopped::drained);
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < loops_.size(); ++i) {
      threads.emplace_back([this, &ends, i] {
        ends[i] = loops_[i]->run();
        Signals::tell(0);
      });
    }
    for (std::size_t running = loops_.size(); running > 0;) {
      const int signal = signals_.next(std::min(drain_at_, leave_at_) - stopwatch(), -1);
      if (signal == 0) --running;
      if (signal > 0) on_signal(signal);
      on_time();
    }
    for (std::thread& thread : threads) thread.join();
    for (const Stopped end : ends) {
      if (end == Stopped::forced) return end;
    }
    return Stopped::drained;
  }

 private:
  using MakeSessionOf = std::function<std::unique_ptr<Session>(Services&, std::string peer)>;

  Result<void> open_doors() {
    const auto http = [](Services& services, std::string peer) {
      return make_http_session(services.http, std::move(peer));
    };
    const auto resp = [this](Services& services, std::string) { return make_resp_session(services.resp, ++last_id_); };
    const auto grpc = [](Services& services, std::string) { return make_grpc_session(services.grpc); };
    const auto admin = [](Services& services, std::string peer) {
      return make_http_session(services.admin, std::move(peer));
    };
    const Patience patience = options_.bounds.http_patience(), others = options_.bounds.other_patience();
    return open_door(0, options_.http, addresses_.http, "--http", patience, http)
        .and_then([&] { return open_door(1, options_.grpc, addresses_.grpc, "--grpc", others, grpc); })
        .and_then([&] { return open_door(2, options_.resp, addresses_.resp, "--resp", others, resp); })
        .and_then([&] { return open_door(3, options_.admin, addresses_.admin, "--admin", patience, admin); });
  }

  Result<void> open_door(std::size_t number, const std::optional<Address>& wanted, std::optional<Address>& real,
                         std::string_view option, Patience patience, const MakeSessionOf& make_session) {
    if (!wanted) return {};
    const bool is_admin = number == static_cast<std::size_t>(DoorName::admin);  // which has a loop of its own
    const std::size_t first = is_admin ? options_.threads : 0, loops = is_admin ? 1 : options_.threads;
    const Entrance entrance = entrance_of(number, *wanted);
    addresses_.tls[number] = entrance.tls != nullptr;
    auto listening = listen_on(*wanted, option, loops);
    if (!listening) return fail(std::move(listening.error()));
    real = listening->address;
    all_.metrics.open[number] = &doors_[number].open;
    if (wanted->is_unix()) paths_.push_back(SocketFile::at(wanted->path));
    for (std::size_t i = 0; i < loops; ++i) {
      Services& services = *services_[first + i];
      Descriptor socket = i < listening->sockets.size() ? std::move(listening->sockets[i])
                                                        : Descriptor(fcntl(shared_socket_, F_DUPFD_CLOEXEC, 0));
      if (!socket) return fail(ErrorCode::unavailable, std::string("cannot listen: ") + std::strerror(errno));
      if (i == 0) shared_socket_ = socket.get();
      keep_alive(socket.get(), options_.peers.keepalive);
      Loop& loop = *loops_[first + i];
      loop.open(std::move(socket),
                {.patience = patience,
                 .make_session = [make_session,
                                  &services](std::string peer) { return make_session(services, std::move(peer)); },
                 .entrance = entrance,
                 .state = &doors_[number],
                 .counts = &loop.counts().doors[number],
                 .connections_max = options_.connections_max,
                 .is_sheddable = !is_admin});
    }
    return {};
  }

  void look_after() {
    all_.admin.control = options_.control;
    all_.admin.access = options_.admin_access;
    all_.admin.access.any_host = options_.admin && options_.admin->is_unix();
    all_.admin.version = options_.version;
    all_.admin.state = options_.state;
    all_.admin.threads = options_.threads;
    all_.admin.started = limiter_.now();
    all_.admin.doors = [this] { return door_views(); };
  }

  // What this server itself has to tell beside its counts.
  void add_metrics() {
    MetricsHooks& hooks = all_.metrics.hooks;
    hooks.denials_logged = [this] { return all_.denials.counts().logged; };
    hooks.denials_dropped = [this] { return all_.denials.counts().dropped; };
    hooks.certificate_expiry = [this]() -> std::optional<Micros> {
      const TlsStatus tls = tls_status();
      return tls.is_on ? std::optional(Micros{tls.not_after * 1'000'000}) : std::nullopt;
    };
  }

  std::vector<DoorView> door_views() const {
    const std::array<std::pair<std::string_view, const std::optional<Address>&>, kDoors> doors = {
        {{"http", addresses_.http}, {"grpc", addresses_.grpc}, {"resp", addresses_.resp}, {"admin", addresses_.admin}}};
    std::vector<DoorView> views;
    for (std::size_t i = 0; i < kDoors; ++i) {
      const auto& [name, address] = doors[i];
      if (!address) continue;
      DoorView& view =
          views.emplace_back(DoorView{name, to_string(*address), doors_[i].open.load(), options_.connections_max});
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

  // A time that is not of day.
  static Micros stopwatch() { return std::chrono::duration_cast<Micros>(read_stopwatch()); }

  void on_signal(int signal) {
    if (signal == SIGHUP) {
      reload_certificates();
      if (options_.on_hangup) options_.on_hangup();
      return;
    }
    if (std::exchange(is_stopping_, true)) return ask(Wish::leave);
    all_.ending.stopping = all_.ending.leaving = true;
    ask(Wish::tell);
    drain_at_ = stopwatch() + (signal == SIGTERM ? options_.life.drain_delay : Micros{0});
  }

  void on_time() {
    const Micros now = stopwatch();
    if (now >= drain_at_) {
      drain_at_ = kNever;
      leave_at_ = now + options_.life.drain_max;
      remove_paths();  // now: later, they may be another server's
      ask(Wish::drain);
    }
    if (now >= leave_at_) {
      leave_at_ = kNever;
      ask(Wish::leave);
    }
  }

  void ask(Wish wish) {
    for (const auto& loop : loops_) loop->ask(wish);
  }

  void remove_paths() {
    for (const SocketFile& file : paths_) {
      if (SocketFile::at(file.path) == file) ::unlink(file.path.c_str());
    }
    paths_.clear();
  }

  ServerOptions options_;
  const IpSet proxies_;
  std::unique_ptr<TlsCertificates> certificates_;
  Limiter& limiter_;
  ServerAddresses addresses_;
  Signals signals_;
  ForAllLoops all_;
  bool is_stopping_ = false;
  Micros drain_at_ = kNever;
  Micros leave_at_ = kNever;
  std::array<DoorState, kDoors> doors_{};
  std::atomic<std::int64_t> last_id_{0};
  std::vector<SocketFile> paths_;
  int shared_socket_ = -1;  // of the door that is being opened
  std::vector<std::unique_ptr<Services>> services_;
  std::vector<std::unique_ptr<Loop>> loops_;  // the last: sessions end before what they use
};

}  // namespace

std::size_t descriptors_wanted(const ServerOptions& options) {
  return kDoors * (options.connections_max + Loop::kRefusedMax) + kDoors * options.threads + 64;
}

Result<std::unique_ptr<Server>> make_server(ServerOptions options, Limiter& limiter) {
  auto server = std::make_unique<ThreadedServer>(std::move(options), limiter);
  if (auto prepared = server->prepare(); !prepared) return fail(std::move(prepared.error()));
  return server;
}

}  // namespace weir
