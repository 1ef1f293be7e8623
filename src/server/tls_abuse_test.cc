// Tests hostile TLS clients: forged records, and handshakes that never end.
//
// tls_test.cc has the clients that follow the protocol.
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/params.h>

#include <array>
#include <cstdint>
#include <vector>

#include "server/tls_fixture.h"

namespace weir::server {
namespace {

using Bytes = std::vector<unsigned char>;

constexpr unsigned char kHandshakeType = 22, kDataType = 23;
constexpr std::string_view kBegunKeyUpdate("\x18\0\0\x01", 4);  // the head of a KeyUpdate, without its one byte

Bytes bytes_of(std::string_view text) { return {text.begin(), text.end()}; }

// HKDF-Expand-Label of TLS 1.3, with an empty context.
Bytes expand(Bytes secret, std::string label, std::size_t size) {
  EVP_KDF* const kdf = EVP_KDF_fetch(nullptr, "TLS13-KDF", nullptr);
  EVP_KDF_CTX* const context = EVP_KDF_CTX_new(kdf);
  int mode = EVP_KDF_HKDF_MODE_EXPAND_ONLY;
  std::string digest = "SHA256", prefix = "tls13 ";
  const std::array params = {
      OSSL_PARAM_construct_int(OSSL_KDF_PARAM_MODE, &mode),
      OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest.data(), 0),
      OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, secret.data(), secret.size()),
      OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_PREFIX, prefix.data(), prefix.size()),
      OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_LABEL, label.data(), label.size()),
      OSSL_PARAM_construct_end(),
  };
  Bytes expanded(size);
  EXPECT_EQ(EVP_KDF_derive(context, expanded.data(), size, params.data()), 1);
  EVP_KDF_CTX_free(context);
  EVP_KDF_free(kdf);
  return expanded;
}

// Seals records of any type with the keys of a client that has finished its handshake and sent nothing since.
class Forger {
 public:
  explicit Forger(const Bytes& secret) : key_(expand(secret, "key", 16)), nonce_(expand(secret, "iv", 12)) {}

  std::string seal(unsigned char type, std::string_view text) {
    Bytes inner = bytes_of(text);
    inner.push_back(type);
    const std::size_t size = inner.size() + kTag;
    const Bytes head = {kDataType, 3, 3, static_cast<unsigned char>(size >> 8), static_cast<unsigned char>(size)};
    Bytes nonce = nonce_, sealed(inner.size()), tag(kTag);
    nonce.back() = static_cast<unsigned char>(nonce.back() ^ sealed_++);
    int done = 0;
    EVP_CIPHER_CTX* const context = EVP_CIPHER_CTX_new();
    EVP_EncryptInit_ex(context, EVP_aes_128_gcm(), nullptr, key_.data(), nonce.data());
    EVP_EncryptUpdate(context, nullptr, &done, head.data(), static_cast<int>(head.size()));
    EVP_EncryptUpdate(context, sealed.data(), &done, inner.data(), static_cast<int>(inner.size()));
    EVP_EncryptFinal_ex(context, nullptr, &done);
    EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_GCM_GET_TAG, kTag, tag.data());
    EVP_CIPHER_CTX_free(context);
    std::string record(head.begin(), head.end());
    record.append(sealed.begin(), sealed.end());
    return record.append(tag.begin(), tag.end());
  }

 private:
  static constexpr int kTag = 16;
  Bytes key_, nonce_;
  unsigned char sealed_ = 0;
};

class TlsAbuse : public TlsConnections {
 protected:
  // Connects a client, finishes its handshake, and returns a forger with its keys.
  Forger forge() {
    enter({.tls = certificates.get(), .inside = loop::TlsInside::redis});
    SSL_set_ciphersuites(ssl, "TLS_AES_128_GCM_SHA256");
    SSL_set_app_data(ssl, reinterpret_cast<char*>(&secret));
    SSL_CTX_set_keylog_callback(context, [](const SSL* from, const char* line) {
      const std::string_view text(line);
      if (!text.starts_with("CLIENT_TRAFFIC_SECRET_0 ")) return;
      const std::string_view digits = text.substr(text.rfind(' ') + 1);
      auto& kept = *static_cast<Bytes*>(SSL_get_app_data(from));
      for (std::size_t i = 0; i + 1 < digits.size(); i += 2) {
        kept.push_back(static_cast<unsigned char>(std::stoi(std::string(digits.substr(i, 2)), nullptr, 16)));
      }
    });
    EXPECT_TRUE(shake_hands());
    return Forger(secret);
  }

  Bytes secret;
};

TEST_F(TlsAbuse, AnUnfinishedHandshakeMessageDoesNotKeepTheLoopBusy) {
  Forger forger = forge();
  const std::string ping = forger.seal(kDataType, "PING\r\n");
  say_plain(ping + forger.seal(kHandshakeType, kBegunKeyUpdate));
  EXPECT_TRUE(connection->is_dead()) << "otherwise epoll would report for ever that the socket is writable";
}

TEST_F(TlsAbuse, AnUnfinishedHandshakeMessageHasATimeout) {
  Forger forger = forge();
  const std::size_t before = all.held;
  say_plain(forger.seal(kHandshakeType, kBegunKeyUpdate));
  EXPECT_FALSE(connection->is_dead()) << "the rest may come";
  EXPECT_EQ(connection->interest(), std::uint32_t{EPOLLIN});
  EXPECT_GT(all.held, before) << "its memory is counted";
  wait(loop::Timeouts{}.header + 1);
  EXPECT_EQ(counts.count(loop::Refused::slow), 1U);
  wait(10);
  EXPECT_TRUE(connection->is_dead());
}

TEST_F(TlsAbuse, AHandshakeMessageInTwoRecordsIsAccepted) {
  Forger forger = forge();
  say_plain(forger.seal(kHandshakeType, kBegunKeyUpdate));
  say_plain(forger.seal(kHandshakeType, std::string_view("\0", 1)));
  wait(loop::Timeouts{}.header + 5);
  EXPECT_FALSE(connection->is_dead()) << "the message is complete, and an idle client may stay";
}

TEST_F(TlsAbuse, UnfinishedHandshakesCountTowardsTheMemoryLimit) {
  all.held_max = loop::TlsStream::kHandshakeHeld + 1'000;
  enter({.tls = certificates.get(), .inside = loop::TlsInside::redis});
  SSL_do_handshake(ssl);
  turn();
  EXPECT_GE(all.held, loop::TlsStream::kHandshakeHeld) << "its memory is counted";
  {
    // A second handshake beside the first.
    const std::unique_ptr<loop::Connection> first = std::move(connection);
    const base::Descriptor first_client = std::move(client);
    enter({.tls = certificates.get(), .inside = loop::TlsInside::redis});
    SSL_do_handshake(ssl);
    turn();
    EXPECT_TRUE(connection->is_dead());
    EXPECT_EQ(counts.count(loop::Refused::buffers), 1U);
    connection.reset();
  }
  EXPECT_EQ(all.held, 0U);
  ASSERT_TRUE(connect_redis()) << "there is memory again";
  EXPECT_LT(all.held, 1'000U) << "a finished handshake frees its memory";
  EXPECT_EQ(talk("PING\r\n"), "+PONG\r\n");
}

}  // namespace
}  // namespace weir::server
