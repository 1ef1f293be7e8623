// TLS: the certificate of the listeners, and one stream for each TLS connection.
//
// The certificate can be reloaded while connections are open. They keep the certificate they began with; new
// connections get the new one. An invalid pair leaves the old one in use. A stream never waits: it works on a
// non-blocking socket and says what it waits for. TlsCertificates: any thread; a stream: its loop's thread. Only
// tls.cc sees OpenSSL. Tested by tls_test.cc and tests/server/tls.sh.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "server/loop/counts.h"
#include "weir/result.h"

namespace weir::server::loop {

struct TlsOptions {
  std::string certificate{};      // PEM: the leaf first, then its chain; empty: no TLS
  std::string key{};              // PEM, without a passphrase
  std::string client_ca{};        // PEM: clients must have a certificate of one of these; empty: they need none
  PerListener<bool> listeners{};  // listeners that use TLS

  bool is_on() const { return !certificate.empty(); }
};

// The protocol inside TLS, which ALPN negotiates. tls.cc has a table in this order.
enum class TlsInside : std::uint8_t {
  http1,  // if the client sends ALPN, it must include http/1.1
  h2,     // ALPN must include h2
  redis,  // if the client sends ALPN, it must include redis: this keeps browsers out
};

class TlsStream {
 public:
  enum class Step : std::uint8_t { done, again, failed };

  virtual ~TlsStream() = default;

  // Until it is done, call only this and wants_write().
  virtual Step handshake() = 0;

  // Reads all available bytes that fit; 0 if there are none. `buffer` has at least kRecordMax bytes, so that no
  // decrypted bytes stay behind, where epoll does not see them.
  static constexpr std::size_t kRecordMax = std::size_t{16} << 10;
  virtual std::size_t receive(std::span<char> buffer) = 0;
  // Returns how many bytes were written; 0: the socket accepts none now. Pass the rest again, with more after it; do
  // not shorten it.
  virtual std::size_t send(std::string_view bytes) = 0;
  // Sends close_notify. `again`: it cannot be written yet.
  virtual Step send_close_notify() = 0;

  // A write other than send() is blocked: call go_on() when the socket is writable.
  virtual bool wants_write() const = 0;
  virtual void go_on() = 0;

  // has_ended(): the client sends no more. has_failed(): its input is invalid, and nothing more can be sent.
  virtual bool has_ended() const = 0;
  virtual bool has_failed() const = 0;
  // It exceeded the number of consecutive records without application data, so the stream counts as failed.
  static constexpr std::size_t kIdleRecordsMax = 64;
  virtual bool sends_idle_records() const = 0;
  // A record, or a message after the handshake, has begun and is incomplete; it uses memory.
  virtual bool is_midway() const = 0;
  static constexpr std::size_t kMidwayHeld = std::size_t{17} << 10;
  // Memory of a handshake until it is done, as measured.
  static constexpr std::size_t kHandshakeHeld = std::size_t{44} << 10;
  // The reason, in OpenSSL's words.
  virtual std::string_view failure() const = 0;
};

// The first byte of a client that speaks TLS.
inline constexpr char kTlsHandshake = 0x16;
// The plain-text answer to a client that does not speak TLS.
std::string_view plain_words(TlsInside inside);

// The certificate's state, for operators.
struct TlsStatus {
  bool is_on = false;
  bool last_reload_ok = true;
  std::uint64_t reloads = 0;  // successful ones
  std::uint64_t failed_reloads = 0;
  std::int64_t not_after = 0;  // when the leaf expires, in seconds since 1970
};

class TlsCertificates {
 public:
  virtual ~TlsCertificates() = default;

  // Reads the files again and logs the result. An invalid pair changes nothing.
  virtual void reload() = 0;
  // The same, if the files have changed and then stayed the same since the last call; for a call every second. If
  // they were invalid, it also tries again after some calls with unchanged files.
  virtual void reload_if_changed() = 0;

  // For an accepted connection; null if there is no memory.
  virtual std::unique_ptr<TlsStream> open(int socket, TlsInside inside) const = 0;

  virtual TlsStatus status() const = 0;
};

// load_certificates()
//
// An error names the file and what to do about it.
Result<std::unique_ptr<TlsCertificates>> load_certificates(TlsOptions options);

}  // namespace weir::server::loop
