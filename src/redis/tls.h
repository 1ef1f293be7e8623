// Client-side TLS from bytes to bytes: received ciphertext goes in, ciphertext to send comes out.
//
// A context is built from files once and serves all connections. has_changed() reports that the files have changed
// since. Only tls.cc uses OpenSSL. OpenSSL never touches a socket, so nothing here blocks or raises a signal. The
// SHA-1 that Redis uses to name scripts comes from OpenSSL too. One thread may use it. Tested by tls_test.cc.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/redis_url.h"
#include "weir/result.h"

namespace weir::redis {

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
  virtual const std::string& failure() const = 0;

 protected:
  TlsStream() = default;
  TlsStream(const TlsStream&) = default;
  TlsStream& operator=(const TlsStream&) = default;
};

class TlsContext {
 public:
  virtual ~TlsContext() = default;
  virtual bool has_changed() const = 0;
  // Makes a stream for a connection to this host. Null if OpenSSL fails, as for lack of memory.
  virtual std::unique_ptr<TlsStream> open(const std::string& host) const = 0;

 protected:
  TlsContext() = default;
  TlsContext(const TlsContext&) = default;
  TlsContext& operator=(const TlsContext&) = default;
};

// Loads the files. An error names the file and the fix.
Result<std::shared_ptr<const TlsContext>> load_tls(const TlsSettings& settings);

// Checks whether all files that the address names, including password files, are usable now. Run at startup: retrying
// does not help with a file that cannot be used.
Result<void> check_files(const Target& target);

// The name that Redis gives a script: 40 hexadecimal digits.
std::string name_of_script(std::string_view text);

}  // namespace weir::redis
