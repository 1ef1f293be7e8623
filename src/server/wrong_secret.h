// Secrets that clients send, the admin token and the RESP password: how they are compared, and what a wrong one costs.
//
// The reply to a wrong secret is held back for kWrongSecretDelay, so a connection can try four in a second. Each one is
// counted, and the log reports them once a second at most: a flood of guesses is no flood of the log. The comparison is
// pure; a WrongSecrets belongs to one thread. Tested by wrong_secret_test.cc, tests/server/hostile_admin.sh and
// tests/server/resp_password.sh.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "weir/clock.h"

namespace weir {

inline constexpr Micros kWrongSecretDelay{250'000};

// In a time that depends neither on where they differ nor on how long the right one is.
bool is_same_secret(std::string_view given, std::string_view right);

class WrongSecrets {
 public:
  // Counts one more, and logs `event`, from where it came and how many there were since the last line.
  void note(std::string_view event, std::string_view from, Micros now);

 private:
  std::uint64_t all_ = 0, told_ = 0;
  std::optional<Micros> told_at_{};
};

}  // namespace weir
