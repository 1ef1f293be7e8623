// Fuzzes Redis URLs: a URL that was parsed can be printed and parsed again, without its password.
//
// The printed text does not depend on the password, and all values are within their bounds.
#include <string>
#include <string_view>

#include "base/redis_url.h"
#include "fuzz.h"

namespace {

// Parses what the target prints, which has no passwords and settings.
void read_again(const weir::base::redis::Target& target) {
  const auto again = weir::base::redis::parse_url(weir::base::redis::to_string(target));
  if (!target.credentials.user.empty()) return;  // a user without a password is refused
  WEIR_ASSERT(again.has_value());
  WEIR_ASSERT(again->layout == target.layout && again->endpoints == target.endpoints);
  WEIR_ASSERT(again->db == target.db && again->master_name == target.master_name);
  WEIR_ASSERT(again->tls.is_on == target.tls.is_on);
}

}  // namespace

void fuzz(std::string_view text) {
  const auto target = weir::base::redis::parse_url(text);
  if (!target) {
    WEIR_ASSERT(!target.error().message.empty() && target.error().message.size() < 600);
    return;
  }
  WEIR_ASSERT(!target->endpoints.empty() && target->endpoints.size() <= weir::base::redis::kEndpointsMax);
  for (const auto& endpoint : target->endpoints) WEIR_ASSERT(endpoint.host.empty() != endpoint.path.empty());
  for (const auto& endpoint : target->endpoints) WEIR_ASSERT(endpoint.host.find('\0') == std::string::npos);
  weir::base::redis::Target without = *target;
  without.credentials.password.clear();
  WEIR_ASSERT(weir::base::redis::to_string(*target) == weir::base::redis::to_string(without));
  read_again(*target);
}
