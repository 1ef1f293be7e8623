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

#include "log.h"
#include "server/grpc_session.h"
#include "server/heartbeat.h"
#include "server/http_session.h"
#include "server/listener.h"
#include "server/resp_session.h"
#include "server/signals.h"
#include "weir/clock.h"

namespace weir {
namespace {

// After a successor has taken over: whoever has a connection here may use it once more, and is told that it is the
// last.
constexpr Micros kMoveOn{1'000'000};

constexpr Patience kHttpPatience{.idle = 60, .header = 10, .body = 60};
constexpr Patience kRespPatience{.idle = 0, .header = 60, .body = 60};   // pools keep idle connections for hours
constexpr Patience kGrpcPatiences{.idle = 0, .header = 10, .body = 60};  // gateways keep theirs for days

// What the sessions of all loops are told of the end.
struct Ending {
  std::atomic<bool> stopping{false};  // the server is: nobody should send more
  std::atomic<bool> leaving{false};   // this process is: connections should move on
};

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
        limiter_(limiter),
        heartbeat_(options_.life.manager == nullptr ? Micros{0} : options_.life.manager->watchdog(), options_.threads) {
  }
  ~ThreadedServer() override { remove_paths(); }

  Result<void> prepare() {
    for (std::size_t i = 0; i < options_.threads; ++i) {
      auto loop = make_loop(limiter_, options_.buffers_max / options_.threads);
      if (!loop) return fail(std::move(loop.error()));
      loops_.push_back(*std::move(loop));
      services_.push_back(std::make_unique<Services>(options_, limiter_, ending_));
    }
    if (auto opened = open_doors(); !opened) return opened;
    const bool is_opened = options_.on_hangup ? signals_.open({SIGTERM, SIGINT, SIGUSR2, SIGHUP})
                                              : signals_.open({SIGTERM, SIGINT, SIGUSR2});
    if (!is_opened) {
      return fail(ErrorCode::unavailable, std::string("cannot watch for signals: ") + std::strerror(errno));
    }
    return {};
  }

  const ServerAddresses& addresses() const override { return addresses_; }

  void upgrade() override { Signals::tell(SIGUSR2); }

  Stopped run() override {
    std::vector<Stopped> ends(loops_.size(), Stopped::drained);
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < loops_.size(); ++i) {
      threads.emplace_back([this, &ends, i] {
        ends[i] = loops_[i]->run();
        Signals::tell(0);
      });
    }
    // Whoever is succeeded speaks to the service manager until then.
    if (!options_.life.inherited.predecessor) manager([](ServiceManager& manager) { manager.ready(); });
    tell_predecessor(options_.life.inherited.predecessor);
    for (std::size_t running = loops_.size(); running > 0;) {
      const Micros next = std::min({drain_at_, leave_at_, successor_due_, heartbeat_.due()});
      const int signal = signals_.next(next - stopwatch(), successor_ ? successor_->descriptor() : -1);
      if (signal == 0) --running;
      if (signal > 0) on_signal(signal);
      if (signal == Signals::kOther) hear_successor();
      on_time();
    }
    for (std::thread& thread : threads) thread.join();
    for (const Stopped end : ends) {
      if (end == Stopped::forced) return end;
    }
    return Stopped::drained;
  }

 private:
  using MakeSession = std::function<std::unique_ptr<Session>(Services&, std::string peer)>;

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
                         Patience patience, const MakeSession& make_session) {
    const std::string door(kDoorNames[number]);
    std::vector<Descriptor> sockets = take_inherited(door);
    if (!sockets.empty()) {
      real = address_of(sockets[0]);
      if (door == "admin" && !real->is_loopback()) {
        return fail(ErrorCode::invalid_argument,
                    "the admin socket was opened at " + to_string(*real) +
                        ": whoever reaches it rules the server; open it on this machine only");
      }
      if (std::ranges::count(options_.life.inherited.files, door) > 0) own_file(door, real->path);
    } else if (wanted) {
      auto listening = listen_on(*wanted, "--" + door, loops_.size());
      if (!listening) return fail(std::move(listening.error()));
      real = listening->address;
      sockets = std::move(listening->sockets);
      if (wanted->is_unix()) own_file(door, wanted->path);
    }
    // Everybody has a socket, and every socket has somebody: the kernel may let clients wait at any of them.
    for (std::size_t i = 0; !sockets.empty() && i < std::max(sockets.size(), loops_.size()); ++i) {
      const std::size_t l = i % loops_.size();
      Services& services = *services_[l];
      Descriptor socket(fcntl(sockets[i % sockets.size()].get(), F_DUPFD_CLOEXEC, 0));
      if (!socket) return fail(ErrorCode::unavailable, std::string("cannot listen: ") + std::strerror(errno));
      loops_[l]->open(std::move(socket),
                      {.patience = patience,
                       .make_session = [make_session, &services](
                                           std::string peer) { return make_session(services, std::move(peer)); },
                       .state = &doors_[number],
                       .counts = &loops_[l]->counts().doors[number],
                       .connections_max = options_.connections_max});
    }
    for (Descriptor& socket : sockets) sockets_.push_back({door, std::move(socket)});
    return {};
  }

  std::vector<Descriptor> take_inherited(const std::string& door) {
    std::vector<Descriptor> sockets;
    for (NamedSocket& given : options_.life.inherited.sockets) {
      if (given.door == door) sockets.push_back(std::move(given.socket));
    }
    return sockets;
  }

  void own_file(const std::string& door, const std::string& path) {
    files_.push_back(door);
    paths_.push_back(SocketFile::at(path));
  }

  // A time that is not of day.
  static Micros stopwatch() { return std::chrono::duration_cast<Micros>(read_stopwatch()); }

  void on_signal(int signal) {
    if (signal == SIGHUP) {
      manager([](ServiceManager& manager) { manager.reloading(); });
      return options_.on_hangup();
    }
    if (signal == SIGUSR2) return begin_upgrade();
    if (std::exchange(is_stopping_, true)) return ask(Wish::leave);
    if (has_handed_over_) return;  // it is ending already
    if (successor_) give_up_upgrade("the server is told to stop");
    manager([](ServiceManager& manager) { manager.stopping(); });
    ending_.stopping = ending_.leaving = true;
    ask(Wish::tell);
    drain_at_ = stopwatch() + (signal == SIGTERM ? options_.life.drain_delay : Micros{0});
  }

  void on_time() {
    const Micros now = stopwatch();
    if (now >= drain_at_) {
      drain_at_ = kNever;
      leave_at_ = now + options_.life.drain_max;
      sockets_.clear();
      remove_paths();  // now: later, they may be another server's
      ask(Wish::drain);
    }
    if (now >= leave_at_) {
      leave_at_ = kNever;
      ask(Wish::leave);
    }
    if (now >= successor_due_) give_up_upgrade("it was not ready in time");
    if (now >= heartbeat_.due()) {
      std::vector<std::uint64_t> ticks;
      for (const auto& loop : loops_) ticks.push_back(loop->counts().ticks.get());
      if (heartbeat_.look(now, ticks)) manager([](ServiceManager& manager) { manager.alive(); });
    }
  }

  void begin_upgrade() {
    std::string why;
    if (is_stopping_ || has_handed_over_) why = "the server is ending";
    if (successor_) why = "one is under way";
    if (!options_.life.keeps_state) {
      why = "all counts would be forgotten, since they are in memory only; start the server with --state FILE";
    }
    if (why.empty()) {
      auto started = Successor::start(options_.life.succession, sockets_, files_);
      if (started) {
        successor_ = *std::move(started);
        successor_due_ = stopwatch() + options_.life.upgrade_max;
        return log(LogLevel::info, "a successor is starting", {{"pid", std::to_string(successor_->pid())}});
      }
      why = started.error().message;
    }
    log(LogLevel::error, "no upgrade", {{"reason", why}});
  }

  void give_up_upgrade(std::string_view why) {
    successor_due_ = kNever;
    if (successor_->why().empty()) successor_->end();
    log(LogLevel::error, "no upgrade, this process goes on serving", {{"reason", why}});
    successor_.reset();
  }

  void hear_successor() {
    switch (successor_->hear()) {
      case Successor::Said::nothing:
        return;
      case Successor::Said::failed:
        return give_up_upgrade(std::string(successor_->why()));
      case Successor::Said::ready:
        break;
    }
    log(LogLevel::info, "the successor serves; this process finishes what it has begun",
        {{"pid", std::to_string(successor_->pid())}});
    manager([this](ServiceManager& manager) { manager.hand_over(successor_->pid()); });
    successor_.reset();
    successor_due_ = kNever;
    has_handed_over_ = ending_.leaving = true;
    paths_.clear();  // they are the successor's
    sockets_.clear();
    ask(Wish::shut);
    drain_at_ = stopwatch() + kMoveOn;
  }

  template <class Tell>
  void manager(Tell tell) {
    if (options_.life.manager != nullptr) tell(*options_.life.manager);
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
  Limiter& limiter_;
  ServerAddresses addresses_;
  Signals signals_;
  Ending ending_;
  Heartbeat heartbeat_;
  std::optional<Successor> successor_{};  // until it serves or has failed
  Micros successor_due_ = kNever;
  bool is_stopping_ = false;
  bool has_handed_over_ = false;
  Micros drain_at_ = kNever;
  Micros leave_at_ = kNever;
  std::array<DoorState, kDoors> doors_{};
  std::atomic<std::int64_t> last_id_{0};
  std::vector<SocketFile> paths_;
  std::vector<NamedSocket> sockets_;  // all that listen, to be handed on; the loops have copies
  std::vector<std::string> files_;    // the doors of paths_
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
