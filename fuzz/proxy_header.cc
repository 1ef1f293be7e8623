// Fuzzes PROXY headers: whatever a connection begins with, the parser stays within its bounds, gives the same result
// for pieces as for the whole, and takes an address only from a complete header.
#include <algorithm>
#include <cstddef>
#include <string_view>

#include "fuzz.h"
#include "protocol/proxy_header.h"
#include "weir/limit.h"

void fuzz(std::string_view all) {
  using namespace weir;
  const protocol::ProxyRead whole = protocol::read_proxy_header(all);
  WEIR_ASSERT((whole.state == protocol::ProxyRead::State::more) == (whole.more > 0));
  WEIR_ASSERT(!whole.source || whole.state == protocol::ProxyRead::State::done);

  // Read as a connection does: no step reads beyond the header, and the result is the same.
  std::size_t read = 0;
  protocol::ProxyRead step = protocol::read_proxy_header({});
  while (step.state == protocol::ProxyRead::State::more && read < all.size()) {
    read = std::min(all.size(), read + step.more);
    WEIR_ASSERT(read <= protocol::kProxyHeaderMax);
    step = protocol::read_proxy_header(all.substr(0, read));
  }
  if (step.state == protocol::ProxyRead::State::done) {
    WEIR_ASSERT(step.size == read && whole.size == read && step.source == whole.source);
  }
  WEIR_ASSERT(step.state == whole.state);

  // If the beginning of the bytes is invalid or a complete header, it stays so whatever follows.
  for (std::size_t cut = 0; cut < std::min<std::size_t>(all.size(), 128); ++cut) {
    const protocol::ProxyRead part = protocol::read_proxy_header(all.substr(0, cut));
    if (part.state == protocol::ProxyRead::State::bad) WEIR_ASSERT(whole.state == protocol::ProxyRead::State::bad);
    if (part.state == protocol::ProxyRead::State::done) WEIR_ASSERT(whole.state == protocol::ProxyRead::State::done);
  }
}
