// A strict reader of metrics pages, in both formats. A violation of a format fails the test.
//
// For tests only. It knows the families and samples that Weir writes, no timestamps and no exemplars. One thread.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "protocol/prometheus.h"

namespace weir::test {

struct MetricSample {
  std::string name{};
  std::map<std::string, std::string> labels{};
  std::string value{};
};

struct MetricFamily {
  std::string type{}, help{}, unit{};
  std::vector<MetricSample> samples{};
};

class MetricsText {
 public:
  MetricsText(const std::string& text, protocol::MetricsFormat format)
      : is_open_(format == protocol::MetricsFormat::openmetrics) {
    EXPECT_TRUE(text.ends_with('\n'));
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) {
      EXPECT_FALSE(has_ended_) << "after the end: " << line;
      EXPECT_EQ(line.find('\r'), line.npos);
      read(line);
    }
    EXPECT_EQ(has_ended_, is_open_);
    for (const auto& [name, family] : families) check(name, family);
  }

  // The value of a sample as text; empty if there is none.
  std::string value(const std::string& name, const std::map<std::string, std::string>& labels = {}) const {
    for (const auto& [unused, family] : families) {
      for (const MetricSample& sample : family.samples) {
        if (sample.name == name && sample.labels == labels) return sample.value;
      }
    }
    return {};
  }

  std::size_t series() const {
    std::size_t count = 0;
    for (const auto& [unused, family] : families) count += family.samples.size();
    return count;
  }

  std::map<std::string, MetricFamily> families{};  // by their names in this format

 private:
  void read(const std::string& line) {
    static const std::regex kMeta(R"(# (HELP|TYPE|UNIT) ([a-z_:][a-z0-9_:]*) (.+))");
    static const std::regex kSample(R"(([a-z_:][a-z0-9_:]*)(\{(.*)\})? (\+Inf|[0-9]+(\.[0-9]+)?))");
    std::smatch match;
    if (is_open_ && line == "# EOF") {
      has_ended_ = true;
    } else if (std::regex_match(line, match, kMeta)) {
      read_meta(match[1], match[2], match[3]);
    } else if (std::regex_match(line, match, kSample)) {
      read_sample({match[1], read_labels(match[3]), match[4]});
    } else {
      ADD_FAILURE() << "this is no line of the format: " << line;
    }
  }

  void read_meta(const std::string& what, const std::string& name, const std::string& value) {
    const std::string first = is_open_ ? "TYPE" : "HELP";
    if (what == first) {
      EXPECT_EQ(families.count(name), 0U) << name << " comes twice";
      current_ = name;
    }
    EXPECT_EQ(name, current_) << what << " stands elsewhere";
    MetricFamily& family = families[name];
    EXPECT_TRUE(family.samples.empty()) << what << " after a sample";
    std::string& place = what == "HELP" ? family.help : what == "TYPE" ? family.type : family.unit;
    EXPECT_TRUE(place.empty()) << what << " of " << name << " twice";
    place = value;
    if (what == "UNIT") {
      EXPECT_TRUE(is_open_);
      EXPECT_TRUE(family.help.empty()) << "the order is TYPE, UNIT, HELP";
      EXPECT_TRUE(name.ends_with("_" + value));
    }
  }

  static std::map<std::string, std::string> read_labels(std::string text) {
    static const std::regex kLabel(R"re(^([a-z][a-z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(,|$))re");
    std::map<std::string, std::string> labels;
    std::smatch match;
    while (!text.empty()) {
      if (!std::regex_search(text, match, kLabel)) {
        ADD_FAILURE() << "these are no labels: " << text;
        break;
      }
      EXPECT_TRUE(labels.emplace(match[1], match[2]).second) << "a label comes twice";
      text = match.suffix();
    }
    return labels;
  }

  void read_sample(MetricSample sample) {
    const MetricFamily& family = families[current_];
    std::set<std::string> suffixes = {""};
    if (is_open_ && family.type == "counter") suffixes = {"_total"};
    if (is_open_ && family.type == "info") suffixes = {"_info"};
    if (family.type == "histogram") suffixes = {"_bucket", "_sum", "_count"};
    const bool is_of_it = sample.name.starts_with(current_) && suffixes.count(sample.name.substr(current_.size())) > 0;
    EXPECT_TRUE(is_of_it) << sample.name << " is no sample of " << current_;
    EXPECT_TRUE(seen_.emplace(sample.name, sample.labels).second) << sample.name << " comes twice";
    families[current_].samples.push_back(std::move(sample));
  }

  void check(const std::string& name, const MetricFamily& family) const {
    static const std::set<std::string> kTypes = {"counter", "gauge", "histogram", "info"};
    EXPECT_EQ(kTypes.count(family.type), 1U) << name;
    EXPECT_FALSE(family.type == "info" && !is_open_);
    EXPECT_FALSE(family.help.empty()) << name;
    EXPECT_EQ(family.type == "counter" && !is_open_, name.ends_with("_total")) << name;
    if (family.type == "histogram") check_histogram(family);
  }

  static void check_histogram(const MetricFamily& family) {
    double last_end = -1;
    std::uint64_t last = 0;
    for (const MetricSample& sample : family.samples) {
      if (sample.name.ends_with("_bucket")) {
        const std::string end = sample.labels.at("le");
        EXPECT_TRUE(end == "+Inf" || end.find('.') != end.npos) << "not canonical: " << end;
        const double next = end == "+Inf" ? 1e300 : std::stod(end);
        EXPECT_GT(next, last_end);
        EXPECT_GE(std::stoull(sample.value), last);
        last = std::stoull(sample.value);
        last_end = next;
      } else if (sample.name.ends_with("_count")) {
        EXPECT_EQ(last_end, 1e300) << "there is no last bucket";
        EXPECT_EQ(std::stoull(sample.value), last);
        last_end = -1;
        last = 0;
      }
    }
  }

  bool is_open_;
  bool has_ended_ = false;
  std::string current_;
  std::set<std::pair<std::string, std::map<std::string, std::string>>> seen_;
};

}  // namespace weir::test
