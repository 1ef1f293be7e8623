// Addresses of Redis as anybody might write them: what is read can be printed and read again, without its password.
//
// What is printed does not depend on the password, and everything is within its bounds.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/redis_url.h"

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

// Reads what a target prints; passwords and settings are left out of it.
void read_again(const weir::redis::Target& target) {
  const auto again = weir::redis::parse_url(weir::redis::to_string(target));
  if (!target.credentials.user.empty()) return;  // a user without a password is refused
  require(again.has_value());
  require(again->layout == target.layout && again->endpoints == target.endpoints);
  require(again->db == target.db && again->master_name == target.master_name);
  require(again->tls.is_on == target.tls.is_on);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto target = weir::redis::parse_url(text);
  if (!target) {
    require(!target.error().message.empty() && target.error().message.size() < 600);
    return 0;
  }
  require(!target->endpoints.empty() && target->endpoints.size() <= weir::redis::kEndpointsMax);
  for (const auto& endpoint : target->endpoints) require(endpoint.host.empty() != endpoint.path.empty());
  for (const auto& endpoint : target->endpoints) require(endpoint.host.find('\0') == std::string::npos);
  weir::redis::Target without = *target;
  without.credentials.password.clear();
  require(weir::redis::to_string(*target) == weir::redis::to_string(without));
  read_again(*target);
  return 0;
}
