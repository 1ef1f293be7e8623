// An OpenSSL client of a connection over a real socket pair, with a certificate.
//
// One thread. Used by tls_test.cc and tls_abuse_test.cc.
#pragma once

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>

#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/folder_fixture.h"
#include "server/connection_fixture.h"
#include "server/loop/tls.h"

namespace weir::server {

// A self-signed certificate and its key, in files of a temporary folder.
struct CertificatePair {
  CertificatePair() { write(1); }

  void write(long serial) const {
    EVP_PKEY* const made = EVP_EC_gen("P-256");
    X509* const leaf = X509_new();
    ASN1_INTEGER_set(X509_get_serialNumber(leaf), serial);
    X509_gmtime_adj(X509_getm_notBefore(leaf), -60);
    X509_gmtime_adj(X509_getm_notAfter(leaf), 3600);
    X509_set_pubkey(leaf, made);
    X509_sign(leaf, made, EVP_sha256());
    FILE* file = std::fopen(certificate.c_str(), "w");
    PEM_write_X509(file, leaf);
    std::fclose(file);
    file = std::fopen(key.c_str(), "w");
    PEM_write_PrivateKey(file, made, nullptr, nullptr, 0, nullptr, nullptr);
    std::fclose(file);
    X509_free(leaf);
    EVP_PKEY_free(made);
  }

  base::TestFolder folder;
  const std::string certificate = folder.at("leaf.pem"), key = folder.at("leaf.key");
};

class TlsConnections : public Connections {
 protected:
  void TearDown() override {
    SSL_free(ssl);
    SSL_CTX_free(context);
  }

  // Opens a connection that begins as the options say, and a client that has not sent anything yet.
  void enter(loop::HandshakeOptions wanted) {
    options = wanted;
    open(loop::make_no_session());
    connection->begin_with(
        std::make_unique<loop::Handshake>(options, make_session, std::string("192.0.2.1"), connection->descriptor()));
    SSL_free(ssl);
    SSL_CTX_free(context);
    context = SSL_CTX_new(TLS_client_method());
    SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    ssl = SSL_new(context);
    SSL_set_fd(ssl, client.get());
    SSL_set_connect_state(ssl);
  }

  // Opens a TLS connection of a Redis client.
  bool connect_redis() {
    enter({.tls = certificates.get(), .inside = loop::TlsInside::redis});
    return shake_hands();
  }

  bool shake_hands() {
    for (int i = 0; i < 20 && SSL_do_handshake(ssl) != 1; ++i) turn();
    turn();  // the handshake's last message is the client's
    return SSL_is_init_finished(ssl) == 1;
  }

  // Sends all of `bytes` while the server reads what it accepts, and reads answers only after `take_from` bytes are
  // sent.
  std::string talk(const std::string& bytes, std::size_t take_from = 0) {
    std::string taken, buffer(std::size_t{1} << 16, '\0');
    std::size_t sent = 0;
    bool takes = take_from == 0;
    for (int idle = 0; idle < 50; ++idle) {
      ERR_clear_error();
      const int wrote =
          sent < bytes.size() ? SSL_write(ssl, bytes.data() + sent, static_cast<int>(bytes.size() - sent)) : 0;
      if (wrote > 0) {
        sent += static_cast<std::size_t>(wrote);
        idle = 0;
      }
      takes = takes || sent >= take_from || idle > 30;
      ERR_clear_error();
      const int read = takes ? SSL_read(ssl, buffer.data(), static_cast<int>(buffer.size())) : 0;
      if (read > 0) {
        taken.append(buffer, 0, static_cast<std::size_t>(read));
        idle = 0;
      }
      turn_as_epoll();
    }
    return taken;
  }

  // A turn that first checks whether the socket is readable, so that it acts only on what epoll would report.
  void turn_as_epoll() {
    if (connection->is_dead()) return;
    if (is_readable() && (connection->interest() & EPOLLIN) != 0) connection->on_readable();
    finish_turn();
  }
  bool is_readable() const {
    char byte = 0;
    return recv(connection->descriptor(), &byte, 1, MSG_PEEK) >= 0;
  }

  std::string read_plain() {
    std::string text(4096, '\0');
    const ssize_t size = recv(client.get(), text.data(), text.size(), 0);
    text.resize(static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
    return text;
  }
  void say_plain(std::string_view bytes) {
    ASSERT_EQ(::send(client.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
    turn();
  }
  void wait(std::uint64_t seconds) {
    for (std::uint64_t i = 0; i < seconds && !connection->is_dead(); ++i) {
      ++all.tick;
      connection->on_tick();
      finish_turn();
    }
  }

  CertificatePair pair;
  const std::unique_ptr<loop::TlsCertificates> certificates =
      loop::load_certificates({.certificate = pair.certificate, .key = pair.key}).value();
  loop::HandshakeOptions options{};
  std::string peer;
  loop::MakeSession make_session = [this](std::string address) {
    peer = std::move(address);
    return resp::make_resp_session(resp, 1);
  };
  base::IpSet proxies;
  SSL_CTX* context = nullptr;
  SSL* ssl = nullptr;
};

}  // namespace weir::server
