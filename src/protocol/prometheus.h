// Metrics as Prometheus reads them: the text format 0.0.4, and OpenMetrics 1.0 for those who ask for it.
//
//   MetricsWriter page(MetricsFormat::text, out);
//   page.family("weir_decisions_total", MetricType::counter, "Requests that were decided.");
//   page.add({{"rule", "login"}, {"outcome", "denied"}}, 17);
//   page.end();
//
// A family is named as its samples are, and all its samples follow it. Numbers are whole, or microseconds that are
// written as seconds: nothing is rounded. Pure; one thread. Tested by prometheus_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include "weir/clock.h"

namespace weir {

enum class MetricsFormat : std::uint8_t { text, openmetrics };

// What a client that sends this Accept field is given; an empty one is given text.
MetricsFormat metrics_format(std::string_view accept);
std::string_view content_type(MetricsFormat format);

enum class MetricType : std::uint8_t { counter, gauge, histogram, info };

struct MetricLabel {
  std::string_view name;
  std::string_view value;  // from the config or the code, never from a request
};
using MetricLabels = std::initializer_list<MetricLabel>;

class MetricsWriter {
 public:
  MetricsWriter(MetricsFormat format, std::string& out) : format_(format), out_(out) {}

  // A counter's name ends in _total, an info's in _info; one that ends in _seconds or _bytes says its unit by that.
  void family(std::string_view name, MetricType type, std::string_view help);
  void add(MetricLabels labels, std::uint64_t value);
  void add(std::uint64_t value) { add({}, value); }
  void add_seconds(MetricLabels labels, Micros time);

  // Times in microseconds. `ends` are the upper ends of all buckets but the last, `counts` how many are in each.
  struct Histogram {
    std::span<const std::int64_t> ends;
    std::span<const std::uint64_t> counts;
    std::uint64_t sum_us = 0;
  };
  void add(MetricLabels labels, const Histogram& histogram);

  void end();

 private:
  void begin_sample(std::string_view suffix, MetricLabels labels, std::string_view end);
  void write_seconds(std::uint64_t us);

  MetricsFormat format_;
  std::string& out_;
  std::string name_{};
};

}  // namespace weir
