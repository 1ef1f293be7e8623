// TLS and PROXY headers on a connection over a real pair of sockets: a client of OpenSSL that is fast, late, slow, rude
// or gone, and what is counted of it.
#include "server/tls.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <sys/ioctl.h>

#include <cstdio>
#include <filesystem>
#include <string>

#include "server/connection_fixture.h"

namespace weir {
namespace {

namespace fs = std::filesystem;

// A certificate that signs itself, and its key, in files of a folder of this test.
struct Pair {
  explicit Pair(const std::string& name) {
    const auto folder = fs::temp_directory_path() / ("weir_tls_" + std::to_string(getpid()));
    fs::create_directories(folder);
    certificate = folder / (name + ".pem");
    key = folder / (name + ".key");
    write(1);
  }

  Pair(const Pair&) = delete;
  Pair& operator=(const Pair&) = delete;
  ~Pair() { fs::remove_all(certificate.parent_path()); }

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

  fs::path certificate, key;
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

  // A connection that begins as the entrance says, and a client of it that has not said anything yet.
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
    turn();  // the last of it is the client's
    return SSL_is_init_finished(ssl) == 1;
  }

  // Sends all of `bytes` while the server reads what it wants to, and takes answers only from `take_from` bytes on.
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

  // A turn of a loop that asks the socket first: nothing happens that epoll would not have told.
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

  Pair pair{testing::UnitTest::GetInstance()->current_test_info()->name()};
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

TEST_F(TlsConnections, AnswerByteForByteHoweverLateTheClientTakesIt) {
  const auto certificates = load();
  std::string pings, pongs;
  for (int i = 0; i < 60'000; ++i) {
    const std::string word = "word" + std::to_string(i);
    pings += "*2\r\n$4\r\nPING\r\n$" + std::to_string(word.size()) + "\r\n" + word + "\r\n";
    pongs += "$" + std::to_string(word.size()) + "\r\n" + word + "\r\n";
  }
  for (const std::size_t take_from : {std::size_t{0}, std::size_t{100'000}, pings.size()}) {
    enter({.tls = certificates.get(), .inside = TlsInside::redis});
    ASSERT_TRUE(shake_hands());
    EXPECT_EQ(peer, "192.0.2.1");
    EXPECT_TRUE(talk(pings, take_from) == pongs) << "taken from byte " << take_from << " on";
  }
}

TEST_F(TlsConnections, TellTheClientThatTheyEnd) {
  const auto certificates = load();
  enter({.tls = certificates.get(), .inside = TlsInside::redis});
  ASSERT_TRUE(shake_hands());
  EXPECT_EQ(talk("QUIT\r\n"), "+OK\r\n");
  char byte = 0;
  const int size = SSL_read(ssl, &byte, 1);
  EXPECT_EQ(SSL_get_error(ssl, size), SSL_ERROR_ZERO_RETURN) << "an end that was not cut off";
  client.close();
  turn();
  EXPECT_TRUE(connection->is_dead());
}

TEST_F(TlsConnections, EndWhenTheClientSaysThatItHasEnded) {
  const auto certificates = load();
  enter({.tls = certificates.get(), .inside = TlsInside::redis});
  ASSERT_TRUE(shake_hands());
  SSL_write(ssl, "PING\r\n", 6);
  SSL_shutdown(ssl);  // right behind it; the socket stays open
  turn();
  std::string answer(16, '\0');
  ASSERT_EQ(SSL_read(ssl, answer.data(), 16), 7);
  EXPECT_EQ(answer.substr(0, 7), "+PONG\r\n") << "what was asked before is answered";
  EXPECT_TRUE(connection->is_dead());
}

TEST_F(TlsConnections, ChangeKeysWhenTheClientWantsTo) {
  const auto certificates = load();
  enter({.tls = certificates.get(), .inside = TlsInside::redis});
  ASSERT_TRUE(shake_hands());
  for (int i = 0; i < 20; ++i) {
    ASSERT_EQ(SSL_key_update(ssl, SSL_KEY_UPDATE_REQUESTED), 1);
    ASSERT_EQ(talk("PING\r\n"), "+PONG\r\n");
  }
}

TEST_F(TlsConnections, DoNotListenToKeysAlone) {
  const auto certificates = load();
  enter({.tls = certificates.get(), .inside = TlsInside::redis});
  ASSERT_TRUE(shake_hands());
  const auto change_keys = [this](std::size_t times) {
    for (std::size_t i = 0; i < times; ++i) {
      SSL_key_update(ssl, SSL_KEY_UPDATE_NOT_REQUESTED);
      ASSERT_EQ(SSL_do_handshake(ssl), 1);
    }
  };
  const auto waiting = [this] {
    int size = 0;
    EXPECT_EQ(ioctl(connection->descriptor(), FIONREAD, &size), 0);
    return size;
  };
  change_keys(50);
  const int all_of_them = waiting();
  turn_as_epoll();
  EXPECT_GT(waiting(), all_of_them / 2) << "others have their turn";
  while (is_readable()) turn_as_epoll();
  ASSERT_EQ(talk("PING\r\n"), "+PONG\r\n");
  change_keys(TlsStream::kIdleRecordsMax - 1);
  while (is_readable()) turn_as_epoll();
  ASSERT_EQ(talk("PING\r\n"), "+PONG\r\n") << "not too many, since there was a word between";
  change_keys(TlsStream::kIdleRecordsMax + 1);
  while (is_readable()) turn_as_epoll();
  EXPECT_TRUE(connection->is_dead());
  EXPECT_EQ(refused(Refused::malformed), 1U);
}

TEST_F(TlsConnections, DoNotWaitForAHandshakeForEver) {
  const auto certificates = load();
  enter({.tls = certificates.get()});
  say_plain("\x16\x03\x01");
  wait(10);
  EXPECT_FALSE(connection->is_dead());
  wait(1);
  EXPECT_TRUE(connection->is_dead());
  EXPECT_EQ(refused(Refused::slow), 1U);
  enter({.tls = certificates.get()});
  wait(11);
  EXPECT_TRUE(connection->is_dead()) << "nor for its first byte";
}

TEST_F(TlsConnections, DoNotWaitForTheRestOfARecordForEver) {
  const auto certificates = load();
  const std::uint32_t header = Patience{}.header;
  std::uint64_t cut = 0;
  const std::string record = std::string("\x17\x03\x03\x40\x00", 5) + std::string(16'000, 'x');
  for (const std::size_t size : {std::size_t{1}, std::size_t{5}, std::size_t{6}, record.size()}) {
    enter({.tls = certificates.get(), .inside = TlsInside::redis});
    ASSERT_TRUE(shake_hands());
    wait(header + 5);
    EXPECT_FALSE(connection->is_dead()) << "who says nothing may stay";
    const std::size_t before = all.held;
    say_plain(record.substr(0, size));
    turn();
    EXPECT_GE(all.held - before, TlsStream::kRecordMax) << "its memory is counted, " << size;
    wait(header);
    EXPECT_EQ(refused(Refused::slow), cut);
    wait(1);
    EXPECT_EQ(refused(Refused::slow), ++cut) << size;
    read_plain();  // the last words
    wait(10);
    EXPECT_TRUE(connection->is_dead());
  }
  connection.reset();
  EXPECT_EQ(all.held, 0U);
}

TEST_F(TlsConnections, TellWhoSpeaksInThePlain) {
  const auto certificates = load();
  enter({.tls = certificates.get(), .inside = TlsInside::http1});
  say_plain("GET / HTTP/1.1\r\n\r\n");
  EXPECT_NE(read_plain().find("400 Bad Request"), std::string::npos);
  enter({.tls = certificates.get(), .inside = TlsInside::redis});
  say_plain("PING\r\n");
  EXPECT_NE(read_plain().find("-ERR this port speaks TLS"), std::string::npos);
  enter({.tls = certificates.get(), .inside = TlsInside::h2});
  say_plain("PRI * HTTP/2.0\r\n");
  EXPECT_EQ(read_plain(), "");
  EXPECT_EQ(refused(Refused::tls), 3U);
  wait(5);
  EXPECT_TRUE(connection->is_dead()) << "it lingers for a moment, no longer";
  enter({.tls = certificates.get()});
  client.close();
  turn();
  EXPECT_TRUE(connection->is_dead());
  EXPECT_EQ(refused(Refused::tls), 3U) << "who came and left without a word is no news";
}

TEST_F(TlsConnections, NeedH2ToBeNamedWhereItIsSpoken) {
  const auto certificates = load();
  enter({.tls = certificates.get(), .inside = TlsInside::h2});
  shake_hands();
  EXPECT_EQ(refused(Refused::tls), 1U) << "named nothing";
  enter({.tls = certificates.get(), .inside = TlsInside::h2});
  const std::string names = "\x08http/1.1\x02h2";
  SSL_set_alpn_protos(ssl, reinterpret_cast<const unsigned char*>(names.data()), static_cast<unsigned>(names.size()));
  EXPECT_TRUE(shake_hands());
  EXPECT_EQ(refused(Refused::tls), 1U);
}

TEST_F(TlsConnections, KeepTheCertificateThatTheyBeganWith) {
  const auto certificates = load();
  const auto serial = [this] { return ASN1_INTEGER_get(X509_get_serialNumber(SSL_get0_peer_certificate(ssl))); };
  enter({.tls = certificates.get(), .inside = TlsInside::redis});
  ASSERT_TRUE(shake_hands());
  pair.write(2);
  certificates->reload_if_changed();
  EXPECT_EQ(certificates->status().reloads, 0U) << "it may not be whole yet";
  certificates->reload_if_changed();
  EXPECT_EQ(certificates->status().reloads, 1U);
  EXPECT_EQ(serial(), 1);
  EXPECT_EQ(talk("PING\r\n"), "+PONG\r\n");
  enter({.tls = certificates.get(), .inside = TlsInside::redis});
  ASSERT_TRUE(shake_hands());
  EXPECT_EQ(serial(), 2);

  fs::resize_file(pair.key, 10);
  certificates->reload();
  EXPECT_FALSE(certificates->status().last_reload_ok);
  EXPECT_EQ(certificates->status().failed_reloads, 1U);
  EXPECT_GT(certificates->status().not_after, 1'700'000'000);
  certificates->reload_if_changed();
  EXPECT_EQ(certificates->status().failed_reloads, 1U) << "what is bad is told once";
  enter({.tls = certificates.get(), .inside = TlsInside::redis});
  ASSERT_TRUE(shake_hands());
  EXPECT_EQ(serial(), 2);
}

TEST_F(TlsConnections, AreServedOnceWhenTheServerStopsInTheirHandshake) {
  const auto certificates = load();
  enter({.tls = certificates.get(), .inside = TlsInside::redis});
  SSL_do_handshake(ssl);
  connection->drain();
  finish_turn();
  EXPECT_FALSE(connection->is_dead()) << "it has begun";
  SSL_do_handshake(ssl);
  SSL_write(ssl, "PING\r\n", 6);
  turn();
  std::string answer(16, '\0');
  EXPECT_EQ(SSL_read(ssl, answer.data(), 16), 7);
  wait(5);
  EXPECT_TRUE(connection->is_dead());

  enter({.tls = certificates.get()});
  connection->drain();
  finish_turn();
  EXPECT_TRUE(connection->is_dead()) << "it has said nothing";
  enter({.tls = certificates.get()});
  say_plain("\x16");
  connection->drain();
  wait(3);
  EXPECT_TRUE(connection->is_dead()) << "it takes its time";
}

TEST_F(TlsConnections, LearnFromAProxyWhoTheirClientIs) {
  enter({.proxies = &proxies});
  say_plain("PROXY TCP4 198.51.100.7 192.0.2.9 1 2\r\nPING\r\n");
  turn();
  EXPECT_EQ(peer, "198.51.100.7");
  EXPECT_EQ(read_plain(), "+PONG\r\n");

  const auto certificates = load();
  enter({.proxies = &proxies, .tls = certificates.get(), .inside = TlsInside::redis});
  say_plain("PROXY TCP6 2001:db8::7 2001:db8::9 1 2\r\n");
  ASSERT_TRUE(shake_hands());
  EXPECT_EQ(peer, "2001:db8::7");
  EXPECT_EQ(talk("PING\r\n"), "+PONG\r\n");

  enter({.proxies = &proxies});
  say_plain("PING\r\n");
  EXPECT_EQ(refused(Refused::proxy), 1U);
  EXPECT_EQ(read_plain(), "");
  enter({.proxies = &proxies});
  say_plain("PROXY TCP4 198.51");
  wait(11);
  EXPECT_TRUE(connection->is_dead());
  EXPECT_EQ(refused(Refused::slow), 1U);
}

TEST_F(TlsConnections, BeyondTheBoundAreClosedBeforeTheirHandshake) {
  const auto certificates = load();
  enter({.tls = certificates.get()});
  connection->refuse(GiveUp::too_crowded);
  EXPECT_TRUE(connection->is_dead());
}

}  // namespace
}  // namespace weir
