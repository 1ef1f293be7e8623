// TLS of a client, as bytes to bytes: what the socket brought goes in, what it is to take comes out.
//
// A context is made of files once and serves all connections; has_changed() tells that the files are others now.
// OpenSSL is seen in tls.cc alone, and it never sees a socket, so nothing here waits or raises a signal. SHA-1, by
// whose digits Redis calls a script, comes from there, too. One thread. Tested by tls_test.cc.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "redis/url.h"
#include "weir/result.h"

namespace weir::redis {

class TlsStream {
 public:
  enum class Step : std::uint8_t { done, again, failed };

  virtual ~TlsStream() = default;

  virtual Step handshake() = 0;
  // What the socket has brought, and what was in it, appended to `plain`.
  virtual void take_in(std::string_view cipher) = 0;
  virtual Step read(std::string& plain) = 0;
  virtual bool write(std::string_view plain) = 0;
  // What the socket is to be given: it is appended and gone from here.
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
  // For a connection to this host; null without memory.
  virtual std::unique_ptr<TlsStream> open(const std::string& host) const = 0;

 protected:
  TlsContext() = default;
  TlsContext(const TlsContext&) = default;
  TlsContext& operator=(const TlsContext&) = default;
};

// An error names the file and what to do about it.
Result<std::shared_ptr<const TlsContext>> load_tls(const TlsSettings& settings);

// Whether all files that the address names, of passwords too, can be used now: who starts with one that cannot be
// would wait for what no waiting mends.
Result<void> check_files(const Target& target);

// The name that Redis gives to a script: 40 hexadecimal digits.
std::string name_of_script(std::string_view text);

}  // namespace weir::redis
