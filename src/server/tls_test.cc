// Tests TLS and PROXY headers on a connection over a real socket pair, with an OpenSSL client: late reads, time-outs,
// plain text, disconnects, reloads of the certificate, and the counters.
#include "server/loop/tls.h"

#include <sys/ioctl.h>
#include <sys/resource.h>

#include "server/tls_fixture.h"

namespace weir::server {
namespace {

namespace fs = std::filesystem;

TEST_F(TlsConnections, AnswerByteForByteHoweverLateTheClientReads) {
  std::string pings, pongs;
  for (int i = 0; i < 60'000; ++i) {
    const std::string word = "word" + std::to_string(i);
    pings += "*2\r\n$4\r\nPING\r\n$" + std::to_string(word.size()) + "\r\n" + word + "\r\n";
    pongs += "$" + std::to_string(word.size()) + "\r\n" + word + "\r\n";
  }
  for (const std::size_t take_from : {std::size_t{0}, std::size_t{100'000}, pings.size()}) {
    ASSERT_TRUE(connect_redis());
    EXPECT_EQ(peer, "192.0.2.1");
    EXPECT_TRUE(talk(pings, take_from) == pongs) << "taken from byte " << take_from << " on";
  }
}

TEST_F(TlsConnections, SendCloseNotify) {
  ASSERT_TRUE(connect_redis());
  EXPECT_EQ(talk("QUIT\r\n"), "+OK\r\n");
  char byte = 0;
  const int size = SSL_read(ssl, &byte, 1);
  EXPECT_EQ(SSL_get_error(ssl, size), SSL_ERROR_ZERO_RETURN) << "the client received close_notify";
  client.close();
  turn();
  EXPECT_TRUE(connection->is_dead());
}

TEST_F(TlsConnections, EndWhenTheClientSendsCloseNotify) {
  ASSERT_TRUE(connect_redis());
  SSL_write(ssl, "PING\r\n", 6);
  SSL_shutdown(ssl);  // right after it; the socket stays open
  turn();
  std::string answer(16, '\0');
  ASSERT_EQ(SSL_read(ssl, answer.data(), 16), 7);
  EXPECT_EQ(answer.substr(0, 7), "+PONG\r\n") << "requests before the end are answered";
  EXPECT_TRUE(connection->is_dead());
}

TEST_F(TlsConnections, ChangeKeysWhenTheClientRequestsIt) {
  ASSERT_TRUE(connect_redis());
  for (int i = 0; i < 20; ++i) {
    ASSERT_EQ(SSL_key_update(ssl, SSL_KEY_UPDATE_REQUESTED), 1);
    ASSERT_EQ(talk("PING\r\n"), "+PONG\r\n");
  }
}

TEST_F(TlsConnections, ChangeKeysWhileTheClientDoesNotRead) {
  ASSERT_TRUE(connect_redis());
  const std::string word(16'000, 'x'), ping = "*2\r\n$4\r\nPING\r\n$16000\r\n" + word + "\r\n";
  std::size_t asked = 0;
  for (; (connection->interest() & EPOLLOUT) == 0 && asked < 100; ++asked) {
    SSL_write(ssl, ping.data(), static_cast<int>(ping.size()));
    turn_as_epoll();
  }
  ASSERT_LT(asked, 100U) << "the socket is full";
  ASSERT_EQ(SSL_key_update(ssl, SSL_KEY_UPDATE_REQUESTED), 1);
  ASSERT_EQ(SSL_write(ssl, ping.data(), static_cast<int>(ping.size())), static_cast<int>(ping.size()));
  turn_as_epoll();
  ASSERT_FALSE(connection->is_dead());
  EXPECT_EQ(count(talk(""), word), asked + 1);
  wait(loop::Timeouts{}.header + 5);
  EXPECT_FALSE(connection->is_dead()) << "no record is incomplete";
}

TEST_F(TlsConnections, EndIfTheClientSendsOnlyKeyUpdates) {
  ASSERT_TRUE(connect_redis());
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
  EXPECT_GT(waiting(), all_of_them / 2) << "other connections get their turn";
  while (is_readable()) turn_as_epoll();
  ASSERT_EQ(talk("PING\r\n"), "+PONG\r\n");
  change_keys(loop::TlsStream::kIdleRecordsMax - 1);
  while (is_readable()) turn_as_epoll();
  ASSERT_EQ(talk("PING\r\n"), "+PONG\r\n") << "not too many in a row, since data came in between";
  change_keys(loop::TlsStream::kIdleRecordsMax + 1);
  while (is_readable()) turn_as_epoll();
  EXPECT_TRUE(connection->is_dead());
  EXPECT_EQ(counts.count(loop::Refused::malformed), 1U);
}

TEST_F(TlsConnections, HaveATimeoutForTheHandshake) {
  enter({.tls = certificates.get()});
  say_plain("\x16\x03\x01");
  wait(10);
  EXPECT_FALSE(connection->is_dead());
  wait(1);
  EXPECT_TRUE(connection->is_dead());
  EXPECT_EQ(counts.count(loop::Refused::slow), 1U);
  enter({.tls = certificates.get()});
  wait(11);
  EXPECT_TRUE(connection->is_dead()) << "the first byte has a time-out, too";
}

TEST_F(TlsConnections, HaveATimeoutForTheRestOfARecord) {
  const std::uint32_t header = loop::Timeouts{}.header;
  std::uint64_t cut = 0;
  const std::string record = std::string("\x17\x03\x03\x40\x00", 5) + std::string(16'000, 'x');
  for (const std::size_t size : {std::size_t{1}, std::size_t{5}, std::size_t{6}, record.size()}) {
    ASSERT_TRUE(connect_redis());
    wait(header + 5);
    EXPECT_FALSE(connection->is_dead()) << "an idle client may stay";
    const std::size_t before = all.held;
    say_plain(record.substr(0, size));
    turn();
    EXPECT_GE(all.held - before, loop::TlsStream::kRecordMax) << "its memory is counted, " << size;
    wait(header);
    EXPECT_EQ(counts.count(loop::Refused::slow), cut);
    wait(1);
    EXPECT_EQ(counts.count(loop::Refused::slow), ++cut) << size;
    read_plain();  // the error message
    wait(10);
    EXPECT_TRUE(connection->is_dead());
  }
  connection.reset();
  EXPECT_EQ(all.held, 0U);
}

TEST_F(TlsConnections, AnswerPlainTextWithAnError) {
  enter({.tls = certificates.get(), .inside = loop::TlsInside::http1});
  say_plain("GET / HTTP/1.1\r\n\r\n");
  EXPECT_NE(read_plain().find("400 Bad Request"), std::string::npos);
  enter({.tls = certificates.get(), .inside = loop::TlsInside::redis});
  say_plain("PING\r\n");
  EXPECT_NE(read_plain().find("-ERR this port speaks TLS"), std::string::npos);
  enter({.tls = certificates.get(), .inside = loop::TlsInside::h2});
  say_plain("PRI * HTTP/2.0\r\n");
  EXPECT_EQ(read_plain(), "");
  EXPECT_EQ(counts.count(loop::Refused::tls), 3U);
  wait(5);
  EXPECT_TRUE(connection->is_dead()) << "it lingers for a few seconds only";
  enter({.tls = certificates.get()});
  client.close();
  turn();
  EXPECT_TRUE(connection->is_dead());
  EXPECT_EQ(counts.count(loop::Refused::tls), 3U) << "a client that disconnects without sending a byte is not counted";
}

TEST_F(TlsConnections, RequireH2InAlpnOnTheGrpcListener) {
  enter({.tls = certificates.get(), .inside = loop::TlsInside::h2});
  shake_hands();
  EXPECT_EQ(counts.count(loop::Refused::tls), 1U) << "the client sent no ALPN";
  enter({.tls = certificates.get(), .inside = loop::TlsInside::h2});
  const std::string names = "\x08http/1.1\x02h2";
  SSL_set_alpn_protos(ssl, reinterpret_cast<const unsigned char*>(names.data()), static_cast<unsigned>(names.size()));
  EXPECT_TRUE(shake_hands());
  EXPECT_EQ(counts.count(loop::Refused::tls), 1U);
}

TEST_F(TlsConnections, KeepTheCertificateOfTheirHandshake) {
  const auto serial = [this] { return ASN1_INTEGER_get(X509_get_serialNumber(SSL_get0_peer_certificate(ssl))); };
  ASSERT_TRUE(connect_redis());
  pair.write(2);
  certificates->reload_if_changed();
  EXPECT_EQ(certificates->status().reloads, 0U) << "the files may not be complete yet";
  certificates->reload_if_changed();
  EXPECT_EQ(certificates->status().reloads, 1U);
  EXPECT_EQ(serial(), 1);
  EXPECT_EQ(talk("PING\r\n"), "+PONG\r\n");
  ASSERT_TRUE(connect_redis());
  EXPECT_EQ(serial(), 2);

  fs::resize_file(pair.key, 10);
  certificates->reload();
  EXPECT_FALSE(certificates->status().last_reload_ok);
  EXPECT_EQ(certificates->status().failed_reloads, 1U);
  EXPECT_GT(certificates->status().not_after, 1'700'000'000);
  certificates->reload_if_changed();
  EXPECT_EQ(certificates->status().failed_reloads, 1U) << "an invalid pair is reported once";
  ASSERT_TRUE(connect_redis());
  EXPECT_EQ(serial(), 2);
}

#if !defined(__SANITIZE_ADDRESS__)  // the sanitizer needs descriptors of its own
TEST_F(TlsConnections, GetACertificateThatWasUnreadableAtFirst) {
  pair.write(2);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{.rlim_cur = 0, .rlim_max = before.rlim_max};
  testing::internal::CaptureStderr();
  setrlimit(RLIMIT_NOFILE, &none);  // stat() works, open() does not
  for (int i = 0; i < 70; ++i) certificates->reload_if_changed();
  setrlimit(RLIMIT_NOFILE, &before);
  const std::string lines = testing::internal::GetCapturedStderr();
  EXPECT_GT(certificates->status().failed_reloads, 1U) << "the server tries again";
  EXPECT_LT(certificates->status().failed_reloads, 5U) << "but not in every call";
  EXPECT_EQ(count(lines, "certificate reload failed, keeping the previous one"), 1U) << "and logs it once";
  for (int i = 0; i < 40; ++i) certificates->reload_if_changed();
  EXPECT_EQ(certificates->status().reloads, 1U);
  EXPECT_TRUE(certificates->status().last_reload_ok);
}
#endif

TEST_F(TlsConnections, AreServedOnceIfTheServerStopsDuringTheirHandshake) {
  enter({.tls = certificates.get(), .inside = loop::TlsInside::redis});
  SSL_do_handshake(ssl);
  connection->drain();
  finish_turn();
  EXPECT_FALSE(connection->is_dead()) << "its handshake has begun";
  SSL_do_handshake(ssl);
  SSL_write(ssl, "PING\r\n", 6);
  turn();
  std::string answer(16, '\0');
  EXPECT_EQ(SSL_read(ssl, answer.data(), 16), 7);
  wait(5);
  EXPECT_TRUE(connection->is_dead());

  enter({.tls = certificates.get()});
  say_plain("\x16");
  connection->drain();
  wait(3);
  EXPECT_TRUE(connection->is_dead()) << "its handshake takes too long";
}

TEST_F(TlsConnections, AreServedIfTheServerStopsAsTheyConnect) {
  enter({.tls = certificates.get(), .inside = loop::TlsInside::redis});
  connection->drain();
  wait(1);
  ASSERT_FALSE(connection->is_dead()) << "its first byte is on the way";
  SSL_do_handshake(ssl);
  turn();
  wait(2);
  ASSERT_FALSE(connection->is_dead()) << "from its first byte on, it has the same time-out as any other";
  ASSERT_TRUE(shake_hands());
  EXPECT_EQ(talk("PING\r\n"), "+PONG\r\n");
  wait(5);
  EXPECT_TRUE(connection->is_dead());

  for (const loop::HandshakeOptions& wanted :
       {loop::HandshakeOptions{.tls = certificates.get()}, loop::HandshakeOptions{.proxies = &proxies}}) {
    enter(wanted);
    connection->drain();
    wait(2);
    EXPECT_TRUE(connection->is_dead()) << "no byte came";
    enter(wanted);
    wait(2);
    connection->drain();
    EXPECT_TRUE(connection->is_dead()) << "it had enough time to send a byte";
  }
  EXPECT_EQ(counts.count(loop::Refused::slow), 0U) << "the client was not too slow: the server stopped";
}

TEST_F(TlsConnections, TakeTheClientsAddressFromAProxyHeader) {
  enter({.proxies = &proxies});
  say_plain("PROXY TCP4 198.51.100.7 192.0.2.9 1 2\r\nPING\r\n");
  turn();
  EXPECT_EQ(peer, "198.51.100.7");
  EXPECT_EQ(read_plain(), "+PONG\r\n");

  enter({.proxies = &proxies, .tls = certificates.get(), .inside = loop::TlsInside::redis});
  say_plain("PROXY TCP6 2001:db8::7 2001:db8::9 1 2\r\n");
  ASSERT_TRUE(shake_hands());
  EXPECT_EQ(peer, "2001:db8::7");
  EXPECT_EQ(talk("PING\r\n"), "+PONG\r\n");

  enter({.proxies = &proxies});
  say_plain("PING\r\n");
  EXPECT_EQ(counts.count(loop::Refused::proxy), 1U);
  EXPECT_EQ(read_plain(), "");
  enter({.proxies = &proxies});
  say_plain("PROXY TCP4 198.51");
  wait(11);
  EXPECT_TRUE(connection->is_dead());
  EXPECT_EQ(counts.count(loop::Refused::slow), 1U);
}

TEST_F(TlsConnections, AreClosedBeforeTheirHandshakeIfThereAreTooMany) {
  enter({.tls = certificates.get()});
  connection->refuse(loop::GiveUp::too_crowded);
  EXPECT_TRUE(connection->is_dead());
}

}  // namespace
}  // namespace weir::server
