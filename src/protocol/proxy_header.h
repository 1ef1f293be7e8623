// The PROXY protocol, versions 1 and 2: the first bytes of a connection, in which a proxy tells who its client is.
//
// A header is all or nothing: whatever is not one, or could be read in two ways, is bad as soon as that can be seen.
// Nobody guesses here whether there is a header; a door has it always or never. Since other bytes follow, each answer
// also says how many more may be read without reading beyond the header. Pure; any thread. Tested by
// proxy_header_test.cc and fuzz/proxy_header.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "policy/ip_address.h"

namespace weir {

inline constexpr std::size_t kProxyV1Max = 107;
inline constexpr std::size_t kProxyHeaderMax = 4096;  // of version 2, with all that a proxy may add

struct ProxyRead {
  enum class State : std::uint8_t { more, done, bad };
  State state = State::bad;
  std::size_t more = 0;               // to read next, at most; none if it is done or bad
  std::size_t size = 0;               // of the header, once it is done
  std::optional<IpAddress> source{};  // the client; none: the proxy speaks for itself, or does not know
};

// `bytes` are the first of the connection, all that were read.
ProxyRead read_proxy_header(std::string_view bytes);

}  // namespace weir
