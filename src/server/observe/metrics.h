// The /metrics page: every number that the server keeps about itself, collected for each request.
//
// Metric names are stable, because dashboards and alerts depend on them. docs/metrics.md describes each. Labels come
// from the config and the code, so clients cannot make the page grow. Where Envoy's files ask for request values in
// labels, their number is bounded.
//
// MetricsHooks asks other parts of the server; the code that starts the server fills it. Any thread. Tested by
// metrics_test.cc and tests/server/metrics.sh.
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
#include "server/admin/fleet_view.h"
#include "server/loop/counts.h"
#include "weir/gate.h"
#include "weir/limiter.h"

namespace weir {

// How the current rules were loaded.
struct ConfigMetrics {
  bool last_reload_ok = true;
  Micros last_success{0};  // since the epoch; 0: at the start of the server
  std::uint64_t reloads_ok = 0, reloads_failed = 0;
  bool kill_switch = false;
  std::uint64_t changes_active = 0;
  std::uint64_t envoy_domains = 0, envoy_limits = 0;
};

// The state of the plan database and its cache.
struct PlanMetrics {
  bool is_up = false;
  Micros age{0};  // since the database last answered
  std::uint64_t subjects = 0, pending = 0;
  std::uint64_t lookups = 0, changes = 0, evicted = 0, refused = 0, failures = 0, waits = 0, waits_in_vain = 0;
};

// The state of the usage accounts.
struct UsageMetrics {
  SpendingStats stats{};
  Micros written_at{0};  // 0: they are only in memory, or not written yet
  std::uint64_t write_failures = 0;
};

// Counts of reloads.
struct ReloadCounts {
  std::uint64_t ok = 0, failed = 0;
};

// Each may be empty; its values are then absent. Any thread that serves the page calls them, so they must not block.
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
  Gate* gate = nullptr;                 // the gate that counts; null: no counts by rule
  const EnvoyInForce* envoy = nullptr;  // null: no Envoy files
  std::string version{};
  std::size_t connections_max = 0;
  Micros started{0};
  MetricsHooks hooks{};
  std::array<const std::atomic<std::size_t>*, kDoors> open{};  // connections of each listener; null: it is closed
  std::vector<const LoopCounts*> loops{};                      // of every thread
};

std::string metrics_page(const MetricsSources& sources, MetricsFormat format);

}  // namespace weir
