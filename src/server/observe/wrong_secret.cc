// Compares secrets, and logs wrong ones. See wrong_secret.h.
#include "server/observe/wrong_secret.h"

#include <cstddef>
#include <string>

#include "base/sha256.h"
#include "log/log.h"

namespace weir::server::observe {

bool is_same_secret(std::string_view given, std::string_view right) {
  const auto a = base::sha256(given), b = base::sha256(right);
  std::uint8_t difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i) difference = static_cast<std::uint8_t>(difference | (a[i] ^ b[i]));
  return difference == 0;
}

void WrongSecrets::note(std::string_view event, std::string_view from, Micros now) {
  constexpr Micros kLogEvery{1'000'000};
  ++all_;
  if (logged_at_ && now - *logged_at_ < kLogEvery) return;
  log::log(log::LogLevel::warn, event, {{"from", from}, {"times", std::to_string(all_ - logged_)}});
  logged_at_ = now;
  logged_ = all_;
}

}  // namespace weir::server::observe
