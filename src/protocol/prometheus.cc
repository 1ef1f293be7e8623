// Writes metrics. See prometheus.h.
#include "protocol/prometheus.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "base/text.h"
#include "protocol/http1.h"

namespace weir::protocol {
namespace {

constexpr std::string_view kOpenMetrics = "application/openmetrics-text";

// Removes the text before the next `mark` from `rest`, and returns it.
std::string_view take_until(std::string_view& rest, char mark) {
  const std::size_t at = std::min(rest.find(mark), rest.size());
  const std::string_view taken = rest.substr(0, at);
  rest.remove_prefix(std::min(at + 1, rest.size()));
  return base::trimmed(taken);
}

// Parses 0.5 as 500. A text that does not begin with 0 counts as 1.
int thousandths(std::string_view text) {
  if (!text.starts_with("0")) return 1'000;
  if (!text.starts_with("0.")) return 0;
  std::array<char, 3> digits = {'0', '0', '0'};
  std::copy_n(text.begin() + 2, std::min<std::size_t>(text.size() - 2, 3), digits.begin());
  int value = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return value;
}

struct Wanted {
  std::string_view type;
  std::string_view version;  // empty: any
  int quality = 1'000;
};

Wanted read_range(std::string_view range) {
  Wanted wanted{.type = take_until(range, ';')};
  while (!range.empty()) {
    std::string_view value = take_until(range, ';');
    const std::string_view name = take_until(value, '=');
    if (value.size() >= 2 && value.front() == '"') value = value.substr(1, value.size() - 2);
    if (equals_ignoring_case(name, "q")) wanted.quality = thousandths(value);
    if (equals_ignoring_case(name, "version")) wanted.version = value;
  }
  return wanted;
}

std::string_view type_name(MetricType type, MetricsFormat format) {
  if (type == MetricType::counter) return "counter";
  if (type == MetricType::histogram) return "histogram";
  return type == MetricType::info && format == MetricsFormat::openmetrics ? "info" : "gauge";
}

std::string_view without(std::string_view name, std::string_view suffix) {
  if (name.ends_with(suffix)) name.remove_suffix(suffix.size());
  return name;
}

void append_escaped(std::string& out, std::string_view text) {
  for (const char c : text) {
    if (c == '\n') {
      out += "\\n";
    } else {
      if (c == '\\' || c == '"') out += '\\';
      out += c;
    }
  }
}

}  // namespace

MetricsFormat metrics_format(std::string_view accept) {
  int openmetrics = 0, text = 0;
  while (!accept.empty()) {
    const Wanted wanted = read_range(take_until(accept, ','));
    const bool is_first_version = wanted.version.empty() || wanted.version == "1.0.0";
    if (equals_ignoring_case(wanted.type, kOpenMetrics) && is_first_version)
      openmetrics = std::max(openmetrics, wanted.quality);
    const bool is_old_text = wanted.version.empty() || wanted.version == "0.0.4";
    if (equals_ignoring_case(wanted.type, "text/plain") && is_old_text) text = std::max(text, wanted.quality);
  }
  return openmetrics > 0 && openmetrics >= text ? MetricsFormat::openmetrics : MetricsFormat::text;
}

std::string_view content_type(MetricsFormat format) {
  return format == MetricsFormat::openmetrics ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
                                              : "text/plain; version=0.0.4; charset=utf-8";
}

void MetricsWriter::family(std::string_view name, MetricType type, std::string_view help) {
  name_ = name;
  const bool is_open = format_ == MetricsFormat::openmetrics;
  if (is_open && type == MetricType::counter) name = without(name, "_total");
  if (is_open && type == MetricType::info) name = without(name, "_info");
  const auto line = [&](std::string_view what, std::string_view value) {
    out_.append("# ").append(what).append(" ").append(name).append(" ");
    append_escaped(out_, value);
    out_ += '\n';
  };
  if (!is_open) line("HELP", help);
  line("TYPE", type_name(type, format_));
  if (!is_open) return;
  for (const std::string_view unit : {"seconds", "bytes"}) {
    if (name.ends_with(unit) && type != MetricType::info) line("UNIT", unit);
  }
  line("HELP", help);
}

void MetricsWriter::begin_sample(std::string_view suffix, MetricLabels labels, std::string_view end) {
  out_.append(name_).append(suffix);
  char before = '{';
  const auto label = [&](std::string_view name, std::string_view value) {
    out_ += before;
    out_.append(name).append("=\"");
    append_escaped(out_, value);
    out_ += '"';
    before = ',';
  };
  for (const MetricLabel& one : labels) label(one.name, one.value);
  if (!end.empty()) label("le", end);
  if (before == ',') out_ += '}';
  out_ += ' ';
}

// Writes a float as both formats require: 0.00025, 1.0.
void MetricsWriter::write_seconds(std::uint64_t us) {
  out_.append(std::to_string(us / 1'000'000)).append(".");
  std::string part = std::to_string(1'000'000 + us % 1'000'000).substr(1);
  part.resize(std::max<std::size_t>(part.find_last_not_of('0') + 1, 1));
  out_.append(part);
}

void MetricsWriter::add(MetricLabels labels, std::uint64_t value) {
  begin_sample("", labels, "");
  out_.append(std::to_string(value)).append("\n");
}

void MetricsWriter::add_seconds(MetricLabels labels, Micros time) {
  begin_sample("", labels, "");
  write_seconds(static_cast<std::uint64_t>(std::max<std::int64_t>(time.count(), 0)));
  out_ += '\n';
}

void MetricsWriter::add(MetricLabels labels, const Histogram& histogram) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < histogram.counts.size(); ++i) {
    sum += histogram.counts[i];
    std::string end = "+Inf";
    if (i < histogram.ends.size()) {
      end.clear();
      MetricsWriter(format_, end).write_seconds(static_cast<std::uint64_t>(histogram.ends[i]));
    }
    begin_sample("_bucket", labels, end);
    out_.append(std::to_string(sum)).append("\n");
  }
  begin_sample("_sum", labels, "");
  write_seconds(histogram.sum_us);
  out_ += '\n';
  begin_sample("_count", labels, "");
  out_.append(std::to_string(sum)).append("\n");
}

void MetricsWriter::end() {
  if (format_ == MetricsFormat::openmetrics) out_ += "# EOF\n";
}

}  // namespace weir::protocol
