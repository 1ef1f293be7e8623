// The flags of `weir serve` for the store of counts, and its size.
//
// Plain values. One thread. Tested by tests/server/cli.sh and survive.sh there.
#pragma once

#include <CLI/CLI.hpp>

#include <cstdint>
#include <string>

#include "fleet/fleet_store.h"
#include "weir/limiter.h"

namespace weir {

struct StoreFlags {
  std::string store{};  // empty: as in the config, or in memory
  std::string prefix = "weir:";
  std::uint64_t deadline_ms = 15;
  std::uint64_t keys = 0;
  std::uint64_t memory = 0;
  std::string state{};

  void add(CLI::App& app);
  // Uses the config's `store` if the flag is not given.
  void take(const std::string& config);
  Result<LimiterOptions> limiter_options() const;
  // Null if the store is not Redis.
  Result<std::shared_ptr<FleetStore>> fleet() const;
  // The file of a fleet node's saved state, which its next start reads; empty: none.
  std::string kept() const { return state.empty() ? "" : state + ".fleet"; }

 private:
  std::string store_from_ = "--store";  // the source of the store's address, for messages
};

// Logs a line if the saved state could not be written.
void log_unless(const Result<void>& written);

}  // namespace weir
