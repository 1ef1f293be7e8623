// The flags for listeners. See door_options.h.
#include "serve/door_options.h"

#include <optional>
#include <tuple>
#include <utility>

#include "cli/complain.h"
#include "control/config_file.h"
#include "server/http/site_access.h"

namespace weir {
namespace {

// The listener's address; nothing if it is off.
Result<std::optional<Address>> door_address(const char* option, const std::string& text) {
  if (text == "off") return std::nullopt;
  auto address = parse_address(text);
  if (!address) return fail(address.error().code, std::string(option) + ": " + address.error().message);
  return *std::move(address);
}

}  // namespace

void DoorOptions::add(CLI::App& app) {
  app.add_option("--http", http, "HTTP listener address; :PORT listens on loopback only; off: no listener")
      ->type_name("ADDR")
      ->capture_default_str();
  app.add_option("--grpc", grpc, "gRPC listener address, for Envoy and other gRPC clients")
      ->type_name("ADDR")
      ->capture_default_str();
  app.add_option("--resp", resp, "RESP listener address, for Redis clients")->type_name("ADDR")->capture_default_str();
  app.add_option("--admin", admin, "Admin API address; a non-loopback address requires --admin-token-file")
      ->type_name("ADDR")
      ->capture_default_str();
  app.add_option("--threads", threads, "Event loop threads")
      ->type_name("N")
      ->check(whole_number_to(256))
      ->default_str("one per processor");
  app.add_option("--allow-origin", origins,
                 "Origin whose web pages may call the HTTP listener (CORS), such as https://ops.example")
      ->type_name("ORIGIN");
  app.add_option("--password-file", password_file, "File with the password that Redis clients must send with AUTH")
      ->type_name("FILE");
}

Result<void> DoorOptions::fill(ServerOptions& options) const {
  const std::tuple<const char*, const std::string&, std::optional<Address>&> doors[] = {
      {"--http", http, options.http},
      {"--grpc", grpc, options.grpc},
      {"--resp", resp, options.resp},
      {"--admin", admin, options.admin}};
  for (const auto& [option, text, address] : doors) {
    auto parsed = door_address(option, text);
    if (!parsed) return fail(std::move(parsed.error()));
    address = *std::move(parsed);
  }
  if (!password_file.empty()) {
    auto password = read_secret(password_file);
    if (!password) return fail(password.error().code, "--password-file: " + password.error().message);
    options.password = *std::move(password);
  }
  for (const std::string& origin : origins) {
    if (auto wrong = refuse_origin(origin)) return fail(wrong->code, "--allow-origin: " + wrong->message);
  }
  options.origins = origins;
  options.threads = threads;
  return {};
}

}  // namespace weir
