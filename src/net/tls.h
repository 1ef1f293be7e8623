// Client-side TLS from bytes to bytes: received ciphertext goes in, ciphertext to send comes out.
//
// A context is built from files once and serves all connections. has_changed() reports that the files have changed
// since. Only tls.cc uses OpenSSL. OpenSSL never touches a socket, so nothing here blocks or raises a signal. One
// thread may use it. Tested by redis/tls_test.cc and tests/server/tls.sh.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/endpoint.h"
#include "weir/result.h"

namespace weir::net {

class TlsStream {
 public:
  enum class Step : std::uint8_t { done, again, failed };

  virtual ~TlsStream() = default;

  virtual Step handshake() = 0;
  // Accepts bytes from the socket. read() appends the decrypted bytes to `plain`.
  virtual void take_in(std::string_view cipher) = 0;
  virtual Step read(std::string& plain) = 0;
  virtual bool write(std::string_view plain) = 0;
  // Appends the bytes to send, and removes them from here.
  virtual void move_output(std::string& cipher) = 0;
  // read() has failed because the server has sent close_notify: all its bytes have arrived.
  virtual bool has_ended() const = 0;
  virtual const std::string& failure() const = 0;
};

class TlsContext {
 public:
  virtual ~TlsContext() = default;
  virtual bool has_changed() const = 0;
  // Makes a stream for a connection to this host. Null if OpenSSL fails, as for lack of memory.
  virtual std::unique_ptr<TlsStream> open(const std::string& host) const = 0;
};

// Loads the files. An error names the file and the fix. It writes the setting with the texts before and after its
// name: `ca=FILE`, or `--tls-ca FILE`.
Result<std::shared_ptr<const TlsContext>> load_tls(const base::TlsSettings& settings, std::string_view before_name = "",
                                                   std::string_view after_name = "=");

// Of 20 bytes, as Redis names a script: 40 hexadecimal digits.
std::string sha1_hex(std::string_view text);

}  // namespace weir::net
