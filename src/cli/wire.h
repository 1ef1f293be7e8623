// A blocking client connection to a server, plain or TLS.
//
// Each step but connecting has a time-out; one thread. Only wire.cc sees OpenSSL. Tested by tests/server/commands.sh
// and tests/server/tls.sh.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "load_generator/target.h"
#include "weir/result.h"

namespace weir {

// Trusted authorities, and the client's certificate; PEM files.
struct TlsTrust {
  std::string ca{};  // empty: the authorities that this machine trusts
  std::string certificate{};
  std::string key{};
};

// The server is unavailable, or it is not the expected one.
inline tl::unexpected<Error> away(const std::string& why) { return fail(ErrorCode::unavailable, why); }

class Wire {
 public:
  static Result<Wire> open(const load::Target& target, int patience_ms);
  Wire(Wire&&) noexcept;
  Wire& operator=(Wire&&) noexcept;
  ~Wire();

  // Switches to TLS: the server must have a certificate for this name or address.
  Result<void> secure(const std::string& host, const TlsTrust& trust);

  Result<void> send(std::string_view bytes);
  // Reads until the server closes; an error if it sends more than `most` bytes.
  Result<std::string> receive_all(std::size_t most);

 private:
  struct Tls;

  Wire(int socket, int patience_ms);
  Result<void> connected() const;
  // True when the socket is ready; false after the time-out.
  bool wait_for(short what) const;
  // How many bytes were transferred, 0 at the end, or an error. They wait for the socket.
  Result<std::size_t> send_some(std::string_view bytes);
  Result<std::size_t> receive_some(char* room, std::size_t size);

  int socket_;
  int patience_ms_;
  std::unique_ptr<Tls> tls_{};
};

}  // namespace weir
