// The page of metrics: every number that the server keeps of itself, put together when somebody asks.
//
// Names are a promise: dashboards and alerts are written against them. Each is described in docs/metrics.md.
// Labels come from the config and the code, so that no client can make the page grow; where Envoy's files ask
// for values of requests in them, there are only so many.
// What other parts of the server know is asked through MetricsHooks, which whoever starts the server fills. Any thread.
// Tested by metrics_test.cc and tests/server/metrics.sh.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "envoy/envoy_in_force.h"
#include "protocol/prometheus.h"
#include "server/counts.h"
#include "server/fleet_view.h"
#include "weir/gate.h"
#include "weir/limiter.h"

namespace weir {

// How the rules came to be in force.
struct ConfigMetrics {
  bool last_reload_ok = true;
  Micros last_success{0};  // since the epoch; 0: when the server was started
  std::uint64_t reloads_ok = 0, reloads_failed = 0;
  bool kill_switch = false;
  std::uint64_t changes_active = 0;
  std::uint64_t envoy_domains = 0, envoy_limits = 0;
};

// How well it is known who is on which plan.
struct PlanMetrics {
  bool is_up = false;
  Micros age{0};  // of the last answer of the database
  std::uint64_t subjects = 0, pending = 0;
  std::uint64_t lookups = 0, changes = 0, evicted = 0, refused = 0, failures = 0, waits = 0, waits_in_vain = 0;
};

// How the accounts of who spent what are kept.
struct UsageMetrics {
  SpendingStats stats{};
  Micros written_at{0};  // 0: they are in memory only, or were not written yet
  std::uint64_t write_failures = 0;
};

// How often something was read again.
struct ReloadCounts {
  std::uint64_t ok = 0, failed = 0;
};

// Each may be empty; then what it would tell is none. Called by any thread that serves the page, so they must not
// block.
struct MetricsHooks {
  std::function<ConfigMetrics()> config{};
  std::function<std::optional<PlanMetrics>()> plans{};  // nothing without a database
  std::function<UsageMetrics()> usage{};
  std::function<FleetView()> fleet{};  // empty without a fleet
  std::function<std::uint64_t()> log_dropped{};
  std::function<std::uint64_t()> denials_logged{}, denials_dropped{};
  std::function<std::uint64_t()> traces_sent{}, traces_dropped{};
  std::function<std::optional<Micros>()> certificate_expiry{};  // of the first to expire; nothing without TLS
  std::function<ReloadCounts()> certificate_reloads{};
};

struct MetricsSources {
  Limiter* limiter = nullptr;
  Gate* gate = nullptr;                 // that counts; null: nothing is counted by rule
  const EnvoyInForce* envoy = nullptr;  // null: there are no files of Envoy's
  std::string version{};
  std::size_t connections_max = 0;
  Micros started{0};
  MetricsHooks hooks{};
  std::array<const std::atomic<std::size_t>*, kDoors> open{};  // connections of each door; null: it is shut
  std::vector<const LoopCounts*> loops{};                      // of every thread
};

std::string metrics_page(const MetricsSources& sources, MetricsFormat format);

}  // namespace weir
