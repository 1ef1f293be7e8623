// The flags for listeners. See door_options.h.
#include "program/door_options.h"

#include <optional>
#include <tuple>
#include <utility>

#include "admin/config_file.h"
#include "command/complain.h"
#include "server/site_access.h"

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
  app.add_option("--http", http, "Where HTTP listens; a port alone, :8080, is on loopback; off: nowhere")
      ->type_name("ADDR")
      ->capture_default_str();
  app.add_option("--grpc", grpc, "Where Envoy and other gRPC clients are served")
      ->type_name("ADDR")
      ->capture_default_str();
  app.add_option("--resp", resp, "Where Redis clients are served")->type_name("ADDR")->capture_default_str();
  app.add_option("--admin", admin, "Where the server itself is looked after; beyond this machine, only with a token")
      ->type_name("ADDR")
      ->capture_default_str();
  app.add_option("--threads", threads, "How many loops serve, each on a thread of its own")
      ->type_name("N")
      ->check(whole_number_to(256))
      ->default_str("one for each processor");
  app.add_option("--allow-origin", origins,
                 "Web pages of this origin may call the HTTP port, such as https://ops.example")
      ->type_name("ORIGIN");
  app.add_option("--password-file", password_file, "Redis clients must AUTH with what it holds")->type_name("FILE");
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
