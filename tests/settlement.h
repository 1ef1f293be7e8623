// Random histories of charges and reservations, each played twice: as it is, and as if every settled reservation had
// charged only what it really cost, at its own time. A settlement must never leave less used than that second history.
//
// Whatever keeps reservations can be played on: a Reserver is one key of it. One thread. Used by settlement_test.cc and
// fleet_scenario_test.cc.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

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
  // Settles, for 0 if it is cancelled. What is left then.
  virtual Decision commit(const Limit& limit, std::string_view id, std::int64_t actual, std::int64_t now) = 0;
};
using MakeReserver = std::function<std::unique_ptr<Reserver>()>;

// play_settlements()
//
// A random history on keys of their own. The first wrong answer, with what led to it. Where permits have a window or an
// event of their own, both histories must be equal as soon as all reservations are settled: nothing is lost either.
std::optional<std::string> play_settlements(Algorithm algorithm, std::uint64_t seed, const MakeReserver& make);

}  // namespace weir::test
