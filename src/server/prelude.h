// What comes before a connection's session: the PROXY header that tells who the client is, then TLS.
//
// A door asks for both, one or none of them; the session is made when they are over, since only then its client is
// known. It reads of the socket what belongs to the two and not a byte more. One thread. Tested by
// tests/server/proxy_protocol.sh and tls.sh there.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "policy/ip_address.h"
#include "server/counts.h"
#include "server/session.h"
#include "server/tls.h"

namespace weir {

using MakeSession = std::function<std::unique_ptr<Session>(std::string peer)>;  // `peer` is the client's address

// What a door asks of those who come. What is pointed to outlives the door.
struct Entrance {
  const IpSet* proxies = nullptr;        // everybody is one of these and begins with a PROXY header; null: nobody does
  const TlsCertificates* tls = nullptr;  // null: none
  TlsInside inside = TlsInside::http1;

  bool is_open() const { return proxies == nullptr && tls == nullptr; }
  // Whether this peer may connect at all.
  bool admits(const std::string& peer) const;
};

// Who the peers of a server are, and whether they are still there.
struct PeerOptions {
  std::array<bool, kDoors> proxied{};  // which doors want a PROXY header
  std::vector<IpRange> proxies{};      // from whom
  std::uint32_t keepalive = 60;        // seconds of silence after which a peer is asked whether it lives; 0: never
};

// Sets a listening socket up so that those accepted from it are asked, and end if they do not answer.
void keep_alive(int listening, std::uint32_t seconds);

class Prelude {
 public:
  enum class Step : std::uint8_t { done, again, failed };

  // Both outlive it. `socket` is read and written, and belongs to somebody else.
  Prelude(const Entrance& entrance, const MakeSession& make_session, std::string peer, int socket)
      : entrance_(entrance), make_session_(make_session), peer_(std::move(peer)), socket_(socket) {}

  Step go_on();
  // Something has come.
  bool has_begun() const { return has_begun_; }
  bool wants_write() const { return stream_ && stream_->wants_write(); }
  // A handshake of TLS comes, or has begun and holds memory.
  bool will_shake_hands() const { return entrance_.tls != nullptr && !stream_; }
  bool is_shaking_hands() const { return stream_ != nullptr; }

  // When it has failed: why, and what is said in the plain before the connection is closed.
  Refused why() const { return why_; }
  void log_failure() const;
  std::string_view last_words() const { return last_words_; }

  // When it is done.
  std::unique_ptr<Session> make_session() { return make_session_(std::move(peer_)); }
  std::unique_ptr<TlsStream> stream() { return std::move(stream_); }

 private:
  Step read_proxy();
  Step begin_tls();
  Step fail_as(Refused why);
  Step nothing_read(long size);

  const Entrance& entrance_;
  const MakeSession& make_session_;
  std::string peer_;
  int socket_;
  std::string header_;  // the part of the PROXY header that has come
  std::unique_ptr<TlsStream> stream_;
  std::string_view last_words_;
  Refused why_ = Refused::tls;
  bool is_proxy_known_ = false;
  bool has_begun_ = false;
};

// Stands where the session will be: knows nothing and says nothing.
std::unique_ptr<Session> make_no_session();

}  // namespace weir
