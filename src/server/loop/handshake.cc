// Reads exactly the bytes that precede a session. See handshake.h.
#include "server/loop/handshake.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "base/text.h"
#include "log/log.h"
#include "protocol/proxy_header.h"

namespace weir::server::loop {
namespace {

class NoSession final : public Session {
 public:
  Progress consume(std::string_view, Turn&, std::string&) override { return {}; }
  void drain(std::string&) override {}
  void give_up(GiveUp, std::string&) override {}
  std::size_t held() const override { return 0; }
};

}  // namespace

std::unique_ptr<Session> make_no_session() { return std::make_unique<NoSession>(); }

bool HandshakeOptions::admits(const std::string& peer) const {
  if (proxies == nullptr) return true;
  const auto address = base::parse_ip(peer);
  return address && proxies->contains(*address);
}

// On Linux, accepted sockets inherit these options, so they cost nothing there. A unix socket refuses them and does
// not need them.
void keep_alive(int listening, std::uint32_t seconds) {
  if (seconds == 0) return;
  constexpr int kProbes = 3;
  const int on = 1, idle = static_cast<int>(seconds), between = std::max(1, idle / 4);
  const unsigned all_ms = static_cast<unsigned>(idle + kProbes * between) * 1000;
  setsockopt(listening, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  setsockopt(listening, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
  setsockopt(listening, IPPROTO_TCP, TCP_KEEPINTVL, &between, sizeof between);
  setsockopt(listening, IPPROTO_TCP, TCP_KEEPCNT, &kProbes, sizeof kProbes);
  setsockopt(listening, IPPROTO_TCP, TCP_USER_TIMEOUT, &all_ms, sizeof all_ms);  // also for unacknowledged bytes
}

Handshake::Step Handshake::fail_as(Refused why) {
  why_ = why;
  return Step::failed;
}

// At level debug only: strangers must not be able to fill the log.
void Handshake::log_failure() const {
  if (!log::is_logged(log::LogLevel::debug)) return;
  if (why_ == Refused::proxy) {
    log::log(log::LogLevel::debug, "connection without a valid PROXY header", {{"peer", peer_}});
  } else {
    log::log(log::LogLevel::debug, "TLS handshake failed",
             {{"peer", peer_}, {"error", stream_ ? stream_->failure() : "the client does not speak TLS"}});
  }
}

// The result of a recv() without bytes.
Handshake::Step Handshake::nothing_read(long size) {
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return Step::again;
  return Step::failed;
}

Handshake::Step Handshake::go_on() {
  if (options_.proxies != nullptr && !is_proxy_known_) {
    if (const Step step = read_proxy(); step != Step::done) return step;
    is_proxy_known_ = true;
  }
  if (options_.tls == nullptr) return Step::done;
  if (!stream_) {
    if (const Step step = begin_tls(); step != Step::done) return step;
  }
  const Step step = stream_->handshake();
  return step == Step::failed ? fail_as(Refused::tls) : step;
}

Handshake::Step Handshake::read_proxy() {
  while (true) {
    const protocol::ProxyRead read = protocol::read_proxy_header(header_);
    if (read.state == protocol::ProxyRead::State::bad) return fail_as(Refused::proxy);
    if (read.state == protocol::ProxyRead::State::done) {
      if (read.source) peer_ = base::to_string(*read.source);
      base::free_memory(header_);
      return Step::done;
    }
    const std::size_t before = header_.size();
    header_.resize(before + read.more);
    const ssize_t size = recv(socket_, header_.data() + before, read.more, 0);
    header_.resize(before + static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
    if (size <= 0) {
      why_ = Refused::proxy;
      return nothing_read(size);
    }
    has_begun_ = true;
  }
}

// The first byte shows whether the client speaks TLS. It is only peeked, so that OpenSSL still finds it.
Handshake::Step Handshake::begin_tls() {
  char first = 0;
  const ssize_t size = recv(socket_, &first, 1, MSG_PEEK);
  why_ = Refused::tls;
  if (size <= 0) return nothing_read(size);
  has_begun_ = true;
  if (first != kTlsHandshake) {
    last_words_ = plain_words(options_.inside);
    return fail_as(Refused::tls);
  }
  stream_ = options_.tls->open(socket_, options_.inside);
  return stream_ ? Step::done : Step::failed;
}

}  // namespace weir::server::loop
