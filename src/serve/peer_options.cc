// The flags for PROXY headers and keep-alive. See peer_options.h.
#include "serve/peer_options.h"

#include "cli/complain.h"
#include "serve/door_names.h"

namespace weir {

void PeerFlags::add(CLI::App& app) {
  app.add_option("--proxy-protocol", proxied,
                 "Listeners whose connections begin with a PROXY header: some of http,grpc,resp")
      ->type_name("LISTENERS");
  app.add_option("--proxy-protocol-from", proxies,
                 "Proxies that send the PROXY header; those listeners refuse other peers")
      ->type_name("CIDR");
  app.add_option("--keepalive", keepalive, "Send TCP keep-alive probes after this many idle seconds; 0: never")
      ->type_name("SECONDS")
      ->check(whole_number_to(7'200, 0))
      ->capture_default_str();
}

Result<void> PeerFlags::fill(ServerOptions& options) const {
  options.peers.keepalive = static_cast<std::uint32_t>(keepalive);
  if (proxied.empty() && proxies.empty()) return {};
  if (proxied.empty()) {
    return fail(ErrorCode::invalid_argument, "--proxy-protocol-from needs --proxy-protocol, the listeners: http,resp");
  }
  if (proxies.empty()) {
    return fail(ErrorCode::invalid_argument,
                "--proxy-protocol needs --proxy-protocol-from, the trusted proxies: 10.0.0.0/8,192.0.2.7");
  }
  const auto doors = parse_doors("--proxy-protocol", proxied);
  if (!doors) return fail(doors.error());
  if (doors->back()) {
    return fail(
        ErrorCode::invalid_argument,
        "--proxy-protocol: the admin listener takes no PROXY headers, so that health checks and operators reach it "
        "directly; write some of http,grpc,resp");
  }
  options.peers.proxied = *doors;
  return for_each_part(proxies, [&](std::string_view text) -> Result<void> {
    const auto range = parse_ip_range(text);
    if (!range) return fail(range.error().code, "--proxy-protocol-from: " + range.error().message);
    options.peers.proxies.push_back(*range);
    return {};
  });
}

}  // namespace weir
