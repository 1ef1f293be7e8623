// Tests both formats byte by byte, and which of them a client gets.
#include "protocol/prometheus.h"

#include <gtest/gtest.h>

#include "metrics_text.h"

namespace weir::protocol {
namespace {

std::string page(MetricsFormat format) {
  std::string out;
  MetricsWriter writer(format, out);
  writer.family("weir_decisions_total", MetricType::counter, "Requests \\ decided.\nBy rule.");
  writer.add({{"rule", "a\"b\\c\nd"}, {"outcome", "denied"}}, 17);
  writer.add({{"rule", ""}, {"outcome", "no_rule"}}, UINT64_MAX);
  writer.family("weir_up_timestamp_seconds", MetricType::gauge, "When.");
  writer.add_seconds({}, Micros{1'500'000});
  writer.family("weir_build_info", MetricType::info, "Which.");
  writer.add({{"version", "1.2.3"}}, 1);
  writer.family("weir_duration_seconds", MetricType::histogram, "How long.");
  constexpr std::array<std::int64_t, 2> kEnds = {250, 1'000'000};
  constexpr std::array<std::uint64_t, 3> kCounts = {3, 0, 2};
  writer.add({{"protocol", "http"}}, {.ends = kEnds, .counts = kCounts, .sum_us = 2'000'010});
  writer.end();
  return out;
}

TEST(Prometheus, WritesText) {
  const std::string text = page(MetricsFormat::text);
  EXPECT_EQ(text,
            "# HELP weir_decisions_total Requests \\\\ decided.\\nBy rule.\n"
            "# TYPE weir_decisions_total counter\n"
            "weir_decisions_total{rule=\"a\\\"b\\\\c\\nd\",outcome=\"denied\"} 17\n"
            "weir_decisions_total{rule=\"\",outcome=\"no_rule\"} 18446744073709551615\n"
            "# HELP weir_up_timestamp_seconds When.\n"
            "# TYPE weir_up_timestamp_seconds gauge\n"
            "weir_up_timestamp_seconds 1.5\n"
            "# HELP weir_build_info Which.\n"
            "# TYPE weir_build_info gauge\n"
            "weir_build_info{version=\"1.2.3\"} 1\n"
            "# HELP weir_duration_seconds How long.\n"
            "# TYPE weir_duration_seconds histogram\n"
            "weir_duration_seconds_bucket{protocol=\"http\",le=\"0.00025\"} 3\n"
            "weir_duration_seconds_bucket{protocol=\"http\",le=\"1.0\"} 3\n"
            "weir_duration_seconds_bucket{protocol=\"http\",le=\"+Inf\"} 5\n"
            "weir_duration_seconds_sum{protocol=\"http\"} 2.00001\n"
            "weir_duration_seconds_count{protocol=\"http\"} 5\n");
  const test::MetricsText read(text, MetricsFormat::text);
  EXPECT_EQ(read.families.size(), 4U);
}

TEST(Prometheus, WritesOpenMetrics) {
  const std::string text = page(MetricsFormat::openmetrics);
  EXPECT_TRUE(text.starts_with("# TYPE weir_decisions counter\n# HELP weir_decisions Requests"));
  EXPECT_TRUE(text.ends_with("weir_duration_seconds_count{protocol=\"http\"} 5\n# EOF\n"));
  const test::MetricsText read(text, MetricsFormat::openmetrics);
  EXPECT_EQ(read.families.at("weir_build").type, "info");
  EXPECT_EQ(read.families.at("weir_duration_seconds").unit, "seconds");
  EXPECT_EQ(read.value("weir_decisions_total", {{"rule", ""}, {"outcome", "no_rule"}}), "18446744073709551615");
}

TEST(Prometheus, SelectsTheFormatThatTheClientAccepts) {
  constexpr auto kText = MetricsFormat::text, kOpen = MetricsFormat::openmetrics;
  const std::pair<std::string_view, MetricsFormat> cases[] = {
      {"", kText},
      {"*/*", kText},
      {"text/html, */*;q=0.8", kText},
      {"application/openmetrics-text", kOpen},
      {"Application/OpenMetrics-Text; version=\"1.0.0\"; charset=utf-8", kOpen},
      {"application/openmetrics-text;version=0.0.1", kText},
      {"application/openmetrics-text;version=1.0.0;q=0", kText},
      {"application/openmetrics-text;q=0.1,text/plain;q=0.9", kText},
      {"application/openmetrics-text;q=0.9,text/plain;version=0.0.4;q=0.9", kOpen},
      // As Prometheus 2 and 3 send it.
      {"application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,"
       "text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
       kOpen},
      {"application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,"
       "application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.3,"
       "text/plain;version=0.0.4;q=0.2,*/*;q=0.1",
       kOpen},
      {";;,,=q;q=;version", kText},
  };
  for (const auto& [accept, wanted] : cases) EXPECT_EQ(metrics_format(accept), wanted) << accept;
  EXPECT_EQ(content_type(kText), "text/plain; version=0.0.4; charset=utf-8");
  EXPECT_EQ(content_type(kOpen), "application/openmetrics-text; version=1.0.0; charset=utf-8");
}

}  // namespace
}  // namespace weir::protocol
