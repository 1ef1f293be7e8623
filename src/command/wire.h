// A connection to a server, in the plain or in TLS: what a command says and hears over it.
//
// Blocking, each step with a time-out; one thread. OpenSSL is seen in wire.cc alone. Tested by tests/server/commands.sh
// and tests/server/tls.sh.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "load/target.h"
#include "weir/result.h"

namespace weir {

// Whom to believe, and how to show who asks; files of PEM.
struct TlsTrust {
  std::string ca{};  // empty: the authorities that this machine trusts
  std::string certificate{};
  std::string key{};
};

// Nobody is there, or it is not the one that was asked for.
inline tl::unexpected<Error> away(const std::string& why) { return fail(ErrorCode::unavailable, why); }

class Wire {
 public:
  static Result<Wire> open(const load::Target& target, int patience_ms);
  Wire(Wire&&) noexcept;
  Wire& operator=(Wire&&) noexcept;
  ~Wire();

  // TLS from here on: the server must show a certificate for this name or address.
  Result<void> secure(const std::string& host, const TlsTrust& trust);

  Result<void> send(std::string_view bytes);
  // Until the server closes; an error if that is more than so many bytes.
  Result<std::string> receive_all(std::size_t most);

 private:
  struct Tls;

  Wire(int socket, int patience_ms);
  Result<void> connected() const;
  // True when the socket is ready; false when that took too long.
  bool wait_for(short what) const;
  // How many bytes moved, 0 at the end; an error. They wait.
  Result<std::size_t> send_some(std::string_view bytes);
  Result<std::size_t> receive_some(char* room, std::size_t size);

  int socket_;
  int patience_ms_;
  std::unique_ptr<Tls> tls_{};
};

}  // namespace weir
