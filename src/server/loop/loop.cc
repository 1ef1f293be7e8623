// The loop on level-triggered epoll. See loop.h.
#include "server/loop/loop.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <list>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "log/log.h"
#include "server/loop/listener.h"

namespace weir::server::loop {
namespace {

constexpr std::int64_t kQuietMin = 60'000'000;               // microseconds before a failure to accept is logged again
constexpr std::size_t kAskedMax = 4'096;                     // checks of a turn: more are decided in the next
constexpr std::size_t kEventsMin = 256;                      // after this many events, decide what was read
constexpr std::size_t kEventsMax = 16'384;                   // of a turn
constexpr std::size_t kUnwrittenMax = std::size_t{4} << 20;  // bytes of a turn's answers before they are written
constexpr int kAcceptsMax = 64;                              // in a row
constexpr int kBacklogMax = 4'096;                           // of a listener: the kernel's own bound
constexpr Micros kAcceptRest{50'000};                        // pause when descriptors have run out
constexpr std::int64_t kTickSeconds = 1;

// The target of epoll's data pointers.
struct Watched {
  enum class Kind : std::uint8_t { connection, listener, other };
  Kind kind;
};

struct Client : Watched {
  Client(base::Descriptor socket, std::unique_ptr<Session> session, const ListenerSetup& setup, Shared& all)
      : Watched{Kind::connection},
        connection(std::move(socket), std::move(session), setup.timeouts, all, *setup.counts),
        count(setup.state->open) {
    ++count;
  }
  ~Client() { --count; }

  Connection connection;
  std::atomic<std::size_t>& count;
  std::list<Client>::iterator self{};
};

struct Listener : Watched {
  Listener(base::Descriptor listening, ListenerSetup behind)
      : Watched{Kind::listener}, socket(std::move(listening)), setup(std::move(behind)) {}

  base::Descriptor socket;  // none after the listener is shut
  ListenerSetup setup;
  Micros rests_until{0};  // 0: it accepts
};

struct Other : Watched {
  Other(int descriptor, std::function<void()> call)
      : Watched{Kind::other}, socket(descriptor), on_readable(std::move(call)) {}

  int socket;
  std::function<void()> on_readable;
};

class EpollLoop final : public Loop {
 public:
  EpollLoop(Limiter& limiter, const LoopOptions& options)
      : limiter_(limiter),
        fibers_(options.fibers),
        backend_(options.backend),
        all_(limiter, options.bounds, options.counting) {
    all_.held_max = options.buffers_max;
  }

  // Returns false with errno if the kernel refuses.
  bool prepare() {
    epoll_ = base::Descriptor(epoll_create1(EPOLL_CLOEXEC));
    ticks_ = base::Descriptor(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC));
    wakes_ = base::Descriptor(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
    if (!epoll_ || !ticks_ || !wakes_) return false;
    all_.epoll = epoll_.get();
    itimerspec every{};
    every.it_interval.tv_sec = every.it_value.tv_sec = kTickSeconds;
    timerfd_settime(ticks_.get(), 0, &every, nullptr);
    if (backend_ != nullptr && !watch(backend_->descriptor(), [this] { backend_->on_readable(); })) return false;
    return watch(ticks_.get(), [this] { on_tick(); }) && watch(wakes_.get(), [this] { on_stop(); });
  }

  void open(base::Descriptor listening, ListenerSetup setup) override {
    // Accepted sockets inherit it: the kernel buffers no more unsent bytes per client than the server does.
    const auto unsent_max = static_cast<int>(all_.bounds.output_max);
    setsockopt(listening.get(), IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent_max, sizeof unsent_max);
    listeners_.emplace_back(std::move(listening), std::move(setup));
    let_in(listeners_.back());
  }

  LoopCounts& counts() override { return counts_; }

  void stop(StopStage stage) override {
    StopStage before = stage_.load();
    while (before < stage && !stage_.compare_exchange_weak(before, stage)) {
    }
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t size = write(wakes_.get(), &one, sizeof one);
  }

  Stopped run() override {
    std::vector<epoll_event> events(kEventsMin);
    events.reserve(kEventsMax);  // no allocation later
    while (!left_) {
      if (backend_ != nullptr) backend_->send();
      const int count = epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), wait_ms());
      all_.turn.begin();
      all_.handshakes = 0;
      all_.overload.begin_turn(all_.turn.now());
      all_.turn.set_shedding(false);
      counts_.turns.add();
      const Micros began = all_.turn.now();
      if (all_.overload.is_on() && count > 1) begin_elsewhere({events.data(), static_cast<std::size_t>(count)});
      for (int i = 0; i < count; ++i) {
        if (i > 0 && i % static_cast<int>(kEventsMin) == 0) finish_turn();
        dispatch(events[static_cast<std::size_t>(i)]);
      }
      wake_due();
      wake_ready();
      finish_turn();
      while (!all_.ready.empty()) {
        wake_ready();
        finish_turn();
      }
      all_.overload.end_turn(limiter_.now());
      if (count == static_cast<int>(events.size())) events.resize(std::min(2 * events.size(), kEventsMax));
      graveyard_.clear();  // no event of this round points to them any more
      count_time(began);
      if (is_stopping_ && clients_.empty() && !has_fibers()) leave(Stopped::drained);
    }
    if (backend_ != nullptr) backend_->abandon();
    return *left_;
  }

 private:
  // EPOLLEXCLUSIVE: a socket shared by several loops wakes only one of them.
  void let_in(Listener& listener) {
    const bool is_watched = add(listener.socket.get(), EPOLLIN | EPOLLEXCLUSIVE, listener);
    listener.rests_until = is_watched ? Micros{0} : limiter_.now() + kAcceptRest;
  }

  bool watch(int descriptor, std::function<void()> on_readable) {
    others_.emplace_back(descriptor, std::move(on_readable));
    return add(descriptor, EPOLLIN, others_.back());
  }

  // Returns false with errno if the kernel refuses.
  bool add(int descriptor, std::uint32_t events, Watched& watched) {
    epoll_event event{};
    event.events = events;
    event.data.ptr = &watched;
    return epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, descriptor, &event) == 0;
  }

  // The time until a delayed answer is due, or a paused listener resumes.
  int wait_ms() const {
    Micros first = due_.empty() ? kNever : due_.begin()->first;
    for (const Listener& listener : listeners_) {
      if (listener.rests_until != Micros{0}) first = std::min(first, listener.rests_until);
    }
    if (first == kNever) return -1;
    const std::int64_t us = std::max<std::int64_t>((first - limiter_.now()).count(), 0);
    return static_cast<int>(std::min<std::int64_t>((us + 999) / 1000, 60'000));
  }

  // Connections that always have input come first in epoll's order, and the last ones are shed. So under overload,
  // the order begins at another connection in each turn.
  void begin_elsewhere(std::span<epoll_event> ready) const {
    const std::uint64_t mixed = counts_.turns.get() * 0x9e3779b97f4a7c15 >> 33;
    std::rotate(ready.begin(), ready.begin() + static_cast<std::ptrdiff_t>(mixed % ready.size()), ready.end());
  }

  void dispatch(const epoll_event& event) {
    auto* watched = static_cast<Watched*>(event.data.ptr);
    switch (watched->kind) {
      case Watched::Kind::connection:
        return on_event(static_cast<Client&>(*watched), event.events);
      case Watched::Kind::listener:
        return accept(static_cast<Listener&>(*watched));
      case Watched::Kind::other:
        return static_cast<Other&>(*watched).on_readable();
    }
  }

  void on_event(Client& client, std::uint32_t events) {
    Connection& connection = client.connection;
    if (connection.is_dead()) return;
    const bool left_while_held = (events & EPOLLRDHUP) != 0 && (connection.notes.watched & EPOLLRDHUP) != 0;
    const bool has_hung_up = (events & EPOLLHUP) != 0 && (events & EPOLLIN) == 0;  // with EPOLLIN there is more to read
    if ((events & EPOLLERR) != 0 || has_hung_up || left_while_held) {
      connection.on_gone();
    } else if ((events & EPOLLIN) != 0) {
      if (all_.buffer.is_low() || all_.turn.asked() >= kAskedMax || all_.unwritten >= kUnwrittenMax) finish_turn();
      look_at_the_clock();
      connection.on_readable();
    }
    touch(client);
  }

  // Checks once per connection, and only under overload, whether to shed.
  bool look_at_the_clock() {
    if (!all_.overload.is_on()) return false;
    const bool sheds = all_.overload.sheds(limiter_.now());
    all_.turn.set_shedding(sheds);
    return sheds;
  }

  // The turn's end looks at each connection that had an event.
  void touch(Client& client) {
    Connection& connection = client.connection;
    if (!std::exchange(connection.notes.in_turn, true)) touched_.push_back(&client);
    if (connection.asks() && !std::exchange(connection.notes.in_asking, true)) asking_.push_back(&client);
  }

  // Decides all checks, lets all connections write, and repeats for those with more input.
  void finish_turn() {
    while (!touched_.empty()) {
      while (!asking_.empty()) decide();
      std::swap(touched_, finishing_);
      for (Client* client : finishing_) {
        client->connection.notes.in_turn = false;
        if (client->connection.finish()) {
          touch(*client);
        } else {
          update(*client);
        }
      }
      finishing_.clear();
    }
    all_.unwritten = 0;
    all_.buffer.clear();
  }

  // A request's duration is that of the turn that answers it.
  void count_time(Micros began) {
    std::optional<std::int64_t> took;
    for (const ListenerName name : kEveryListener) {
      ListenerCounts& listener = counts_.listeners[name];
      const std::uint64_t before = std::exchange(timed_[name], listener.requests.get());
      if (timed_[name] == before) continue;
      if (!took) took = (limiter_.now() - began).count();
      listener.seconds.add(*took, timed_[name] - before);
    }
  }

  void decide() {
    all_.turn.decide();
    std::swap(asking_, settling_);
    for (Client* client : settling_) {
      client->connection.notes.in_asking = false;
      client->connection.settle();
    }
    all_.turn.clear();
    for (Client* client : settling_) {
      client->connection.go_on();
      touch(*client);
    }
    settling_.clear();
  }

  void note_due(Client& client, Micros due) {
    Micros& noted = client.connection.notes.due;
    if (due == noted) return;
    if (noted != kNever) due_.erase({noted, &client});
    noted = kNever;
    if (due == kNever) return;
    try {
      due_.insert({due, &client});
      noted = due;
    } catch (...) {
      client.connection.on_gone();  // no memory for its calendar entry: this connection ends
    }
  }

  // After its turn: updates what epoll watches, or removes the connection if it is dead.
  void update(Client& client) {
    Connection& connection = client.connection;
    note_due(client, connection.is_dead() ? kNever : connection.due());
    if (connection.is_dead()) {
      graveyard_.splice(graveyard_.end(), clients_, client.self);
      return;
    }
    const std::uint32_t events = connection.interest();
    if (events == connection.notes.watched) return;
    epoll_event event{};
    event.events = connection.notes.watched = events;
    event.data.ptr = static_cast<Watched*>(&client);
    epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, connection.descriptor(), &event);
  }

  void wake_due() {
    if (!due_.empty()) {
      const Micros now = limiter_.now();
      while (!due_.empty() && due_.begin()->first <= now) {
        Client& client = *due_.begin()->second;
        due_.erase(due_.begin());
        client.connection.notes.due = kNever;
        client.connection.on_due(now);
        touch(client);
      }
    }
    for (Listener& listener : listeners_) {
      if (listener.rests_until == Micros{0} || listener.rests_until > limiter_.now()) continue;
      let_in(listener);
    }
  }

  // Wakes the sessions whose fibers got their answers in this turn.
  void wake_ready() {
    if (all_.ready.empty()) return;
    const Micros now = limiter_.now();
    std::swap(all_.ready, waking_);
    for (Connection* connection : waking_) {
      connection->notes.in_ready = false;
      if (connection->is_dead()) continue;  // removed already
      connection->on_due(now);
      touch(*static_cast<Client*>(connection->notes.client));
    }
    waking_.clear();
  }

  // Fibers may also belong to clients that have left.
  bool has_fibers() const { return fibers_ != nullptr && fibers_->in_flight() > 0; }

  void accept(Listener& listener, int most = kAcceptsMax) {
    if (!listener.socket) return;
    for (int i = 0; i < most; ++i) {
      sockaddr_storage peer{};
      socklen_t size = sizeof peer;
      base::Descriptor socket(
          accept4(listener.socket.get(), reinterpret_cast<sockaddr*>(&peer), &size, SOCK_NONBLOCK | SOCK_CLOEXEC));
      if (socket) {
        admit(listener, std::move(socket), peer, size);
      } else if (errno == EAGAIN) {
        return;
      } else if (errno != ECONNABORTED && errno != EINTR) {
        return rest(listener, errno);
      }
    }
  }

  void rest(Listener& listener, int error) {
    const Micros now = limiter_.now();
    const std::int64_t before = listener.setup.state->logged_us.exchange(now.count());
    if (now.count() - before > kQuietMin) {
      const bool has_too_few = error == EMFILE || error == ENFILE;
      std::vector<log::LogField> fields = {{"error", std::strerror(error)}};
      if (has_too_few) fields.push_back({"fix", "raise `ulimit -n` (LimitNOFILE= in systemd) or lower --connections"});
      log::log(log::LogLevel::error, "cannot accept connections", fields);
    }
    epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, listener.socket.get(), nullptr);
    listener.rests_until = now + kAcceptRest;
  }

  void admit(Listener& listener, base::Descriptor socket, const sockaddr_storage& peer, socklen_t size) {
    const int on = 1;
    setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);  // has no effect on a unix socket
    try {
      place(listener.setup, std::move(socket), address_of(peer, size).host);
    } catch (...) {
      return;  // no memory: this one connection is closed
    }
  }

  void place(const ListenerSetup& setup, base::Descriptor socket, std::string peer) {
    setup.counts->accepted.add();
    if (!setup.handshake.admits(peer)) return setup.counts->refuse(Refused::proxy);
    auto session = setup.handshake.is_open() ? setup.make_session(std::move(peer)) : make_no_session();
    const std::size_t open = setup.state->open.load();
    const bool is_crowded = open >= setup.connections_max;
    const bool may_turn_away = setup.is_sheddable && all_.bounds.on_overload == OnOverload::deny;
    const bool is_turned_away = is_crowded || (may_turn_away && look_at_the_clock());
    const GiveUp why = is_crowded ? GiveUp::too_crowded : GiveUp::too_busy;
    if (is_turned_away) setup.counts->refuse(is_crowded ? Refused::connections : Refused::overload);
    if (open >= setup.connections_max + setup.refused_max) {
      std::string last_words;
      session->give_up(why, last_words);
      send(socket.get(), last_words.data(), last_words.size(), MSG_NOSIGNAL);
      return;
    }
    std::unique_ptr<Handshake> handshake;
    if (!setup.handshake.is_open()) {
      handshake = std::make_unique<Handshake>(setup.handshake, setup.make_session, std::move(peer), socket.get());
    }
    reserve_for(clients_.size() + 1);
    clients_.emplace_back(std::move(socket), std::move(session), setup, all_);
    Client& client = clients_.back();  // nothing throws from here on
    client.self = std::prev(clients_.end());
    Connection& connection = client.connection;
    connection.notes.client = &client;
    if (handshake) connection.begin_with(std::move(handshake));
    if (is_turned_away) connection.refuse(why);
    connection.notes.watched = EPOLLIN;
    if (!connection.is_dead() && !add(connection.descriptor(), EPOLLIN, client)) connection.on_gone();
    touch(client);
  }

  // Reserves space for all clients: each is in each list at most once, so a turn adds to the lists without
  // allocating.
  void reserve_for(std::size_t clients) {
    const auto reserve = [clients](auto& noted) {
      if (noted.capacity() < clients) noted.reserve(std::max(clients, 2 * noted.capacity()));
    };
    for (auto* noted : {&touched_, &finishing_, &asking_, &settling_, &everybody_}) reserve(*noted);
    for (auto* noted : {&all_.ready, &waking_}) reserve(*noted);
  }

  void on_tick() {
    std::uint64_t ticks = 0;
    if (read(ticks_.get(), &ticks, sizeof ticks) != sizeof ticks) return;
    all_.tick += 1;  // does not charge clients for seconds in which the server was stopped or stuck
    counts_.ticks.add(ticks);
    finish_turn();  // after it no check is undecided
    for (Client& client : clients_) {
      client.connection.on_tick();
      touch(client);
    }
    // The kernel may have woken another process for a client, and that process may have ended before it accepted.
    for (Listener& listener : listeners_) {
      if (listener.rests_until == Micros{0} && has_waiting_client(listener)) accept(listener);
    }
  }

  // Without free descriptors, accept4() fails even if no client waits.
  static bool has_waiting_client(const Listener& listener) {
    pollfd polled{listener.socket.get(), POLLIN, 0};
    return listener.socket && poll(&polled, 1, 0) > 0;
  }

  void on_stop() {
    std::uint64_t times = 0;
    [[maybe_unused]] const ssize_t size = read(wakes_.get(), &times, sizeof times);
    const StopStage stage = stage_.load();
    if (stage == StopStage::leave) {
      shut(0);
      const auto has_request = [](const Client& client) { return client.connection.has_request(); };
      return leave(std::ranges::any_of(clients_, has_request) ? Stopped::forced : Stopped::drained);
    }
    finish_turn();
    if (stage == StopStage::announce) for_each_client([](Connection& connection) { connection.announce_stop(); });
    if (stage >= StopStage::shut) shut(kBacklogMax);
    if (stage < StopStage::drain || std::exchange(is_stopping_, true)) return;
    for_each_client([](Connection& connection) { connection.drain(); });
  }

  // Other processes or loops may have the same sockets. So first stop watching them: a client that connects later
  // wakes one of the others. Then accept the clients that connected before, at most `most`. The others see clients
  // that still wait at their next tick.
  void shut(int most) {
    for (Listener& listener : listeners_) {
      if (!listener.socket) continue;
      if (listener.rests_until == Micros{0}) epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, listener.socket.get(), nullptr);
      accept(listener, most);
      listener.socket.close();
      listener.rests_until = Micros{0};
    }
  }

  template <class Step>
  void for_each_client(Step step) {
    everybody_.clear();
    for (Client& client : clients_) everybody_.push_back(&client);
    for (Client* client : everybody_) {
      if (all_.buffer.is_low()) finish_turn();
      if (client->connection.is_dead()) continue;  // removed already
      step(client->connection);
      touch(*client);
    }
  }

  void leave(Stopped stopped) {
    if (!left_) left_ = stopped;
  }

  Limiter& limiter_;
  base::Fibers* const fibers_;
  AsyncBackend* const backend_;
  LoopCounts counts_;
  PerListener<std::uint64_t> timed_{};  // requests of each listener whose duration is counted
  Shared all_;
  base::Descriptor epoll_, ticks_, wakes_;
  std::list<Listener> listeners_;
  std::list<Other> others_;
  std::list<Client> clients_;    // after all_, because connections use it in their destructor
  std::list<Client> graveyard_;  // dead ones, kept until the round of events that may refer to them is over
  std::vector<Client*> touched_, finishing_, asking_, settling_, everybody_;
  std::vector<Connection*> waking_;
  std::set<std::pair<Micros, Client*>> due_;
  std::atomic<StopStage> stage_{StopStage::serve};
  bool is_stopping_ = false;
  std::optional<Stopped> left_{};
};

}  // namespace

Result<std::unique_ptr<Loop>> make_loop(Limiter& limiter, const LoopOptions& options) {
  auto loop = std::make_unique<EpollLoop>(limiter, options);
  if (!loop->prepare()) {
    return fail(ErrorCode::unavailable, std::string("cannot start an event loop: ") + std::strerror(errno));
  }
  return loop;
}

}  // namespace weir::server::loop
