// The address of a client who may stand behind proxies.
//
// Anybody can write anything into a header, so none is believed unless the peer is a trusted proxy, and then only what
// that proxy wrote: the right end. From there it is read leftwards, as long as the addresses are of trusted proxies
// themselves; the first other one is the client. What does not parse ends the walk and is never skipped, because what
// stands to the left of it may be the client's own. So the answer is always the peer, or an address that a trusted
// proxy vouches for. Nothing is allocated, and no more is read than the walk needs: a header of a mebibyte costs
// nothing. Pure; any thread. Tested by client_ip_test.cc and fuzz/client_ip.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "policy/ip_address.h"
#include "weir/request.h"

namespace weir {

// Which header the proxies write. It is one, and there is no second to fall back to, which a client could then send.
enum class ForwardedBy : std::uint8_t {
  x_forwarded_for,  // X-Forwarded-For: 192.0.2.1, 10.0.0.1
  forwarded,        // Forwarded: for=192.0.2.1;proto=https, for="[2001:db8::1]:80" (RFC 7239)
  single_header,    // one address alone: X-Real-IP, CF-Connecting-IP; sent twice, it says nothing
};

struct ProxyTrust {
  IpSet proxies;
  ForwardedBy by = ForwardedBy::x_forwarded_for;
  std::string header;  // the name, in any case, for single_header
  unsigned hops = 0;   // 0: walk by trust; N, to kHopsMax: the Nth from the right, or the peer if there are fewer
};

// No more trusted proxies in a row than this are passed, and no element that is longer is read.
inline constexpr unsigned kHopsMax = 64;
inline constexpr std::size_t kElementBytesMax = 1024;

// The client's address: the peer's, unless that is a trusted proxy that names another. `headers` are all lines in
// their order; several of the one name are one list.
IpAddress client_ip(const IpAddress& peer, std::span<const Attribute> headers, const ProxyTrust& trust);

}  // namespace weir
