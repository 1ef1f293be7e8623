// Tests /metrics: valid in both formats, with correct numbers, and documented in the guide.
#include "server/observe/metrics.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <memory>
#include <regex>
#include <set>

#include "metrics_text.h"

namespace weir::server::observe {
namespace {

using test::MetricsText;

class Metrics : public testing::Test {
 protected:
  static constexpr std::int64_t kStart = 1'789'992'000'000'000;

  Metrics() {
    sources.limiter = &limiter;
    sources.gate = &gate;
    sources.version = "1.2.3";
    sources.connections_max = 10'000;
    sources.started = Micros{kStart};
    sources.open = {&open, nullptr, &open, nullptr};
    sources.loops = {&loops[0], &loops[1]};
  }

  MetricsText read(protocol::MetricsFormat format = protocol::MetricsFormat::text) const {
    return MetricsText(metrics_page(sources, format), format);
  }
  void use(const std::string& rules) {
    const auto policy = parse_policy(rules, "test");
    ASSERT_TRUE(policy) << policy.error().message;
    ASSERT_TRUE(gate.apply(*policy, Force::yes));
  }

  std::shared_ptr<ManualClock> clock = std::make_shared<ManualClock>(Micros{kStart});
  Limiter limiter{{.clock = clock, .keys = 10'000, .sweeping = Sweeping::by_hand}};
  Gate gate{limiter};
  std::atomic<std::size_t> open{3};
  std::array<loop::LoopCounts, 2> loops{};
  MetricsSources sources{};
};

TEST_F(Metrics, CountDecisionsByRule) {
  use("rules:\n  - {name: login, per: ip, limit: 2/h}\n  - {name: other, per: user, limit: 1/h}\n");
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(gate.check({.ip = "192.0.2.1"}));
  ASSERT_TRUE(gate.check({.path = "/"}));
  const MetricsText page = read();
  EXPECT_EQ(page.value("weir_decisions_total", {{"rule", "login"}, {"outcome", "allowed"}}), "2");
  EXPECT_EQ(page.value("weir_decisions_total", {{"rule", "login"}, {"outcome", "denied"}}), "3");
  EXPECT_EQ(page.value("weir_decisions_total", {{"rule", "other"}, {"outcome", "denied"}}), "0");
  EXPECT_EQ(page.value("weir_decisions_total", {{"rule", ""}, {"outcome", "no_rule"}}), "1");
  EXPECT_EQ(page.value("weir_decisions_total", {{"rule", "inline"}, {"outcome", "allowed"}}), "0");
  EXPECT_EQ(page.value("weir_rule_last_hit_timestamp_seconds", {{"rule", "login"}}), "1789992000.0");
  EXPECT_EQ(page.value("weir_config_rules"), "2");
  EXPECT_EQ(page.value("weir_keys"), "1");
  EXPECT_EQ(page.value("weir_build_info", {{"version", "1.2.3"}}), "1");
}

TEST_F(Metrics, CoverOpenListenersOnly) {
  loops[0].listeners[loop::ListenerName::http].requests.add(5);
  loops[1].listeners[loop::ListenerName::http].requests.add(2);
  loops[0].listeners[loop::ListenerName::http].seconds.add(20, 5);
  loops[1].listeners[loop::ListenerName::http].seconds.add(2'000'000, 2);
  loops[1].listeners[loop::ListenerName::resp].refuse(loop::Refused::overload);
  const MetricsText page = read();
  EXPECT_EQ(page.value("weir_requests_total", {{"protocol", "http"}}), "7");
  EXPECT_EQ(page.value("weir_requests_total", {{"protocol", "grpc"}}), "");
  EXPECT_EQ(page.value("weir_connections", {{"protocol", "resp"}}), "3");
  EXPECT_EQ(page.value("weir_refused_total", {{"protocol", "resp"}, {"reason", "overload"}}), "1");
  EXPECT_EQ(page.value("weir_request_duration_seconds_bucket", {{"protocol", "http"}, {"le", "0.00001"}}), "0");
  EXPECT_EQ(page.value("weir_request_duration_seconds_bucket", {{"protocol", "http"}, {"le", "0.000025"}}), "5");
  EXPECT_EQ(page.value("weir_request_duration_seconds_bucket", {{"protocol", "http"}, {"le", "+Inf"}}), "7");
  EXPECT_EQ(page.value("weir_request_duration_seconds_sum", {{"protocol", "http"}}), "4.0001");
}

TEST_F(Metrics, ShowTheValuesOfHooks) {
  EXPECT_EQ(read().value("weir_config_last_reload_success_timestamp_seconds"), "1789992000.0");
  EXPECT_EQ(read().value("weir_tls_certificate_expiry_timestamp_seconds"), "");
  sources.hooks.config = [] {
    return control::ControlStatus{.last_reload = {.ok = false},
                                  .reloads_ok = 3,
                                  .reloads_failed = 1,
                                  .last_ok_at = Micros{7'000'000},
                                  .kill_switch = true,
                                  .changes_active = 2};
  };
  sources.hooks.log_dropped = [] { return std::uint64_t{9}; };
  sources.hooks.tls = [] { return loop::TlsStatus{.is_on = true, .reloads = 4, .failed_reloads = 2, .not_after = 8}; };
  const MetricsText page = read();
  EXPECT_EQ(page.value("weir_config_last_reload_successful"), "0");
  EXPECT_EQ(page.value("weir_config_last_reload_success_timestamp_seconds"), "7.0");
  EXPECT_EQ(page.value("weir_config_reloads_total", {{"outcome", "failed"}}), "1");
  EXPECT_EQ(page.value("weir_kill_switch"), "1");
  EXPECT_EQ(page.value("weir_log_dropped_total"), "9");
  EXPECT_EQ(page.value("weir_tls_certificate_expiry_timestamp_seconds"), "8.0");
  EXPECT_EQ(page.value("weir_tls_reloads_total", {{"outcome", "ok"}}), "4");
  EXPECT_EQ(page.value("weir_tls_reloads_total", {{"outcome", "failed"}}), "2");
}

TEST_F(Metrics, AreTheSameInBothFormats) {
  use("rules:\n  - {name: inline, per: ip, limit: 2/h}\n");  // has the same label as limits that clients send
  const MetricsText text = read(), open_metrics = read(protocol::MetricsFormat::openmetrics);
  EXPECT_EQ(text.series(), open_metrics.series());
  EXPECT_EQ(text.families.size(), open_metrics.families.size());
}

// The page does not grow, however many clients there are and whatever names they use.
TEST_F(Metrics, DoNotGrowWithClients) {
  use("rules:\n  - {name: r, per: user, limit: 0/h}\n");
  const std::size_t before = read().series();
  for (int i = 0; i < 50'000; ++i) {
    const std::string user = std::to_string(i);
    ASSERT_TRUE(gate.check({.user = user}));
  }
  const std::string page = metrics_page(sources, protocol::MetricsFormat::text);
  EXPECT_EQ(MetricsText(page, protocol::MetricsFormat::text).series(), before);
  EXPECT_LE(page.size(), std::size_t{256} << 10);
  EXPECT_EQ(page.find("user="), page.npos);
}

// Bans do not add labels either: their names have numbers, and bans end, but their counts stay.
TEST_F(Metrics, CountAllBansAsOne) {
  const std::string config = "rules:\n  - {name: login, per: ip, limit: 2/h}\n";
  use(config);
  const std::size_t before = read().series();
  const auto denied = [&](const std::string& rule) {
    return read().value("weir_decisions_total", {{"rule", rule}, {"outcome", "denied"}});
  };
  for (const char* const name : {"ban-1", "ban-2"}) {
    auto policy = *parse_policy(config + "  - {name: " + name + ", match: {user: m}, limit: 0/second}\n", "test");
    policy.rules.back().by_hand = true;
    ASSERT_TRUE(gate.apply(policy, Force::yes));
    ASSERT_TRUE(gate.check({.user = "m"}));
    EXPECT_EQ(denied(name), "");
    EXPECT_EQ(read().series(), before);
    EXPECT_EQ(gate.rule_counts().back().denied, 1U) << "rule_counts() keeps the name of the ban";
  }
  use(config);
  EXPECT_EQ(denied(std::string(kByHandRules)), "2");
  EXPECT_FALSE(parse_policy("rules: [{name: " + std::string(kByHandRules) + ", limit: 1/s}]", "test"));
}

// The guide's table and the page have the same metrics. Alerts and dashboard use no others.
TEST_F(Metrics, AreAllDocumented) {
  const auto names_in = [](const std::string& path, const std::regex& name) {
    std::ifstream in(std::string(WEIR_SOURCE_DIR) + path, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    EXPECT_FALSE(text.empty()) << path;
    std::set<std::string> names;
    for (std::sregex_iterator at(text.begin(), text.end(), name), end; at != end; ++at) names.insert((*at)[1]);
    return names;
  };
  std::set<std::string> known;
  for (const auto& [name, family] : read().families) known.insert(name);
  EXPECT_EQ(names_in("/docs/metrics.md", std::regex(R"(\n\| `((?:weir|process)_[a-z_]+))")), known);
  for (const char* path : {"/examples/prometheus/alerts.yml", "/examples/grafana/weir.json"}) {
    for (std::string name : names_in(path, std::regex(R"(\b((?:weir|process)_[a-z_]+))"))) {
      for (const std::string suffix : {"_bucket", "_sum", "_count"}) {
        if (name.ends_with("duration_seconds" + suffix)) name.resize(name.size() - suffix.size());
      }
      EXPECT_EQ(known.count(name), 1U) << path << " mentions " << name;
    }
  }
}

}  // namespace
}  // namespace weir::server::observe
