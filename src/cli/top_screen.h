// The content of `weir top`: turns a server's successive answers into rates and one screen of text.
//
// Pure: the caller passes the time. One thread. Tested by top_screen_test.cc and tests/server/top.sh.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/json_reader.h"
#include "weir/clock.h"

namespace weir::cli {

// A rate, from counts that only grow.
class Rate {
 public:
  void add(std::int64_t count, Micros now);
  double now() const { return history_.empty() ? 0 : history_.back(); }
  const std::vector<double>& history() const { return history_; }  // oldest first, for a minute or two

 private:
  std::int64_t last_ = -1;
  Micros at_{0};
  std::vector<double> history_;
};

struct TopAnswers {
  protocol::JsonValue status, rules, keys;  // of /admin/v1/status, /rules and /top
  std::string problem{};                    // why there are none
};

struct TopSize {
  std::size_t width = 80, height = 24;
};

class TopScreen {
 public:
  void take(TopAnswers answers, Micros now);
  // `by` is the sort order of the keys. Returns at most `height` lines, none wider than the screen.
  std::string draw(TopSize size, std::string_view by, bool has_colour) const;

 private:
  struct Line;
  std::vector<Line> lines(std::string_view by) const;

  TopAnswers last_;
  Rate allowed_, denied_;
  std::map<std::string, Rate> listeners_, rule_rates_, rule_denials_;
};

// ▁▂▃▄▅▆▇█ for the last `width` values; the largest has full height.
std::string sparkline(const std::vector<double>& values, std::size_t width);

}  // namespace weir::cli
