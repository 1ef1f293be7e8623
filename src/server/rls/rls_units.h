// The units of Envoy's rate limit service and their lengths: a month has 30 days, a year 365.
//
// Pure; any thread. Tested through rls_service_test.cc and rls_envoy_test.cc.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>

#include "envoy/envoy_config.h"
#include "protocol/rls.h"

namespace weir::server::rls {

// In the order of EnvoyUnit, which defines their lengths.
inline constexpr std::array<protocol::RlsUnit, 7> kRlsUnits = {
    protocol::RlsUnit::second, protocol::RlsUnit::minute, protocol::RlsUnit::hour, protocol::RlsUnit::day,
    protocol::RlsUnit::week,   protocol::RlsUnit::month,  protocol::RlsUnit::year};

inline protocol::RlsUnit rls_unit(envoy::EnvoyUnit unit) { return kRlsUnits[static_cast<std::size_t>(unit)]; }

// Nothing if it is not a valid unit.
inline std::optional<std::int64_t> microseconds_of(protocol::RlsUnit unit) {
  const auto* at = std::ranges::find(kRlsUnits, unit);
  if (at == kRlsUnits.end()) return {};
  return envoy::seconds_of(static_cast<envoy::EnvoyUnit>(at - kRlsUnits.begin())) * 1'000'000;
}

// The unit of this length; unknown if there is none.
inline protocol::RlsUnit rls_unit_of(std::int64_t period_us) {
  for (const protocol::RlsUnit unit : kRlsUnits) {
    if (microseconds_of(unit) == period_us) return unit;
  }
  return protocol::RlsUnit::unknown;
}

}  // namespace weir::server::rls
