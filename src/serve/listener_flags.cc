// The flags for listeners, TLS, PROXY headers and keep-alive. See serve_flags.h.
//
// An error names the flag and says what to write. One thread. Tested by tests/server/cli.sh, tls.sh and
// proxy_protocol.sh there.
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/nearest.h"
#include "base/text.h"
#include "cli/flags.h"
#include "control/config_file.h"
#include "serve/serve_flags.h"
#include "server/http/site_access.h"
#include "server/loop/counts.h"

namespace weir::serve {
namespace {

// The listener's address; nothing if it is off.
Result<std::optional<server::loop::Address>> listener_address(const char* option, const std::string& text) {
  if (text == "off") return std::nullopt;
  auto address = server::loop::parse_address(text);
  if (!address) return fail(address.error().code, std::string(option) + ": " + address.error().message);
  return *std::move(address);
}

// Calls `use` for each part between commas, without surrounding blanks.
template <class Use>
Result<void> for_each_part(std::string_view text, Use use) {
  while (true) {
    const std::size_t comma = text.find(',');
    if (Result<void> used = use(base::trimmed(text.substr(0, comma))); !used || comma == text.npos) return used;
    text.remove_prefix(comma + 1);
  }
}

// Parses a list such as http,resp. `option` is the flag that an error message names.
Result<server::loop::PerListener<bool>> parse_listeners(const char* option, std::string_view text) {
  server::loop::PerListener<bool> listeners{};
  const auto read = for_each_part(text, [&](std::string_view name) -> Result<void> {
    const auto* const found = std::find(server::loop::kListenerNames.begin(), server::loop::kListenerNames.end(), name);
    if (found == server::loop::kListenerNames.end()) {
      return fail(ErrorCode::invalid_argument, std::string(option) + ": unknown listener " + base::in_quotes(name) +
                                                   "; write some of http,grpc,resp,admin");
    }
    listeners.at(static_cast<std::size_t>(found - server::loop::kListenerNames.begin())) = true;
    return {};
  });
  if (!read) return fail(read.error());
  return listeners;
}

}  // namespace

void ListenerFlags::add(CLI::App& app) {
  cli::text_flag(app, "--http", http, "ADDR",
                 "HTTP listener address; :PORT listens on loopback only; off: no listener");
  cli::text_flag(app, "--grpc", grpc, "ADDR", "gRPC listener address, for Envoy and other gRPC clients");
  cli::text_flag(app, "--resp", resp, "ADDR", "RESP listener address, for Redis clients");
  cli::text_flag(app, "--admin", admin, "ADDR",
                 "Admin API address; a non-loopback address requires --admin-token-file");
  cli::number_flag(app, "--threads", threads, {1, 256}, "N", "Event loop threads")->default_str("one per processor");
  app.add_option("--allow-origin", origins,
                 "Origin whose web pages may call the HTTP listener, such as https://ops.example")
      ->type_name("ORIGIN");
  cli::text_flag(app, "--password-file", password_file, "FILE",
                 "File with the password that Redis clients must send with AUTH");
}

Result<void> ListenerFlags::fill(server::ServerOptions& options) const {
  const std::tuple<const char*, const std::string&, std::optional<server::loop::Address>&> listeners[] = {
      {"--http", http, options.http},
      {"--grpc", grpc, options.grpc},
      {"--resp", resp, options.resp},
      {"--admin", admin, options.admin}};
  for (const auto& [option, text, address] : listeners) {
    auto parsed = listener_address(option, text);
    if (!parsed) return fail(std::move(parsed.error()));
    address = *std::move(parsed);
  }
  if (!password_file.empty()) {
    auto password = control::read_secret(password_file);
    if (!password) return fail(password.error().code, "--password-file: " + password.error().message);
    options.password = *std::move(password);
  }
  for (const std::string& origin : origins) {
    if (auto wrong = server::http::refuse_origin(origin)) return fail(wrong->code, "--allow-origin: " + wrong->message);
  }
  options.origins = origins;
  options.threads = threads;
  return {};
}

void TlsFlags::add(CLI::App& app) {
  cli::text_flag(app, "--tls-cert", certificate, "FILE", "Use TLS with this certificate, followed by its chain; PEM");
  cli::text_flag(app, "--tls-key", key, "FILE", "Private key of --tls-cert, without a passphrase; PEM");
  cli::text_flag(app, "--tls-client-ca", client_ca, "FILE",
                 "Require a client certificate from one of these authorities (CA); PEM");
  cli::text_flag(app, "--tls", listeners, "LISTENERS",
                 "Listeners that use TLS: some of http,grpc,resp,admin; default: all on TCP");
}

Result<void> TlsFlags::fill(server::ServerOptions& options) const {
  const auto wrong = [](const char* message) { return fail(ErrorCode::invalid_argument, message); };
  if (certificate.empty() || key.empty()) {
    if (!certificate.empty()) return wrong("--tls-cert needs --tls-key, the file of its private key");
    if (!key.empty()) return wrong("--tls-key needs --tls-cert, the file of its certificate");
    if (!client_ca.empty())
      return wrong("--tls-client-ca needs --tls-cert and --tls-key: client certificates require TLS");
    if (!listeners.empty()) return wrong("--tls needs --tls-cert and --tls-key, the files of a certificate");
    return {};
  }
  options.tls.certificate = certificate;
  options.tls.key = key;
  options.tls.client_ca = client_ca;
  const server::loop::PerListener<const std::optional<server::loop::Address>*> addresses = {
      {{&options.http, &options.grpc, &options.resp, &options.admin}}};
  if (listeners.empty()) {
    options.tls.listeners.fill(true);  // except unix sockets, which may turn up later: a socket can be inherited
    return {};
  }
  const auto named = parse_listeners("--tls", listeners);
  if (!named) return fail(named.error());
  for (const server::loop::ListenerName name : server::loop::kEveryListener) {
    if ((*named)[name] && *addresses[name] && (*addresses[name])->is_unix()) {
      return wrong("--tls: a unix socket does not use TLS; leave that listener out");
    }
  }
  options.tls.listeners = *named;
  return {};
}

void PeerFlags::add(CLI::App& app) {
  cli::text_flag(app, "--proxy-protocol", proxied, "LISTENERS",
                 "Listeners whose connections begin with a PROXY header: some of http,grpc,resp");
  cli::text_flag(app, "--proxy-protocol-from", proxies, "CIDR",
                 "Addresses of the proxies; the --proxy-protocol listeners refuse all other peers");
  cli::number_flag(app, "--keepalive", keepalive, {0, 7'200}, "SECONDS",
                   "Send TCP keep-alive probes after this many idle seconds; 0: never");
}

Result<void> PeerFlags::fill(server::ServerOptions& options) const {
  options.peers.keepalive = static_cast<std::uint32_t>(keepalive);
  if (proxied.empty() && proxies.empty()) return {};
  if (proxied.empty()) {
    return fail(ErrorCode::invalid_argument, "--proxy-protocol-from needs --proxy-protocol, the listeners: http,resp");
  }
  if (proxies.empty()) {
    return fail(ErrorCode::invalid_argument,
                "--proxy-protocol needs --proxy-protocol-from, the trusted proxies: 10.0.0.0/8,192.0.2.7");
  }
  const auto listeners = parse_listeners("--proxy-protocol", proxied);
  if (!listeners) return fail(listeners.error());
  if (listeners->back()) {
    return fail(
        ErrorCode::invalid_argument,
        "--proxy-protocol: the admin listener takes no PROXY headers, so that health checks and operators reach it "
        "directly; write some of http,grpc,resp");
  }
  options.peers.proxied = *listeners;
  return for_each_part(proxies, [&](std::string_view text) -> Result<void> {
    const auto range = base::parse_ip_range(text);
    if (!range) return fail(range.error().code, "--proxy-protocol-from: " + range.error().message);
    options.peers.proxies.push_back(*range);
    return {};
  });
}

}  // namespace weir::serve
