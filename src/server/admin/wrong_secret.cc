// Compares secrets, and logs wrong ones. See wrong_secret.h.
#include "server/admin/wrong_secret.h"

#include <cstddef>
#include <string>

#include "base/sha256.h"
#include "log/log.h"

namespace weir {
namespace {

constexpr Micros kToldEvery{1'000'000};

}  // namespace

bool is_same_secret(std::string_view given, std::string_view right) {
  const auto a = sha256(given), b = sha256(right);
  std::uint8_t difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i) difference = static_cast<std::uint8_t>(difference | (a[i] ^ b[i]));
  return difference == 0;
}

void WrongSecrets::note(std::string_view event, std::string_view from, Micros now) {
  ++all_;
  if (told_at_ && now - *told_at_ < kToldEvery) return;
  log(LogLevel::warn, event, {{"from", from}, {"times", std::to_string(all_ - told_)}});
  told_at_ = now;
  told_ = all_;
}

}  // namespace weir
