// Doors, threads and signals. See server.h; tested by tests/server/*.sh.
//
// The calling thread waits for signals. Each other has a loop, and in it every door with what its sessions work with:
// nothing is shared between loops but the limiter, the rules and the counts of open connections.
#include "server/server.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "server/admin_service.h"
#include "server/grpc_session.h"
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
  Services(const ServerOptions& options, Limiter& limiter, const std::atomic<bool>& stopping,
           AdminService& looked_after)
      : http{.limiter = limiter, .gate = options.gate, .stopping = &stopping},
        admin{.limiter = limiter, .face = HttpFace::admin, .admin = &looked_after, .stopping = &stopping},
        grpc(limiter, options.gate),
        resp{.limiter = limiter, .gate = options.gate, .version = options.version, .password = options.password} {}

  HttpService http, admin;
  GrpcService grpc;
  RespService resp;
};

// Signals as bytes in a pipe, for whoever waits; a byte 0 is put there by hand. One at a time in a process.
class Signals {
 public:
  bool open(bool with_hangup) {
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) return false;
    out_ = Descriptor(ends[0]);
    in_ = Descriptor(ends[1]);
    write_end = in_.get();
    struct sigaction action {};
    action.sa_handler = [](int signal) {
      const int before = errno;
      tell(signal);
      errno = before;
    };
    action.sa_flags = SA_RESTART;
    sigaction(SIGTERM, &action, nullptr);
    sigaction(SIGINT, &action, nullptr);
    if (with_hangup) sigaction(SIGHUP, &action, nullptr);
    return true;
  }

  static void tell(int signal) {
    const char byte = static_cast<char>(signal);
    [[maybe_unused]] const ssize_t told = write(write_end, &byte, 1);
  }

  // Waits for the next one.
  int next() const {
    char signal = 0;
    while (read(out_.get(), &signal, 1) != 1) {
    }
    return signal;
  }

 private:
  static inline std::atomic<int> write_end{-1};
  Descriptor out_, in_;
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
  ThreadedServer(ServerOptions options, Limiter& limiter) : options_(std::move(options)), limiter_(limiter) {}
  ~ThreadedServer() override { remove_paths(); }

  Result<void> prepare() {
    look_after();
    for (std::size_t i = 0; i < options_.threads + (options_.admin ? 1 : 0); ++i) {
      auto loop = make_loop(limiter_, options_.buffers_max / options_.threads);
      if (!loop) return fail(std::move(loop.error()));
      loops_.push_back(*std::move(loop));
      services_.push_back(std::make_unique<Services>(options_, limiter_, stopping_, admin_));
    }
    if (auto opened = open_doors(); !opened) return opened;
    if (!signals_.open(static_cast<bool>(options_.on_hangup))) {
      return fail(ErrorCode::unavailable, std::string("cannot watch for signals: ") + std::strerror(errno));
    }
    return {};
  }

  const ServerAddresses& addresses() const override { return addresses_; }

  Stopped run() override {
    std::vector<Stopped> ends(loops_.size(), Stopped::drained);
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < loops_.size(); ++i) {
      threads.emplace_back([this, &ends, i] {
        ends[i] = loops_[i]->run();
        Signals::tell(0);
      });
    }
    for (std::size_t running = loops_.size(); running > 0;) {
      const int signal = signals_.next();
      if (signal == 0) {
        --running;
      } else {
        on_signal(signal);
      }
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
    return open_door(0, options_.http, addresses_.http, "--http", kHttpPatience, http)
        .and_then([&] { return open_door(1, options_.grpc, addresses_.grpc, "--grpc", kGrpcPatiences, grpc); })
        .and_then([&] { return open_door(2, options_.resp, addresses_.resp, "--resp", kRespPatience, resp); })
        .and_then([&] { return open_door(3, options_.admin, addresses_.admin, "--admin", kHttpPatience, admin); });
  }

  Result<void> open_door(std::size_t number, const std::optional<Address>& wanted, std::optional<Address>& real,
                         std::string_view option, Patience patience, const MakeSession& make_session) {
    if (!wanted) return {};
    const bool is_admin = number == static_cast<std::size_t>(DoorName::admin);  // which has a loop of its own
    const std::size_t first = is_admin ? options_.threads : 0, loops = is_admin ? 1 : options_.threads;
    auto listening = listen_on(*wanted, option, loops);
    if (!listening) return fail(std::move(listening.error()));
    real = listening->address;
    if (wanted->is_unix()) paths_.push_back(SocketFile::at(wanted->path));
    for (std::size_t i = 0; i < loops; ++i) {
      Services& services = *services_[first + i];
      Descriptor socket = i < listening->sockets.size() ? std::move(listening->sockets[i])
                                                        : Descriptor(fcntl(shared_socket_, F_DUPFD_CLOEXEC, 0));
      if (!socket) return fail(ErrorCode::unavailable, std::string("cannot listen: ") + std::strerror(errno));
      if (i == 0) shared_socket_ = socket.get();
      loops_[first + i]->open(
          std::move(socket), {.patience = patience,
                              .make_session = [make_session, &services](
                                                  std::string peer) { return make_session(services, std::move(peer)); },
                              .state = &doors_[number],
                              .counts = &loops_[first + i]->counts().doors[number],
                              .connections_max = options_.connections_max});
    }
    return {};
  }

  void look_after() {
    admin_.control = options_.control;
    admin_.access = options_.admin_access;
    admin_.access.any_host = options_.admin && options_.admin->is_unix();
    admin_.version = options_.version;
    admin_.state = options_.state;
    admin_.threads = options_.threads;
    admin_.started = limiter_.now();
    admin_.doors = [this] { return door_views(); };
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

  void on_signal(int signal) {
    if (signal == SIGHUP) return options_.on_hangup();
    stopping_ = true;
    remove_paths();  // now: later, they may be another server's
    for (const auto& loop : loops_) loop->stop();
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
  std::atomic<bool> stopping_{false};
  std::array<DoorState, kDoors> doors_{};
  std::atomic<std::int64_t> last_id_{0};
  std::vector<SocketFile> paths_;
  int shared_socket_ = -1;  // of the door that is being opened
  AdminService admin_;
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
