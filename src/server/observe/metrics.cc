// Writes the /metrics page. See metrics.h.
#include "server/observe/metrics.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "server/observe/process_stats.h"

namespace weir::server::observe {
namespace {

constexpr std::array<std::string_view, loop::kRefusals> kRefusalNames = {
    "connections", "buffers",   "slow",  "unread", "header",   "body",  "key",      "pipeline",
    "streams",     "malformed", "proxy", "tls",    "overload", "token", "password", "origin"};

class Page {
 public:
  Page(const MetricsSources& sources, protocol::MetricsFormat format) : from_(sources), out_(format, text_) {}

  std::string write() {
    write_rules();
    write_envoy();
    write_listeners();
    write_table();
    write_config();
    write_plans();
    write_store();
    write_usage();
    write_rest();
    write_process();
    out_.end();
    return std::move(text_);
  }

 private:
  static constexpr auto kCounter = protocol::MetricType::counter;
  static constexpr auto kGauge = protocol::MetricType::gauge;

  void gauge(std::string_view name, std::string_view help, std::uint64_t value) {
    out_.family(name, kGauge, help);
    out_.add(value);
  }
  void counter(std::string_view name, std::string_view help, std::uint64_t value) {
    out_.family(name, kCounter, help);
    out_.add(value);
  }
  void time(std::string_view name, std::string_view help, Micros time) {
    out_.family(name, kGauge, help);
    out_.add_seconds({}, time);
  }

  void reloads(std::string_view name, std::string_view help, std::uint64_t ok, std::uint64_t failed) {
    out_.family(name, kCounter, help);
    out_.add({{"outcome", "ok"}}, ok);
    out_.add({{"outcome", "failed"}}, failed);
  }

  // The value of a hook that may be empty.
  template <class T>
  static T from_hook(const std::function<T()>& hook) {
    return hook ? hook() : T{};
  }

  void write_rules() {
    std::vector<RuleCounts> rules;
    OtherCounts other;
    if (from_.gate != nullptr) {
      rules = from_.gate->rule_counts();
      other = from_.gate->other_counts();
    }
    gauge("weir_config_rules", "Rules in effect.", rules.size());
    other.inline_limits.rule = kInlineRule;
    const bool has_inline = std::ranges::find(rules, kInlineRule, &RuleCounts::rule) != rules.end();
    if (!has_inline) rules.push_back(other.inline_limits);
    // Otherwise each ban would add a label to the page.
    std::erase_if(rules, [](const RuleCounts& one) { return one.by_hand; });
    other.by_hand.rule = kByHandRules;
    rules.push_back(other.by_hand);

    out_.family("weir_decisions_total", kCounter, "Decided requests, each counted once, by deciding rule and outcome.");
    for (const RuleCounts& one : rules) {
      out_.add({{"rule", one.rule}, {"outcome", "allowed"}}, one.allowed);
      out_.add({{"rule", one.rule}, {"outcome", "denied"}}, one.denied);
      out_.add({{"rule", one.rule}, {"outcome", "missing"}}, one.missing);
    }
    out_.add({{"rule", ""}, {"outcome", "no_rule"}}, other.no_rule);
    out_.add({{"rule", ""}, {"outcome", "skipped"}}, other.skipped);
    out_.add({{"rule", ""}, {"outcome", "ambiguous_path"}}, other.ambiguous_path);
    out_.add({{"rule", ""}, {"outcome", "error"}}, other.failed);

    out_.family("weir_shadow_allowed_total", kCounter, "Requests that a rule in shadow would have allowed.");
    for (const RuleCounts& one : rules) out_.add({{"rule", one.rule}}, one.shadow_allowed);
    out_.family("weir_shadow_denied_total", kCounter, "Requests that a rule in shadow would have denied.");
    for (const RuleCounts& one : rules) out_.add({{"rule", one.rule}}, one.shadow_denied);
    out_.family("weir_rule_last_hit_timestamp_seconds", kGauge, "Last time the rule applied to a request; 0 if never.");
    for (const RuleCounts& one : rules) out_.add_seconds({{"rule", one.rule}}, one.last_hit);
    gauge("weir_top_keys_bytes", "Memory used to find the top clients.",
          from_.gate == nullptr ? 0 : from_.gate->top_keys_bytes());
  }

  void write_envoy() {
    const control::ControlStatus config = from_hook(from_.hooks.config);
    gauge("weir_envoy_domains", "Domains of Envoy's files in effect.", config.envoy_domains);
    gauge("weir_envoy_limits", "Limits of Envoy's files in effect.", config.envoy_limits);
    counter("weir_envoy_unknown_domain_total", "Requests from Envoy for a domain that none of its files defines.",
            from_.envoy == nullptr ? 0 : from_.envoy->unknown_domains.load());
    out_.family("weir_envoy_hits_total", kCounter, "Hits on limits of Envoy's files, by result.");
    if (from_.envoy == nullptr) return;
    for (const envoy::EnvoySeries& one : from_.envoy->tally().all()) {
      for (std::size_t i = 0; i < envoy::kEnvoyResults.size(); ++i) {
        out_.add({{"domain", one.domain}, {"descriptor", one.descriptor}, {"result", envoy::kEnvoyResults[i]}},
                 one.hits[i]);
      }
    }
  }

  template <class Get>
  std::uint64_t sum(loop::ListenerName listener, Get get) const {
    std::uint64_t all = 0;
    for (const loop::LoopCounts* loop : from_.loops) all += get(loop->listeners[listener]);
    return all;
  }

  // Writes a sample for each open listener.
  template <class Write>
  void each_listener(Write write) {
    for (const loop::ListenerName listener : loop::kEveryListener) {
      if (from_.open[listener] != nullptr) write(listener, loop::kListenerNames[listener]);
    }
  }

  void listeners(std::string_view name, std::string_view help, loop::Count loop::ListenerCounts::*count) {
    out_.family(name, kCounter, help);
    each_listener([&](loop::ListenerName listener, std::string_view protocol) {
      out_.add({{"protocol", protocol}},
               sum(listener, [&](const loop::ListenerCounts& counts) { return (counts.*count).get(); }));
    });
  }

  void write_listeners() {
    listeners("weir_requests_total", "Answered requests.", &loop::ListenerCounts::requests);
    write_durations();
    out_.family("weir_connections", kGauge, "Open connections.");
    each_listener([&](loop::ListenerName listener, std::string_view protocol) {
      out_.add({{"protocol", protocol}}, from_.open[listener]->load());
    });
    gauge("weir_connections_max", "Maximum open connections of each listener.", from_.connections_max);
    listeners("weir_connections_accepted_total", "Accepted connections.", &loop::ListenerCounts::accepted);
    out_.family("weir_refused_total", kCounter,
                "Requests and connections that the server refused or cut off, by reason.");
    each_listener([&](loop::ListenerName listener, std::string_view protocol) {
      for (std::size_t why = 0; why < loop::kRefusals; ++why) {
        const auto refused =
            sum(listener, [&](const loop::ListenerCounts& counts) { return counts.refused[why].get(); });
        out_.add({{"protocol", protocol}, {"reason", kRefusalNames[why]}}, refused);
      }
    });
    listeners("weir_received_bytes_total", "Bytes received from clients.", &loop::ListenerCounts::bytes_in);
    listeners("weir_sent_bytes_total", "Bytes sent to clients.", &loop::ListenerCounts::bytes_out);
    out_.family("weir_loop_iterations_total", kCounter, "Event loop iterations.");
    std::uint64_t turns = 0;
    for (const loop::LoopCounts* loop : from_.loops) turns += loop->turns.get();
    out_.add(turns);
  }

  void write_durations() {
    out_.family("weir_request_duration_seconds", protocol::MetricType::histogram,
                "Time from reading a request to writing its answer.");
    each_listener([&](loop::ListenerName listener, std::string_view protocol) {
      std::array<std::uint64_t, loop::Times::kEnds.size() + 1> counts{};
      for (std::size_t i = 0; i < counts.size(); ++i) {
        counts[i] = sum(listener, [&](const loop::ListenerCounts& one) { return one.seconds.count(i); });
      }
      const auto sum_us = sum(listener, [](const loop::ListenerCounts& one) { return one.seconds.sum_us(); });
      out_.add({{"protocol", protocol}}, {.ends = loop::Times::kEnds, .counts = counts, .sum_us = sum_us});
    });
  }

  void write_table() {
    const LimiterStats stats = from_.limiter == nullptr ? LimiterStats{} : from_.limiter->stats();
    gauge("weir_keys", "Live keys in the table.", stats.keys);
    gauge("weir_keys_capacity", "Live keys that the table has capacity for.", stats.capacity);
    counter("weir_evictions_total", "Keys evicted before their limit was full again.", stats.evicted);
    counter("weir_early_denials_total", "Requests of new keys denied because of the usage of evicted keys.",
            stats.early);
    counter("weir_no_room_total",
            "Requests denied because the table had no capacity for a reservation, an id, a log or permits in flight.",
            stats.no_room);
    counter("weir_compacted_logs_total",
            "Keys of sliding_log converted to compact form because the log arena was full.", stats.compacted);
    gauge("weir_table_bytes", "Size of the table.", stats.bytes);
    gauge("weir_waiting", "Calls waiting for permits.", from_.limiter == nullptr ? 0 : from_.limiter->waiting());
  }

  // Writes no samples without a plan database.
  void write_plans() {
    using Plans = plans::PlanStatus;
    const std::optional<Plans> plans = from_hook(from_.hooks.plans);
    const auto add = [&](std::string_view name, protocol::MetricType type, std::string_view help, auto Plans::*member) {
      out_.family(name, type, help);
      if (plans) out_.add((*plans).*member);
    };
    add("weir_plans_up", kGauge, "1 if the plan database answers, else 0.", &Plans::is_up);
    out_.family("weir_plans_age_seconds", kGauge, "Time since the plan database last answered.");
    if (plans) out_.add_seconds({}, plans->age);
    add("weir_plans_subjects", kGauge, "Subjects whose plan is cached.", &Plans::subjects);
    add("weir_plans_pending", kGauge, "Subjects whose plan is not known yet.", &Plans::pending);
    add("weir_plans_lookups_total", kCounter, "Subjects looked up in the plan database.", &Plans::lookups);
    add("weir_plans_changes_total", kCounter, "Subjects whose row in the plan database had changed.", &Plans::changes);
    add("weir_plans_evicted_total", kCounter, "Subjects evicted because the plan cache was full.", &Plans::evicted);
    add("weir_plans_refused_total", kCounter, "Invalid rows read from the plan database.", &Plans::refused);
    add("weir_plans_failures_total", kCounter, "Failed queries of the plan database.", &Plans::failures);
    add("weir_plans_waits_total", kCounter, "Checks that waited for the plan database.", &Plans::waits);
    add("weir_plans_wait_timeouts_total", kCounter, "Checks that continued without an answer of the plan database.",
        &Plans::wait_timeouts);
  }

  // Writes no samples without a fleet.
  void write_store() {
    const auto fleet = from_.hooks.fleet ? std::optional(from_.hooks.fleet()) : std::nullopt;
    const auto add = [&](std::string_view name, protocol::MetricType type, std::string_view help, std::uint64_t value) {
      out_.family(name, type, help);
      if (fleet) out_.add(value);
    };
    const FleetView view = fleet.value_or(FleetView{});
    add("weir_store_up", kGauge, "1 while Redis is in use, 0 while the server decides without it.", view.is_up ? 1 : 0);
    add("weir_store_nodes", kGauge, "Servers of the fleet that this server knows of.", view.nodes.size());
    add("weir_store_configs", kGauge, "Different configs among the servers of the fleet.",
        view.kinds(&FleetNodeView::policy));
    add("weir_store_versions", kGauge, "Different versions of Weir among the servers of the fleet.",
        view.kinds(&FleetNodeView::version));
    out_.family("weir_store_decisions_total", kCounter,
                "Decisions, by source: Redis (strict), cached denial or fallback.");
    if (fleet) {
      out_.add({{"decided_by", "strict"}}, view.counts.strict.get());
      out_.add({{"decided_by", "cached"}}, view.counts.cached.get());
      out_.add({{"decided_by", "fallback"}}, view.counts.fallback.get());
    }
    add("weir_store_calls_total", kCounter, "Redis script calls.", view.pipelines.calls);
    add("weir_store_timeouts_total", kCounter, "Requests to Redis that timed out.", view.pipelines.timeouts);
    add("weir_store_late_total", kCounter, "Redis script calls that arrived too late and charged nothing.",
        view.pipelines.late);
    add("weir_store_unsent_total", kCounter, "Requests not sent to Redis because too many were in flight.",
        view.pipelines.unsent);
    add("weir_store_breaker_openings_total", kCounter, "Circuit breaker openings.", view.pipelines.breaker_openings);
    add("weir_store_connects_total", kCounter, "Connections made to Redis.", view.pipelines.connects);
    add("weir_store_refunds_total", kCounter, "Refunds for denied requests.", view.counts.refunds.get());
    add("weir_store_failed_refunds_total", kCounter, "Failed refunds for denied requests; the charges expire.",
        view.counts.failed_refunds.get());
    add("weir_store_unsynced_keys", kGauge, "Keys with unsynced charges.", view.unsynced_keys);
    add("weir_store_synced_permits_total", kCounter, "Permits of unsynced charges that were written back to Redis.",
        view.synced_permits);
    add("weir_store_shed_total", kCounter,
        "Checks denied because Redis was overloaded and the server knew nothing of the key.", view.counts.shed.get());
    add("weir_store_dropped_permits_total", kCounter, "Permits of unsynced charges dropped for lack of capacity.",
        view.dropped_permits);
    out_.family("weir_store_clock_skew_seconds", kGauge,
                "Time by which this machine's clock is ahead of the clock of Redis.");
    if (fleet) out_.add_seconds({}, view.clock_skew);
  }

  void write_config() {
    const control::ControlStatus config = from_hook(from_.hooks.config);
    gauge("weir_config_last_reload_successful", "1 if the last load of the config succeeded, else 0.",
          config.last_reload.ok ? 1 : 0);
    time("weir_config_last_reload_success_timestamp_seconds", "Time of the last successful load of the config.",
         config.last_ok_at == Micros{0} ? from_.started : config.last_ok_at);
    reloads("weir_config_reloads_total", "Config reloads, by outcome.", config.reloads_ok, config.reloads_failed);
    gauge("weir_kill_switch", "1 while the kill switch is on, else 0.", config.kill_switch ? 1 : 0);
    gauge("weir_changes_active", "Runtime changes in effect.", config.changes_active);
  }

  void write_usage() {
    const UsageStats stats = from_.gate == nullptr ? UsageStats{} : from_.gate->usage_stats();
    const control::UsageFileStatus files = from_hook(from_.hooks.usage);
    gauge("weir_usage_accounts", "Usage accounts of today, one per subject and rule.", stats.accounts);
    gauge("weir_usage_accounts_max", "Maximum usage accounts of a day.", stats.places);
    counter("weir_usage_evicted_total", "Evicted usage accounts; if above 0, usage numbers are not exact.",
            stats.evicted);
    time("weir_usage_written_timestamp_seconds", "Last time all usage accounts were on disk; 0 if never.",
         files.written_at);
    counter("weir_usage_write_failures_total", "Failed writes of usage accounts.", files.failures);
  }

  void write_rest() {
    const DenialCounts denials = from_hook(from_.hooks.denials);
    const TraceCounts traces = from_hook(from_.hooks.traces);
    const loop::TlsStatus tls = from_hook(from_.hooks.tls);
    counter("weir_log_dropped_total", "Log lines dropped because the reader of stderr was too slow.",
            from_hook(from_.hooks.log_dropped));
    counter("weir_denials_logged_total", "Logged denials.", denials.logged);
    counter("weir_denials_dropped_total", "Denials left out of the log.", denials.dropped);
    counter("weir_traces_sent_total", "Spans that the trace collector accepted.", traces.sent);
    counter("weir_traces_dropped_total", "Spans that were not sent.", traces.dropped);
    out_.family("weir_tls_certificate_expiry_timestamp_seconds", kGauge,
                "Expiry of the first certificate to expire; no sample without TLS.");
    if (tls.is_on) out_.add_seconds({}, Micros{tls.not_after * 1'000'000});
    reloads("weir_tls_reloads_total", "TLS certificate reloads, by outcome.", tls.reloads, tls.failed_reloads);
    out_.family("weir_build_info", protocol::MetricType::info, "Version of Weir.");
    out_.add({{"version", from_.version}}, 1);
  }

  void write_process() {
    const ProcessStats stats = process_stats();
    out_.family("process_cpu_seconds_total", kCounter, "User and system CPU time.");
    out_.add_seconds({}, stats.cpu);
    time("process_start_time_seconds", "Start time of the process.", stats.started);
    gauge("process_resident_memory_bytes", "Resident memory.", stats.resident_bytes);
    gauge("process_virtual_memory_bytes", "Virtual memory.", stats.virtual_bytes);
    gauge("process_open_fds", "Open file descriptors.", stats.open_fds);
    gauge("process_max_fds", "Maximum open file descriptors.", stats.max_fds);
    gauge("process_threads", "Threads of the process.", stats.threads);
  }

  const MetricsSources& from_;
  std::string text_;
  protocol::MetricsWriter out_;
};

}  // namespace

std::string metrics_page(const MetricsSources& sources, protocol::MetricsFormat format) {
  return Page(sources, format).write();
}

}  // namespace weir::server::observe
