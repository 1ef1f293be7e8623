// The PROXY protocol, versions 1 and 2: the first bytes of a connection, in which a proxy names its client.
//
// A malformed or ambiguous header is `bad` as soon as its bytes show it. The parser does not guess whether there is a
// header: a listener requires it of all connections, or of none. Other bytes follow the header, so each result says how
// many more bytes may be read without reading beyond the header. Pure; any thread may call it. Tested by
// proxy_header_test.cc and fuzz/proxy_header.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/ip_address.h"

namespace weir::protocol {

inline constexpr std::size_t kProxyV1Max = 107;
inline constexpr std::size_t kProxyHeaderMax = 4096;  // of version 2, with everything that a proxy may add

struct ProxyRead {
  enum class State : std::uint8_t { more, done, bad };
  State state = State::bad;
  std::size_t more = 0;                     // bytes to read next, at most; 0 if done or bad
  std::size_t size = 0;                     // of the header, once it is done
  std::optional<base::IpAddress> source{};  // the client; none: the proxy itself connects, or does not know
};

// `bytes` are all bytes of the connection read so far.
ProxyRead read_proxy_header(std::string_view bytes);

}  // namespace weir::protocol
