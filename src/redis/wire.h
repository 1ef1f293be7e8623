// One connection as a stream of bytes: a socket that does not block, and TLS on it if that is wanted.
//
// It says what it waits for, and why it failed. One thread. Tested by wire_test.cc, client_test.cc and
// tls_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "redis/resolver.h"
#include "redis/tls.h"
#include "server/descriptor.h"

namespace weir::redis {

class Wire {
 public:
  enum class Step : std::uint8_t { done, again, failed };

  // Begins to connect; the stream, if there is one, speaks first.
  Step open(const SocketAddress& address, std::unique_ptr<TlsStream> tls);
  // After each event, until it is done.
  Step advance();
  // Appends what has come; again: and more may come. Failed: the other side has ended it, or it broke.
  Step read(std::string& bytes);
  // How much was taken.
  Step write(std::string_view bytes, std::size_t& taken);
  void close();

  int descriptor() const { return socket_.get(); }
  bool is_open() const { return static_cast<bool>(socket_); }
  bool is_unreached() const { return is_connecting_; }
  // A hand was held out, and nothing came back that TLS begins with.
  bool may_lack_tls() const { return is_shaking_hands_ && !is_connecting_ && !has_heard_tls_; }
  bool wants_write() const { return is_connecting_ || !cipher_out_.empty(); }
  const std::string& failure() const { return failure_; }

 private:
  Step failed(std::string why);
  Step established();
  Step shake_hands();
  Step send_cipher();
  Step receive(std::string& bytes);

  Descriptor socket_;
  std::unique_ptr<TlsStream> tls_;
  std::string cipher_out_;  // what TLS has to say and the socket has not taken
  std::string cipher_in_;
  std::string failure_;
  bool is_connecting_ = false;
  bool is_shaking_hands_ = false;
  bool has_heard_tls_ = false;
};

}  // namespace weir::redis
