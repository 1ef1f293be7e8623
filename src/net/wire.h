// One connection as a stream of bytes: a non-blocking socket, with optional TLS.
//
// It never blocks: it reports what it waits for and why it failed. One thread may use it. Tested by wire_test.cc,
// and by client_test.cc and tls_test.cc of src/redis.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/descriptor.h"
#include "net/connect.h"
#include "net/tls.h"

namespace weir::net {

class Wire {
 public:
  enum class Step : std::uint8_t { done, again, failed };

  // Starts to connect. With `tls`, the TLS handshake follows.
  Step open(const SocketAddress& address, std::unique_ptr<TlsStream> tls);
  // The same with a socket that is connected.
  Step open(base::Descriptor socket, std::unique_ptr<TlsStream> tls);
  // Call after each event until it returns done.
  Step advance();
  // Appends received bytes. Returns again if more may come, and failed if the peer closed the connection or it broke.
  Step read(std::string& bytes);
  // Sets `taken` to the number of bytes accepted.
  Step write(std::string_view bytes, std::size_t& taken);
  void close();

  int descriptor() const { return socket_.get(); }
  bool is_open() const { return static_cast<bool>(socket_); }
  bool is_unreached() const { return is_connecting_; }
  // read() has failed because the server sends no more. With TLS, this needs close_notify: an attacker can close the
  // TCP connection.
  bool has_ended() const { return has_ended_; }
  // The TLS handshake has started, but nothing that looks like TLS was received.
  bool may_lack_tls() const { return is_shaking_hands_ && !is_connecting_ && !has_received_tls_; }
  bool wants_write() const { return is_connecting_ || !cipher_out_.empty(); }
  const std::string& failure() const { return failure_; }

 private:
  void begin(base::Descriptor socket, std::unique_ptr<TlsStream> tls);
  Step failed(std::string why);
  Step established();
  Step shake_hands();
  Step send_cipher();
  Step receive(std::string& bytes);

  base::Descriptor socket_;
  std::unique_ptr<TlsStream> tls_;
  std::string cipher_out_;  // ciphertext that the socket has not accepted yet
  std::string cipher_in_;
  std::string failure_;
  bool is_connecting_ = false;
  bool is_shaking_hands_ = false;
  bool has_received_tls_ = false;
  bool has_ended_ = false;
};

}  // namespace weir::net
