// Plays random histories of charges and reservations twice: as they are, and as if every settled reservation had
// charged only its actual cost, at its own time. A settlement must never leave less used than the second play.
//
// A Reserver is one key of anything that keeps reservations. One thread. Used by
// settlement_test.cc and fleet_scenario_test.cc.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "weir/limit.h"
#include "weir/verdict.h"

namespace weir::test {

// A key, and the time set by hand. Times never run backwards.
class Reserver {
 public:
  virtual ~Reserver() = default;
  virtual Decision charge(const Limit& limit, std::int64_t cost, std::int64_t now) = 0;
  virtual Decision overdraw(const Limit& limit, std::int64_t cost, std::int64_t now) = 0;
  virtual Decision reserve(const Limit& limit, std::string_view id, std::int64_t cost, std::int64_t now) = 0;
  // Settles a reservation; with 0 it cancels it. Returns what is left afterwards.
  virtual Decision commit(const Limit& limit, std::string_view id, std::int64_t actual, std::int64_t now) = 0;
};
using MakeReserver = std::function<std::unique_ptr<Reserver>()>;

// play_settlements()
//
// Plays a random history on two new keys. Returns the first wrong answer and the history before it. For windows and
// logs, both plays must be equal as soon as all reservations are settled.
std::optional<std::string> play_settlements(Algorithm algorithm, std::uint64_t seed, const MakeReserver& make);

}  // namespace weir::test
