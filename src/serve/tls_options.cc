// The flags for TLS. See tls_options.h.
#include "serve/tls_options.h"

#include "serve/door_names.h"

namespace weir {

void TlsFlags::add(CLI::App& app) {
  app.add_option("--tls-cert", certificate, "Use TLS with this certificate, followed by its chain; PEM")
      ->type_name("FILE");
  app.add_option("--tls-key", key, "Private key of --tls-cert, without a passphrase; PEM")->type_name("FILE");
  app.add_option("--tls-client-ca", client_ca, "Require a client certificate from one of these authorities (CA); PEM")
      ->type_name("FILE");
  app.add_option("--tls", doors, "Listeners that use TLS: some of http,grpc,resp,admin; default: all on TCP")
      ->type_name("LISTENERS");
}

Result<void> TlsFlags::fill(ServerOptions& options) const {
  const auto wrong = [](const char* message) { return fail(ErrorCode::invalid_argument, message); };
  if (certificate.empty() || key.empty()) {
    if (!certificate.empty()) return wrong("--tls-cert needs --tls-key, the file of its private key");
    if (!key.empty()) return wrong("--tls-key needs --tls-cert, the file of its certificate");
    if (!client_ca.empty())
      return wrong("--tls-client-ca needs --tls-cert and --tls-key: client certificates require TLS");
    if (!doors.empty()) return wrong("--tls needs --tls-cert and --tls-key, the files of a certificate");
    return {};
  }
  options.tls.certificate = certificate;
  options.tls.key = key;
  options.tls.client_ca = client_ca;
  const std::optional<Address>* const addresses[] = {&options.http, &options.grpc, &options.resp, &options.admin};
  if (doors.empty()) {
    options.tls.doors.fill(true);  // except unix sockets, which may turn up later: a socket can be inherited
    return {};
  }
  const auto named = parse_doors("--tls", doors);
  if (!named) return fail(named.error());
  for (std::size_t i = 0; i < kDoors; ++i) {
    if ((*named)[i] && *addresses[i] && (*addresses[i])->is_unix()) {
      return wrong("--tls: a unix socket does not use TLS; leave that listener out");
    }
  }
  options.tls.doors = *named;
  return {};
}

}  // namespace weir
