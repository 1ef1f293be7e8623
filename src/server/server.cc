// Doors and threads. See server.h; tested by tests/server/*.sh.
//
// The calling thread looks after the server's life. Each other has a loop, and in it every door with what its sessions
// work with: nothing is shared between loops but the limiter, the rules and the counts of open connections.
#include "server/server.h"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "server/certificate_watch.h"
#include "server/grpc_session.h"
#include "server/held_sockets.h"
#include "server/http_session.h"
#include "server/listener.h"
#include "server/resp_session.h"

namespace weir {
namespace {

constexpr Patience kHttpPatience{.idle = 60, .header = 10, .body = 60};
constexpr Patience kRespPatience{.idle = 0, .header = 60, .body = 60};   // pools keep idle connections for hours
constexpr Patience kGrpcPatiences{.idle = 0, .header = 10, .body = 60};  // gateways keep theirs for days

// What the sessions of one loop work with.
struct Services {
  Services(const ServerOptions& options, Limiter& limiter, const Ending& ending)
      : http{.limiter = limiter, .gate = options.gate, .stopping = &ending.stopping, .leaving = &ending.leaving},
        admin{.limiter = limiter, .face = HttpFace::admin, .stopping = &ending.stopping, .leaving = &ending.leaving},
        grpc(limiter, options.gate),
        resp{.limiter = limiter, .gate = options.gate, .version = options.version, .password = options.password} {
    grpc.stopping = &ending.stopping;
  }

  HttpService http, admin;
  GrpcService grpc;
  RespService resp;
};

class ThreadedServer final : public Server {
 public:
  ThreadedServer(ServerOptions options, Limiter& limiter)
      : options_(std::move(options)), proxies_(options_.peers.proxies), limiter_(limiter) {}

  Result<void> prepare() {
    for (std::size_t i = 0; i < options_.threads; ++i) {
      auto loop = make_loop(limiter_, options_.buffers_max / options_.threads);
      if (!loop) return fail(std::move(loop.error()));
      loops_.push_back(*std::move(loop));
      services_.push_back(std::make_unique<Services>(options_, limiter_, life_.ending()));
    }
    if (options_.tls.is_on()) {
      auto certificates = load_certificates(options_.tls);
      if (!certificates) return fail(std::move(certificates.error()));
      certificates_ = *std::move(certificates);
    }
    if (auto opened = open_doors(); !opened) return opened;
    std::function<void()> on_hangup;
    if (options_.on_hangup || certificates_) on_hangup = [this] { hang_up(); };
    if (!life_.open(std::move(on_hangup))) {
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
    return open_door(0, options_.http, addresses_.http, kHttpPatience, http)
        .and_then([&] { return open_door(1, options_.grpc, addresses_.grpc, kGrpcPatiences, grpc); })
        .and_then([&] { return open_door(2, options_.resp, addresses_.resp, kRespPatience, resp); })
        .and_then([&] { return open_door(3, options_.admin, addresses_.admin, kHttpPatience, admin); });
  }

  Result<void> open_door(std::size_t number, const std::optional<Address>& wanted, std::optional<Address>& real,
                         Patience patience, const MakeSessionOf& make_session) {
    const std::string door(kDoorNames[number]);
    std::vector<Descriptor> sockets = take_inherited(door);
    if (!sockets.empty()) {
      real = address_of(sockets[0]);
      if (door == "admin" && !real->is_loopback()) {
        return fail(ErrorCode::invalid_argument,
                    "the admin socket was opened at " + to_string(*real) +
                        ": whoever reaches it rules the server; open it on this machine only");
      }
      if (std::ranges::count(options_.life.inherited.files, door) > 0) sockets_.own_file(door, real->path);
    } else if (wanted) {
      auto listening = listen_on(*wanted, "--" + door, loops_.size());
      if (!listening) return fail(std::move(listening.error()));
      real = listening->address;
      sockets = std::move(listening->sockets);
      if (wanted->is_unix()) sockets_.own_file(door, wanted->path);
    } else {
      return {};
    }
    const Entrance entrance = entrance_of(number, *real);
    addresses_.tls[number] = entrance.tls != nullptr;
    // Everybody has a socket, and every socket has somebody: the kernel may let clients wait at any of them.
    for (std::size_t i = 0; i < std::max(sockets.size(), loops_.size()); ++i) {
      const std::size_t l = i % loops_.size();
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
                       .connections_max = options_.connections_max});
    }
    sockets_.hold(door, std::move(sockets));
    return {};
  }

  std::vector<Descriptor> take_inherited(const std::string& door) {
    std::vector<Descriptor> sockets;
    for (NamedSocket& given : options_.life.inherited.sockets) {
      if (given.door == door) sockets.push_back(std::move(given.socket));
    }
    return sockets;
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
    if (options_.life.manager != nullptr) options_.life.manager->ready();  // there are no rules to be read
  }

  ServerOptions options_;
  const IpSet proxies_;
  std::unique_ptr<TlsCertificates> certificates_;
  Limiter& limiter_;
  ServerAddresses addresses_;
  std::array<DoorState, kDoors> doors_{};
  std::atomic<std::int64_t> last_id_{0};
  HeldSockets sockets_;
  Life life_{options_.life, loops_, sockets_};
  std::vector<std::unique_ptr<Services>> services_;
  std::vector<std::unique_ptr<Loop>> loops_;  // the last: sessions end before what they use
};

}  // namespace

std::size_t descriptors_wanted(const ServerOptions& options) {
  return kDoors * (options.connections_max + Loop::kRefusedMax) + 2 * kDoors * options.threads + 64;
}

Result<std::unique_ptr<Server>> make_server(ServerOptions options, Limiter& limiter) {
  auto server = std::make_unique<ThreadedServer>(std::move(options), limiter);
  if (auto prepared = server->prepare(); !prepared) return fail(std::move(prepared.error()));
  return server;
}

}  // namespace weir
