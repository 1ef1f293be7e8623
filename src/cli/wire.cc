// A socket, optionally with OpenSSL. See wire.h.
#include "cli/wire.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <utility>

namespace weir {
namespace {

struct FreeContext {
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
};
struct FreeStream {
  void operator()(SSL* stream) const { SSL_free(stream); }
};

std::string openssl_words() {
  const char* const why = ERR_reason_error_string(ERR_peek_last_error());
  return why != nullptr ? why : "the server closed the connection";
}

// Verifies the certificate against a DNS name or an IP address.
bool expect_host(SSL* stream, const std::string& host) {
  in6_addr address{};
  if (inet_pton(AF_INET, host.c_str(), &address) == 1 || inet_pton(AF_INET6, host.c_str(), &address) == 1) {
    return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(stream), host.c_str()) == 1;
  }
  return SSL_set1_host(stream, host.c_str()) == 1 && SSL_set_tlsext_host_name(stream, host.c_str()) == 1;
}

Result<void> load_trust(SSL_CTX* context, const TlsTrust& trust) {
  const auto refused = [](const std::string& what) {
    return fail(ErrorCode::invalid_argument, what + ": " + openssl_words());
  };
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  const bool has_authorities = trust.ca.empty() ? SSL_CTX_set_default_verify_paths(context) == 1
                                                : SSL_CTX_load_verify_file(context, trust.ca.c_str()) == 1;
  if (!has_authorities) return refused("--tls-ca: no readable certificate in " + trust.ca);
  if (trust.certificate.empty()) return {};
  if (SSL_CTX_use_certificate_chain_file(context, trust.certificate.c_str()) != 1) {
    return refused("--tls-cert: no readable certificate in " + trust.certificate);
  }
  if (SSL_CTX_use_PrivateKey_file(context, trust.key.c_str(), SSL_FILETYPE_PEM) != 1) {
    return refused("--tls-key: no key in " + trust.key + " that matches " + trust.certificate);
  }
  return {};
}

}  // namespace

struct Wire::Tls {
  std::unique_ptr<SSL_CTX, FreeContext> context{SSL_CTX_new(TLS_client_method())};
  std::unique_ptr<SSL, FreeStream> stream{};
};

Wire::Wire(int socket, int patience_ms) : socket_(socket), patience_ms_(patience_ms) {}
Wire::Wire(Wire&& other) noexcept
    : socket_(std::exchange(other.socket_, -1)), patience_ms_(other.patience_ms_), tls_(std::move(other.tls_)) {}
Wire& Wire::operator=(Wire&& other) noexcept {
  std::swap(socket_, other.socket_);
  std::swap(patience_ms_, other.patience_ms_);
  std::swap(tls_, other.tls_);
  return *this;
}
Wire::~Wire() {
  if (socket_ >= 0) ::close(socket_);
}

Result<Wire> Wire::open(const load::Target& target, int patience_ms) {
  const auto socket = load::connect_to(target);
  if (!socket) return fail(socket.error());
  Wire wire(*socket, patience_ms);
  if (const auto ready = wire.connected(); !ready) return fail(ready.error());
  return wire;
}

bool Wire::wait_for(short what) const {
  pollfd waited{socket_, what, 0};
  int ready = 0;
  do {
    ready = poll(&waited, 1, patience_ms_);
  } while (ready < 0 && errno == EINTR);
  return ready > 0;
}

Result<void> Wire::connected() const {
  if (!wait_for(POLLOUT)) return away("connection timed out");
  int error = 0;
  socklen_t size = sizeof error;
  if (getsockopt(socket_, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error != 0) return away(std::strerror(error));
  return {};
}

Result<void> Wire::secure(const std::string& host, const TlsTrust& trust) {
  tls_ = std::make_unique<Tls>();
  if (!tls_->context) return away("out of memory for TLS");
  if (auto loaded = load_trust(tls_->context.get(), trust); !loaded) return loaded;
  tls_->stream.reset(SSL_new(tls_->context.get()));
  SSL* const stream = tls_->stream.get();
  if (stream == nullptr || SSL_set_fd(stream, socket_) != 1 || !expect_host(stream, host)) {
    return away("cannot start TLS: " + openssl_words());
  }
  for (;;) {
    ERR_clear_error();
    const int result = SSL_connect(stream);
    if (result == 1) return {};
    const int wanted = SSL_get_error(stream, result);
    if (wanted != SSL_ERROR_WANT_READ && wanted != SSL_ERROR_WANT_WRITE) break;
    if (!wait_for(wanted == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT)) return away("TLS handshake timed out");
  }
  if (const long distrust = SSL_get_verify_result(stream); distrust != X509_V_OK) {
    return away(std::string("the server's certificate is not trusted: ") + X509_verify_cert_error_string(distrust) +
                "; name its CA with --tls-ca FILE");
  }
  if (ERR_GET_REASON(ERR_peek_last_error()) == SSL_R_WRONG_VERSION_NUMBER) {
    return away("the server does not speak TLS; write http:// before its address");
  }
  return away("TLS handshake failed: " + openssl_words());
}

Result<std::size_t> Wire::send_some(std::string_view bytes) {
  for (;;) {
    short wanted = POLLOUT;
    if (tls_) {
      ERR_clear_error();
      const int sent =
          SSL_write(tls_->stream.get(), bytes.data(), static_cast<int>(std::min<std::size_t>(bytes.size(), INT_MAX)));
      if (sent > 0) return static_cast<std::size_t>(sent);
      const int why = SSL_get_error(tls_->stream.get(), sent);
      if (why != SSL_ERROR_WANT_READ && why != SSL_ERROR_WANT_WRITE) return away(openssl_words());
      if (why == SSL_ERROR_WANT_READ) wanted = POLLIN;
    } else {
      const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent >= 0) return static_cast<std::size_t>(sent);
      if (errno != EAGAIN && errno != EINTR) return away(std::strerror(errno));
    }
    if (!wait_for(wanted)) return away("sending the request timed out");
  }
}

Result<std::size_t> Wire::receive_some(char* room, std::size_t size) {
  for (;;) {
    short wanted = POLLIN;
    if (tls_) {
      ERR_clear_error();
      const int came = SSL_read(tls_->stream.get(), room, static_cast<int>(std::min<std::size_t>(size, INT_MAX)));
      if (came > 0) return static_cast<std::size_t>(came);
      const int why = SSL_get_error(tls_->stream.get(), came);
      if (why == SSL_ERROR_ZERO_RETURN) return 0;
      if (why != SSL_ERROR_WANT_READ && why != SSL_ERROR_WANT_WRITE) return away(openssl_words());
      if (why == SSL_ERROR_WANT_WRITE) wanted = POLLOUT;
    } else {
      const ssize_t came = ::recv(socket_, room, size, 0);
      if (came >= 0) return static_cast<std::size_t>(came);
      if (errno != EAGAIN && errno != EINTR) return away(std::strerror(errno));
    }
    if (!wait_for(wanted)) return away("the server does not answer");
  }
}

Result<void> Wire::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const auto sent = send_some(bytes);
    if (!sent) return fail(sent.error());
    bytes.remove_prefix(*sent);
  }
  return {};
}

Result<std::string> Wire::receive_all(std::size_t most) {
  std::string all;
  for (char bytes[16384];;) {
    const auto size = receive_some(bytes, sizeof bytes);
    if (!size) return fail(size.error());
    if (*size == 0) return all;
    all.append(bytes, *size);
    if (all.size() > most) return away("the answer is longer than " + std::to_string(most) + " bytes");
  }
}

}  // namespace weir
