// Secrets that clients send, the admin token and the RESP password: their comparison, and the cost of a wrong one.
//
// The reply to a wrong secret is delayed by kWrongSecretDelay, so a connection can try four per second. Each one is
// counted, and the log reports them at most once a second, so that a flood of guesses does not flood the log. The
// comparison is pure; a WrongSecrets belongs to one thread. Tested by wrong_secret_test.cc,
// tests/server/hostile_admin.sh and tests/server/resp_password.sh.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "weir/clock.h"

namespace weir::server::observe {

inline constexpr Micros kWrongSecretDelay{250'000};

// Its time depends neither on where the two differ nor on the length of the right one.
bool is_same_secret(std::string_view given, std::string_view right);

class WrongSecrets {
 public:
  // Counts one more, and logs `event` with the client's address and the number since the last line.
  void note(std::string_view event, std::string_view from, Micros now);

 private:
  std::uint64_t all_ = 0, logged_ = 0;
  std::optional<Micros> logged_at_{};
};

}  // namespace weir::server::observe
