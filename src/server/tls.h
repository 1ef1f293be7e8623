// TLS: the certificate that the doors show, and one stream for each connection that speaks it.
//
// The certificate can be loaded again while connections are open: they go on with what they began with, the next ones
// see the new one, and a pair that is no good leaves the old in force. A stream never waits; it works on a socket that
// does not block and says what it waits for. TlsCertificates: any thread; a stream: its loop's. OpenSSL is seen in
// tls.cc alone. Tested by tls_test.cc and tests/server/tls.sh.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "server/counts.h"
#include "weir/result.h"

namespace weir {

struct TlsOptions {
  std::string certificate{};         // PEM: the leaf first, then its chain; empty: no TLS
  std::string key{};                 // PEM, without a passphrase
  std::string client_ca{};           // PEM: clients must show a certificate of one of these; empty: they need none
  std::array<bool, kDoors> doors{};  // which speak TLS

  bool is_on() const { return !certificate.empty(); }
};

// What is spoken inside, which the two sides agree on by ALPN.
enum class TlsInside : std::uint8_t {
  http1,  // a client that names protocols must name http/1.1
  h2,     // it must name h2
  redis,  // one that names protocols must name redis: what a browser sends is no Redis client's
};

class TlsStream {
 public:
  enum class Step : std::uint8_t { done, again, failed };

  virtual ~TlsStream() = default;

  // Until it is done, only it and wants_write() may be called.
  virtual Step handshake() = 0;

  // Reads all that has come and fits; 0 if nothing has. At least kRecordMax is given, so that nothing stays behind
  // where epoll does not see it.
  static constexpr std::size_t kRecordMax = std::size_t{16} << 10;
  virtual std::size_t receive(std::span<char> room) = 0;
  // How much was taken; 0: nothing more now. What was not is given again, more behind it, nothing taken away.
  virtual std::size_t send(std::string_view bytes) = 0;
  // Tells the client that nothing more comes. Again: it cannot be written yet.
  virtual Step say_goodbye() = 0;

  // Something other than send() could not write: go_on() once the socket can be written to.
  virtual bool wants_write() const = 0;
  virtual void go_on() = 0;

  // The client sends no more, or what it sent is no good; of the latter nothing more can be sent either.
  virtual bool has_ended() const = 0;
  virtual bool has_failed() const = 0;
  // It sent so many records in a row without a byte for the session that it was taken to fail.
  static constexpr std::size_t kIdleRecordsMax = 64;
  virtual bool has_babbled() const = 0;
  // A record, or a handshake's message after the handshake, was begun and has not come to its end; it holds memory.
  virtual bool is_midway() const = 0;
  static constexpr std::size_t kMidwayHeld = std::size_t{17} << 10;
  // What a handshake holds until it is done, measured.
  static constexpr std::size_t kHandshakeHeld = std::size_t{44} << 10;
  // Why; in OpenSSL's words.
  virtual std::string_view failure() const = 0;

 protected:
  TlsStream() = default;
  TlsStream(const TlsStream&) = default;
  TlsStream& operator=(const TlsStream&) = default;
};

// What a client that speaks TLS begins with.
inline constexpr char kTlsHandshake = 0x16;
// What one that does not is told, in the plain.
std::string_view plain_words(TlsInside inside);

// How it stands with the certificate, for whoever looks after the server.
struct TlsStatus {
  bool is_on = false;
  bool last_reload_ok = true;
  std::uint64_t reloads = 0;  // that were good
  std::uint64_t failed_reloads = 0;
  std::int64_t not_after = 0;  // when the leaf ends, in seconds since 1970
};

class TlsCertificates {
 public:
  virtual ~TlsCertificates() = default;

  // Reads the files again and logs what came of it. A pair that is no good changes nothing.
  virtual void reload() = 0;
  // The same if the files have become others and have rested since the last look: for whoever looks every second. If
  // they were no good, also after some looks at the same files.
  virtual void reload_if_changed() = 0;

  // For a connection that was accepted; null without memory.
  virtual std::unique_ptr<TlsStream> open(int socket, TlsInside inside) const = 0;

  virtual TlsStatus status() const = 0;

 protected:
  TlsCertificates() = default;
  TlsCertificates(const TlsCertificates&) = default;
  TlsCertificates& operator=(const TlsCertificates&) = default;
};

// load_certificates()
//
// An error names the file and what to do about it.
Result<std::unique_ptr<TlsCertificates>> load_certificates(TlsOptions options);

}  // namespace weir
