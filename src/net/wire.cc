// Non-blocking sockets. See wire.h.
#include "net/wire.h"

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace weir::net {
namespace {

constexpr std::size_t kReadPiece = std::size_t{64} << 10;
constexpr int kReadsMax = 16;                               // in one call, so that one server does not delay the others
constexpr std::size_t kCipherMax = std::size_t{256} << 10;  // plaintext per TLS write; bounds the unsent ciphertext
// The first byte of a TLS server's reply.
constexpr char kTlsAlert = 0x15;
constexpr char kTlsHandshake = 0x16;

std::string why_not(const char* what, int error) { return std::string(what) + ": " + std::strerror(error); }

// If nothing listens on a port of this machine, a connect to it may get that same port as its source: a
// self-connection.
bool is_own_peer(int socket) {
  sockaddr_storage own{}, peer{};
  socklen_t own_size = sizeof own, peer_size = sizeof peer;
  return ::getsockname(socket, reinterpret_cast<sockaddr*>(&own), &own_size) == 0 &&
         ::getpeername(socket, reinterpret_cast<sockaddr*>(&peer), &peer_size) == 0 && own.ss_family != AF_UNIX &&
         own_size == peer_size && std::memcmp(&own, &peer, own_size) == 0;
}

}  // namespace

Wire::Step Wire::failed(std::string why) {
  failure_ = std::move(why);
  return Step::failed;
}

Wire::Step Wire::open(const SocketAddress& address, std::unique_ptr<TlsStream> tls) {
  close();
  int error = 0;
  base::Descriptor socket = begin_connect(address, error);
  if (!socket) return failed(why_not("cannot create a socket", error));
  if (error == 0) return open(std::move(socket), std::move(tls));
  if (error != EINPROGRESS) return failed(why_not("cannot connect", error));
  begin(std::move(socket), std::move(tls));
  is_connecting_ = true;
  return Step::again;
}

Wire::Step Wire::open(base::Descriptor socket, std::unique_ptr<TlsStream> tls) {
  begin(std::move(socket), std::move(tls));
  return established();
}

void Wire::begin(base::Descriptor socket, std::unique_ptr<TlsStream> tls) {
  close();
  socket_ = std::move(socket);
  tls_ = std::move(tls);
  is_shaking_hands_ = tls_ != nullptr;
}

Wire::Step Wire::advance() {
  if (is_connecting_) {
    if (const int error = connect_error(socket_.get()); error != 0) return failed(why_not("cannot connect", error));
    sockaddr_storage peer{};
    socklen_t peer_size = sizeof peer;
    if (::getpeername(socket_.get(), reinterpret_cast<sockaddr*>(&peer), &peer_size) != 0) return Step::again;
    is_connecting_ = false;
    return established();
  }
  return is_shaking_hands_ ? shake_hands() : Step::done;
}

Wire::Step Wire::established() {
  if (is_own_peer(socket_.get())) return failed("cannot connect: no server listens there");
  return is_shaking_hands_ ? shake_hands() : Step::done;
}

Wire::Step Wire::shake_hands() {
  cipher_in_.clear();
  const Step heard = receive(cipher_in_);
  has_received_tls_ = has_received_tls_ || cipher_in_.starts_with(kTlsHandshake) || cipher_in_.starts_with(kTlsAlert);
  tls_->take_in(cipher_in_);
  const TlsStream::Step step = tls_->handshake();
  tls_->move_output(cipher_out_);
  const Step sent = send_cipher();
  if (step == TlsStream::Step::failed) return failed("TLS: " + tls_->failure());
  if (heard == Step::failed || sent == Step::failed) return failed("TLS: " + failure_);
  if (step == TlsStream::Step::again) return Step::again;
  is_shaking_hands_ = false;
  return Step::done;
}

Wire::Step Wire::receive(std::string& bytes) {
  for (int i = 0; i < kReadsMax; ++i) {
    std::array<char, kReadPiece> piece;
    const ssize_t size = ::recv(socket_.get(), piece.data(), piece.size(), 0);
    if (size == 0) has_ended_ = tls_ == nullptr;  // with TLS, an attacker can cause this
    if (size == 0) return failed("the server closed the connection");
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && errno == EAGAIN) return Step::again;
    if (size < 0) return failed(why_not("cannot read", errno));
    bytes.append(piece.data(), static_cast<std::size_t>(size));
    if (static_cast<std::size_t>(size) < kReadPiece) return Step::again;
  }
  return Step::again;
}

Wire::Step Wire::read(std::string& bytes) {
  if (tls_ == nullptr) return receive(bytes);
  cipher_in_.clear();
  const Step heard = receive(cipher_in_);
  tls_->take_in(cipher_in_);
  const TlsStream::Step step = tls_->read(bytes);
  has_ended_ = tls_->has_ended();
  tls_->move_output(cipher_out_);  // sends the answer to a key update
  if (send_cipher() == Step::failed || heard == Step::failed) return Step::failed;
  return step == TlsStream::Step::failed ? failed("TLS: " + tls_->failure()) : Step::again;
}

Wire::Step Wire::send_cipher() {
  std::size_t sent = 0;
  while (sent < cipher_out_.size()) {
    const ssize_t size = ::send(socket_.get(), cipher_out_.data() + sent, cipher_out_.size() - sent, MSG_NOSIGNAL);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && errno == EAGAIN) break;
    if (size < 0) return failed(why_not("cannot send", errno));
    sent += static_cast<std::size_t>(size);
  }
  cipher_out_.erase(0, sent);
  return cipher_out_.empty() ? Step::done : Step::again;
}

Wire::Step Wire::write(std::string_view bytes, std::size_t& taken) {
  taken = 0;
  while (tls_ == nullptr && taken < bytes.size()) {
    const ssize_t size = ::send(socket_.get(), bytes.data() + taken, bytes.size() - taken, MSG_NOSIGNAL);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && errno == EAGAIN) return Step::again;
    if (size < 0) return failed(why_not("cannot send", errno));
    taken += static_cast<std::size_t>(size);
  }
  if (tls_ == nullptr) return Step::done;
  if (const Step sent = send_cipher(); sent != Step::done) return sent;
  while (taken < bytes.size()) {
    const std::string_view piece = bytes.substr(taken, kCipherMax);
    if (!tls_->write(piece)) return failed("TLS: " + tls_->failure());
    taken += piece.size();
    tls_->move_output(cipher_out_);
    if (const Step sent = send_cipher(); sent != Step::done) return sent;
  }
  return Step::done;
}

void Wire::close() {
  socket_.close();
  tls_.reset();
  cipher_out_.clear();
  is_connecting_ = is_shaking_hands_ = has_received_tls_ = has_ended_ = false;
}

}  // namespace weir::net
