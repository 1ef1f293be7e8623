// Where counts are kept and how many of them, as flags of `weir serve`.
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
  std::string store{};  // empty: as the config says, or in memory
  std::string prefix = "weir:";
  std::uint64_t deadline_ms = 15;
  std::uint64_t keys = 0;
  std::uint64_t memory = 0;
  std::string state{};

  void add(CLI::App& app);
  // What the config says, where no flag does.
  void take(const std::string& config);
  Result<LimiterOptions> limiter_options() const;
  // Null if it is not on Redis.
  Result<std::shared_ptr<FleetStore>> fleet() const;
  // Where a fleet's store keeps what the next one goes on with; empty: nowhere.
  std::string kept() const { return state.empty() ? "" : state + ".fleet"; }

 private:
  std::string store_from_ = "--store";  // who says where counts are kept
};

// A line of the log if what is kept could not be written.
void log_unless(const Result<void>& written);

}  // namespace weir
