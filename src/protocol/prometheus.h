// Writes metrics for Prometheus: the text format 0.0.4, or OpenMetrics 1.0 if the client asks for it.
//
//   MetricsWriter page(MetricsFormat::text, out);
//   page.family("weir_decisions_total", MetricType::counter, "Decided requests.");
//   page.add({{"rule", "login"}, {"outcome", "denied"}}, 17);
//   page.end();
//
// A family has the name of its samples. Add all of its samples before the next family. Numbers are integers, or
// microseconds written as seconds, so nothing is rounded. Pure; one thread may use a writer. Tested by
// prometheus_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include "weir/clock.h"

namespace weir::protocol {

enum class MetricsFormat : std::uint8_t { text, openmetrics };

// Returns the format for a client's Accept field; text if that is empty.
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

  // A counter's name ends in _total, an info's in _info. A name that ends in _seconds or _bytes states its unit.
  void family(std::string_view name, MetricType type, std::string_view help);
  void add(MetricLabels labels, std::uint64_t value);
  void add(std::uint64_t value) { add({}, value); }
  void add_seconds(MetricLabels labels, Micros time);

  // Times in microseconds. `ends` are the upper bounds of all buckets except the last; `counts` are the events in
  // each.
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

}  // namespace weir::protocol
