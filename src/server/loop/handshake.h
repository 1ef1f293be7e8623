// What precedes a connection's session: the PROXY header with the client's address, then the TLS handshake.
//
// A listener requires both, one or none of them. The session is made after them, since only then the client's address
// is known. The handshake reads its own bytes from the socket and not a byte more. One thread. Tested by
// tests/server/proxy_protocol.sh and tls.sh there.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/ip_address.h"
#include "server/loop/counts.h"
#include "server/loop/session.h"
#include "server/loop/tls.h"

namespace weir::server::loop {

using MakeSession = std::function<std::unique_ptr<Session>(std::string peer)>;  // `peer` is the client's address

// What a listener requires of new connections. The pointers must outlive the listener.
struct HandshakeOptions {
  const base::IpSet* proxies = nullptr;  // every peer is one of these and sends a PROXY header; null: no PROXY header
  const TlsCertificates* tls = nullptr;  // null: no TLS
  TlsInside inside = TlsInside::http1;

  bool is_open() const { return proxies == nullptr && tls == nullptr; }
  // Whether this peer may connect at all.
  bool admits(const std::string& peer) const;
};

// Settings about peers: proxies and keep-alive.
struct PeerOptions {
  PerListener<bool> proxied{};           // listeners that require a PROXY header
  std::vector<base::IpRange> proxies{};  // trusted proxies
  std::uint32_t keepalive = 60;          // seconds of silence before the kernel probes a peer; 0: never
};

// Enables TCP keep-alive on a listening socket: accepted connections are probed, and end if the peer does not answer.
void keep_alive(int listening, std::uint32_t seconds);

class Handshake {
 public:
  using Step = TlsStream::Step;

  // Both must outlive it. It reads and writes `socket` but does not own it.
  Handshake(const HandshakeOptions& options, const MakeSession& make_session, std::string peer, int socket)
      : options_(options), make_session_(make_session), peer_(std::move(peer)), socket_(socket) {}

  Step go_on();
  // Some input has come.
  bool has_begun() const { return has_begun_; }
  bool wants_write() const { return stream_ && stream_->wants_write(); }
  // will_shake_hands(): a TLS handshake is still to come; is_shaking_hands(): it has begun and uses memory.
  bool will_shake_hands() const { return options_.tls != nullptr && !stream_; }
  bool is_shaking_hands() const { return stream_ != nullptr; }

  // After a failure: the reason, and the plain text to send before the connection is closed.
  Refused why() const { return why_; }
  void log_failure() const;
  std::string_view last_words() const { return last_words_; }

  // After success.
  std::unique_ptr<Session> make_session() { return make_session_(std::move(peer_)); }
  std::unique_ptr<TlsStream> stream() { return std::move(stream_); }

 private:
  Step read_proxy();
  Step begin_tls();
  Step fail_as(Refused why);
  Step nothing_read(long size);

  const HandshakeOptions& options_;
  const MakeSession& make_session_;
  std::string peer_;
  int socket_;
  std::string header_;  // the received part of the PROXY header
  std::unique_ptr<TlsStream> stream_;
  std::string_view last_words_;
  Refused why_ = Refused::tls;
  bool is_proxy_known_ = false;
  bool has_begun_ = false;
};

// A placeholder until the real session exists; it reads and writes nothing.
std::unique_ptr<Session> make_no_session();

}  // namespace weir::server::loop
