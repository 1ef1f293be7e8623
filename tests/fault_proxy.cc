// One thread, one poll. See fault_proxy.h.
#include "fault_proxy.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace weir::test {
namespace {

constexpr std::size_t kHeldMax = 1 << 20;  // of a direction; then it is not read further
constexpr Micros kTurn{50'000};

sockaddr_in at_loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

Micros proxy_now() { return std::chrono::duration_cast<Micros>(read_stopwatch()); }

void set_prompt(int socket) {
  const int on = 1;
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

void reset_on_close(int socket) {
  const linger at_once{.l_onoff = 1, .l_linger = 0};
  ::setsockopt(socket, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
}

bool would_block() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

}  // namespace

Result<std::unique_ptr<FaultProxy>> FaultProxy::start(std::uint16_t to) {
  std::unique_ptr<FaultProxy> proxy(new FaultProxy);
  proxy->to_ = to;
  proxy->listener_ = base::Descriptor(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_in address = at_loopback(0);
  socklen_t size = sizeof address;
  if (::bind(proxy->listener_.get(), reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      ::listen(proxy->listener_.get(), 1'000) != 0 ||
      ::getsockname(proxy->listener_.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    return fail(ErrorCode::unavailable, "the proxy finds no port of loopback to listen on");
  }
  proxy->port_ = ntohs(address.sin_port);
  proxy->wake_ = base::Descriptor(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  proxy->thread_ = std::thread([self = proxy.get()] { self->work(); });
  return proxy;
}

FaultProxy::~FaultProxy() {
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
  }
  wake();
  if (thread_.joinable()) thread_.join();
}

void FaultProxy::wake() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t told = ::write(wake_.get(), &one, sizeof one);
}

void FaultProxy::set(const Weather& weather) {
  std::uint64_t times = 0;
  {
    const std::lock_guard lock(mutex_);
    told_ = weather;
    times = ++told_times_;
  }
  wake();
  for (;;) {
    {
      const std::lock_guard lock(mutex_);
      if (taken_times_ >= times) return;
    }
    std::this_thread::sleep_for(Micros{200});
  }
}

void FaultProxy::cut() {
  Weather as_it_is;
  {
    const std::lock_guard lock(mutex_);
    is_cut_ = true;
    as_it_is = told_;
  }
  set(as_it_is);
}

std::vector<Micros> FaultProxy::arrivals() const {
  const std::lock_guard lock(mutex_);
  return arrivals_;
}

void FaultProxy::accept() {
  for (;;) {
    base::Descriptor client(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!client) return;
    {
      const std::lock_guard lock(mutex_);
      arrivals_.push_back(proxy_now());
    }
    base::Descriptor server(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const sockaddr_in address = at_loopback(to_);
    if (weather_.is_refusing ||
        ::connect(server.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
      reset_on_close(client.get());
      continue;
    }
    set_prompt(client.get());
    set_prompt(server.get());
    links_.push_back({.client = std::move(client), .server = std::move(server)});
  }
}

void FaultProxy::read(Link& link, base::Descriptor& from, Pipe& pipe, const Stream& stream) {
  char bytes[64 * 1024];
  const ssize_t got = ::recv(from.get(), bytes, std::min(sizeof bytes, stream.piece_max), MSG_DONTWAIT);
  if (got < 0 && would_block()) return;
  if (got <= 0) {
    pipe.is_ended = true;
    link.is_dead = link.is_dead || got < 0;
    return;
  }
  pipe.is_lost = pipe.is_lost || stream.is_dropped;
  if (pipe.is_lost) return;
  Micros wait = stream.delay;
  if (stream.jitter > Micros{0}) wait += dice_.between(Micros{0}, stream.jitter);
  if (stream.slow_one_in > 0 && dice_.below(stream.slow_one_in) == 0) wait += stream.slow;
  pipe.last = std::max(pipe.last, proxy_now() + wait);
  pipe.pieces.push_back({std::string(bytes, static_cast<std::size_t>(got)), pipe.last});
  pipe.held += static_cast<std::size_t>(got);
}

void FaultProxy::write(Link& link, base::Descriptor& to, Pipe& pipe, const Stream& stream, bool is_request) {
  const Micros now = proxy_now();
  while (!stream.is_stalled && !pipe.pieces.empty() && pipe.pieces.front().due <= now) {
    Piece& piece = pipe.pieces.front();
    const std::size_t most = std::min(piece.bytes.size(), stream.piece_max);
    const ssize_t sent = ::send(to.get(), piece.bytes.data(), most, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && would_block()) return;
    if (sent <= 0) {
      link.is_dead = true;
      return;
    }
    const auto count = static_cast<std::size_t>(sent);
    if (is_request) requested_ += count;
    pipe.held -= count;
    piece.bytes.erase(0, count);
    if (piece.bytes.empty()) pipe.pieces.pop_front();
  }
  if (pipe.is_ended && pipe.pieces.empty()) link.is_dead = true;
}

Micros FaultProxy::due() const {
  Micros first = proxy_now() + kTurn;
  const auto note = [&](const Pipe& pipe, const Stream& stream) {
    if (!pipe.pieces.empty() && !stream.is_stalled) first = std::min(first, pipe.pieces.front().due);
  };
  for (const Link& link : links_) {
    note(link.requests, weather_.requests);
    note(link.replies, weather_.replies);
  }
  return first;
}

void FaultProxy::work() {
  const auto wants = [](const Pipe& pipe, const Stream& stream) -> short {
    return !stream.is_stalled && !pipe.is_ended && pipe.held < kHeldMax ? POLLIN : 0;
  };
  for (;;) {
    std::vector<pollfd> watched{{wake_.get(), POLLIN, 0}, {listener_.get(), POLLIN, 0}};
    if (weather_.requests.is_stalled) watched[1].fd = -1;
    for (const Link& link : links_) {  // poll() reports the end of a socket even if no event is wanted of it
      const short client = wants(link.requests, weather_.requests), server = wants(link.replies, weather_.replies);
      watched.push_back({client != 0 ? link.client.get() : -1, client, 0});
      watched.push_back({server != 0 ? link.server.get() : -1, server, 0});
    }
    const std::int64_t wait_us = std::max<std::int64_t>(0, (due() - proxy_now()).count());
    const timespec wait{.tv_sec = wait_us / 1'000'000, .tv_nsec = wait_us % 1'000'000 * 1'000};
    ::ppoll(watched.data(), watched.size(), &wait, nullptr);
    std::uint64_t times = 0;
    [[maybe_unused]] const ssize_t got = ::read(wake_.get(), &times, sizeof times);
    {
      const std::lock_guard lock(mutex_);
      if (is_ending_) return;
      weather_ = told_;
      taken_times_ = told_times_;
      if (std::exchange(is_cut_, false)) {
        for (Link& link : links_) link.is_dead = true;
      }
    }
    std::size_t at = 2;
    for (Link& link : links_) {
      if (watched[at++].revents != 0) read(link, link.client, link.requests, weather_.requests);
      if (watched[at++].revents != 0) read(link, link.server, link.replies, weather_.replies);
      if (link.is_dead) continue;
      write(link, link.server, link.requests, weather_.requests, true);
      write(link, link.client, link.replies, weather_.replies, false);
    }
    links_.remove_if([](const Link& link) {
      if (link.is_dead) reset_on_close(link.client.get());
      return link.is_dead;
    });
    if (!weather_.requests.is_stalled) accept();
  }
}

}  // namespace weir::test
