// The /metrics page: every number that the server keeps about itself, collected for each request.
//
// Metric names are stable, because dashboards and alerts depend on them. docs/metrics.md describes each. Labels come
// from the config and the code, so clients cannot make the page grow. Where Envoy's files ask for request values in
// labels, their number is bounded.
//
// Any thread. Tested by metrics_test.cc and tests/server/metrics.sh.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "control/control.h"
#include "control/usage_control.h"
#include "envoy/envoy_in_force.h"
#include "protocol/prometheus.h"
#include "server/loop/counts.h"
#include "server/loop/tls.h"
#include "server/observe/denial_log.h"
#include "server/observe/fleet_view.h"
#include "server/observe/traces.h"
#include "weir/gate.h"
#include "weir/limiter.h"

namespace weir::server::observe {

// Functions that return the values of other parts of the server. If one is empty, its values are absent or 0. Any
// thread that serves the page calls them, so they must not block.
struct MetricsHooks {
  std::function<control::ControlStatus()> config{};
  std::function<std::optional<plans::PlanStatus>()> plans{};  // nothing without a database
  std::function<control::UsageFileStatus()> usage{};
  std::function<FleetView()> fleet{};  // empty without a fleet
  std::function<std::uint64_t()> log_dropped{};
  std::function<DenialCounts()> denials{};
  std::function<TraceCounts()> traces{};
  std::function<loop::TlsStatus()> tls{};
};

struct MetricsSources {
  Limiter* limiter = nullptr;
  Gate* gate = nullptr;                        // the gate that counts; null: no counts by rule
  const envoy::EnvoyInForce* envoy = nullptr;  // null: no Envoy files
  std::string version{};
  std::size_t connections_max = 0;
  Micros started{0};
  MetricsHooks hooks{};
  loop::PerListener<const std::atomic<std::size_t>*> open{};  // connections of each listener; null: it is closed
  std::vector<const loop::LoopCounts*> loops{};               // of every thread
};

std::string metrics_page(const MetricsSources& sources, protocol::MetricsFormat format);

}  // namespace weir::server::observe
