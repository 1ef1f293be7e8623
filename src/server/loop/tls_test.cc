// Tests TLS and PROXY headers on a connection over a real socket pair, with an OpenSSL client that is fast, late,
// slow, rude or gone, and the counts.
#include "server/loop/tls.h"

#include <sys/ioctl.h>
#include <sys/resource.h>

#include <filesystem>
#include <string>

#include "server/loop/tls_fixture.h"

namespace weir {
namespace {

namespace fs = std::filesystem;

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
  SSL_shutdown(ssl);  // right after it; the socket stays open
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

TEST_F(TlsConnections, ChangeKeysThoughTheClientTakesNothingYet) {
  const auto certificates = load();
  enter({.tls = certificates.get(), .inside = TlsInside::redis});
  ASSERT_TRUE(shake_hands());
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
  wait(Patience{}.header + 5);
  EXPECT_FALSE(connection->is_dead()) << "nothing is left begun";
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
    read_plain();  // the error message
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

#if !defined(__SANITIZE_ADDRESS__)  // the sanitizer needs descriptors of its own
TEST_F(TlsConnections, SeeACertificateThatCouldNotBeReadAtFirst) {
  const auto certificates = load();
  pair.write(2);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{.rlim_cur = 0, .rlim_max = before.rlim_max};
  testing::internal::CaptureStderr();
  setrlimit(RLIMIT_NOFILE, &none);  // stat() works, open() does not
  for (int i = 0; i < 70; ++i) certificates->reload_if_changed();
  setrlimit(RLIMIT_NOFILE, &before);
  const std::string told = testing::internal::GetCapturedStderr();
  EXPECT_GT(certificates->status().failed_reloads, 1U) << "it is tried again";
  EXPECT_LT(certificates->status().failed_reloads, 5U) << "now and then";
  EXPECT_EQ(count(told, "certificate reload failed, keeping the previous one"), 1U) << "and told once";
  for (int i = 0; i < 40; ++i) certificates->reload_if_changed();
  EXPECT_EQ(certificates->status().reloads, 1U);
  EXPECT_TRUE(certificates->status().last_reload_ok);
}
#endif

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
  say_plain("\x16");
  connection->drain();
  wait(3);
  EXPECT_TRUE(connection->is_dead()) << "it takes its time";
}

TEST_F(TlsConnections, MayBeginWhenTheServerStopsAsTheyConnect) {
  const auto certificates = load();
  enter({.tls = certificates.get(), .inside = TlsInside::redis});
  connection->drain();
  wait(1);
  ASSERT_FALSE(connection->is_dead()) << "its first byte is on the way";
  SSL_do_handshake(ssl);
  turn();
  wait(2);
  ASSERT_FALSE(connection->is_dead()) << "from then on it has as long as any other";
  ASSERT_TRUE(shake_hands());
  EXPECT_EQ(talk("PING\r\n"), "+PONG\r\n");
  wait(5);
  EXPECT_TRUE(connection->is_dead());

  for (const Entrance& wanted : {Entrance{.tls = certificates.get()}, Entrance{.proxies = &proxies}}) {
    enter(wanted);
    connection->drain();
    wait(2);
    EXPECT_TRUE(connection->is_dead()) << "nothing came";
    enter(wanted);
    wait(2);
    connection->drain();
    EXPECT_TRUE(connection->is_dead()) << "it has had the time to say something";
  }
  EXPECT_EQ(refused(Refused::slow), 0U) << "which is nobody's fault";
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
