// An OpenSSL client of a connection over a real socket pair, with a certificate.
//
// One thread. Used by tls_test.cc and tls_abuse_test.cc.
#pragma once

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "server/loop/connection_fixture.h"
#include "server/loop/tls.h"

namespace weir {

// A self-signed certificate and its key, in files of a temporary folder.
struct CertificatePair {
  explicit CertificatePair(const std::string& name) {
    const auto folder = std::filesystem::temp_directory_path() / ("weir_tls_" + std::to_string(getpid()));
    std::filesystem::create_directories(folder);
    certificate = folder / (name + ".pem");
    key = folder / (name + ".key");
    write(1);
  }

  CertificatePair(const CertificatePair&) = delete;
  CertificatePair& operator=(const CertificatePair&) = delete;
  ~CertificatePair() { std::filesystem::remove_all(certificate.parent_path()); }

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

  std::filesystem::path certificate, key;
};

class TlsConnections : public Connections {
 protected:
  void SetUp() override { all.held_max = std::size_t{1} << 30; }
  void TearDown() override {
    SSL_free(ssl);
    SSL_CTX_free(context);
  }

  std::unique_ptr<TlsCertificates> load() {
    auto loaded = load_certificates({.certificate = pair.certificate, .key = pair.key});
    EXPECT_TRUE(loaded) << loaded.error().message;
    return *std::move(loaded);
  }

  // Opens a connection that begins as the entrance says, and a client that has not sent anything yet.
  void enter(Entrance wanted) {
    entrance = wanted;
    open(make_no_session());
    connection->begin_with(
        std::make_unique<Prelude>(entrance, make_session, std::string("192.0.2.1"), connection->descriptor()));
    SSL_free(ssl);
    SSL_CTX_free(context);
    context = SSL_CTX_new(TLS_client_method());
    SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    ssl = SSL_new(context);
    SSL_set_fd(ssl, client.get());
    SSL_set_connect_state(ssl);
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
  std::uint64_t refused(Refused why) const { return counts.refused[static_cast<std::size_t>(why)].get(); }

  CertificatePair pair{testing::UnitTest::GetInstance()->current_test_info()->name()};
  Entrance entrance{};
  std::string peer;
  MakeSession make_session = [this](std::string address) {
    peer = std::move(address);
    return make_resp_session(resp, 1);
  };
  IpSet proxies;
  SSL_CTX* context = nullptr;
  SSL* ssl = nullptr;
};

}  // namespace weir
