// Tests the rates of `weir top` with hand-made answers.
#include "cli/top_screen.h"

#include <gtest/gtest.h>

namespace weir::cli {
namespace {

struct TopScreenTest : testing::Test {
  // One poll of a server: the `decisions` of its status, and its rules.
  void look(const std::string& decisions, const std::string& rules) {
    now += Micros{1'000'000};
    screen.take({.status = *protocol::parse_json("{\"decisions\":" + decisions + "}"),
                 .rules = *protocol::parse_json("{\"rules\":[" + rules + "]}"),
                 .keys = {}},
                now);
  }
  bool shows(const std::string& text) const {
    const std::string drawn = screen.draw({.width = 200, .height = 100}, "denied", false);
    const bool is_there = drawn.find(text) != drawn.npos;
    EXPECT_TRUE(is_there) << text << " is not in\n" << drawn;
    return is_there;
  }

  TopScreen screen;
  Micros now{0};
};

TEST_F(TopScreenTest, CountsLimitsInRequestsAndRequestsWithoutRules) {
  look(R"({"inline_allowed":1000,"inline_denied":10,"no_rule":5,"skipped":1})", "");
  look(R"({"inline_allowed":1300,"inline_denied":60,"no_rule":25,"skipped":4})", "");
  shows("allowed          323/s");
  shows("denied            50/s");
}

TEST_F(TopScreenTest, CountsARuleCalledInlineOnce) {
  const auto rule = [](int allowed, int denied) {
    return R"({"name":"inline","allowed":)" + std::to_string(allowed) + R"(,"denied":)" + std::to_string(denied) + "}";
  };
  look(R"({"inline_allowed":0,"inline_denied":0})", rule(0, 0));
  look(R"({"inline_allowed":100,"inline_denied":20})", rule(100, 20));
  shows("allowed          100/s");
  shows("denied            20/s");
}

TEST_F(TopScreenTest, ContinuesFromZeroAfterARestartOfTheServer) {
  look(R"({"inline_allowed":1000})", "");
  look(R"({"inline_allowed":30})", "");
  shows("allowed           30/s");
}

}  // namespace
}  // namespace weir::cli
