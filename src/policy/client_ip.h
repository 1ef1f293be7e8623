// Finds the address of a client that may be behind proxies.
//
// Any client can send any header, so a header counts only if the peer is a trusted proxy. Even then only the right
// end counts, because the proxy wrote it. From there we walk left while the addresses are trusted proxies; the first
// untrusted address is the client. An element that does not parse ends the walk and is never skipped, because
// everything to its left may have been sent by the client. So the result is always the peer, or an address that a
// trusted proxy vouches for. Nothing is allocated, and only the bytes that the walk needs are read, so a header of 1
// MiB costs nothing. Pure; any thread may call it. Tested by client_ip_test.cc and fuzz/client_ip.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/ip_address.h"
#include "weir/request.h"

namespace weir::policy {

// Which header the proxies write. There is no fallback to a second header, since a client could then send that one.
enum class ForwardedBy : std::uint8_t {
  x_forwarded_for,  // X-Forwarded-For: 192.0.2.1, 10.0.0.1
  forwarded,        // Forwarded: for=192.0.2.1;proto=https, for="[2001:db8::1]:80" (RFC 7239)
  single_header,    // a single address: X-Real-IP, CF-Connecting-IP; ignored if sent twice
};

struct ProxyTrust {
  base::IpSet proxies;
  ForwardedBy by = ForwardedBy::x_forwarded_for;
  std::string header;  // the name for single_header, in any case
  unsigned hops = 0;   // 0: walk by trust; 1 to kHopsMax: the Nth from the right, or the peer if there are fewer
};

// The walk passes at most this many trusted proxies in a row, and reads no element longer than this.
inline constexpr unsigned kHopsMax = 64;
inline constexpr std::size_t kElementBytesMax = 1024;

// Returns the client's address: the peer's, unless the peer is a trusted proxy that names another. `headers` are all
// header lines in their order; several lines of the same name form one list.
base::IpAddress client_ip(const base::IpAddress& peer, std::span<const Attribute> headers, const ProxyTrust& trust);

}  // namespace weir::policy
