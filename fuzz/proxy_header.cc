// Fuzzes PROXY headers: whatever comes first on a connection, it is read within its bounds, in pieces as in one, and
// an address is taken from nothing but a header.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "protocol/proxy_header.h"
#include "weir/limit.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weir;
  const std::string_view all(reinterpret_cast<const char*>(data), size);
  const ProxyRead whole = read_proxy_header(all);
  WEIR_ASSERT((whole.state == ProxyRead::State::more) == (whole.more > 0));
  WEIR_ASSERT(!whole.source || whole.state == ProxyRead::State::done);

  // As a connection reads it: no step goes beyond the header, and the end is the same.
  std::size_t read = 0;
  ProxyRead step = read_proxy_header({});
  while (step.state == ProxyRead::State::more && read < size) {
    read = std::min(size, read + step.more);
    WEIR_ASSERT(read <= kProxyHeaderMax);
    step = read_proxy_header(all.substr(0, read));
  }
  if (step.state == ProxyRead::State::done) {
    WEIR_ASSERT(step.size == read && whole.size == read && step.source == whole.source);
  }
  WEIR_ASSERT(step.state == whole.state);

  // What was bad stays bad, and what was done stays so, whatever follows.
  for (std::size_t cut = 0; cut < std::min<std::size_t>(size, 128); ++cut) {
    const ProxyRead part = read_proxy_header(all.substr(0, cut));
    if (part.state == ProxyRead::State::bad) WEIR_ASSERT(whole.state == ProxyRead::State::bad);
    if (part.state == ProxyRead::State::done) WEIR_ASSERT(whole.state == ProxyRead::State::done);
  }
  return 0;
}
