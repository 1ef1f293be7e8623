// Tests results as text and as JSON.
#include <gtest/gtest.h>

#include "load_generator/load.h"

namespace weir::load_generator {
namespace {

Outcome sample() {
  Outcome outcome;
  outcome.seconds = 2;
  outcome.checks = 5'000'000;
  outcome.denied = 7;
  outcome.bytes_out = 400'000'000;
  outcome.bytes_in = 1'000;
  for (std::uint64_t i = 1; i <= 100; ++i) outcome.times.record(i * 1'000);
  outcome.generator_cores = 0.5;
  return outcome;
}

TEST(OutcomeText, HasThreeSignificantDigits) {
  EXPECT_EQ(to_text(sample()),
            "checks   2.5M/s: 5000000 in 2.00 s; denied 7, errors 0\n"
            "time     p50 50.2 us, p90 90.1 us, p99 99.3 us, p99.9 100 us, max 100 us\n"
            "bytes    200M/s out, 500/s in\n"
            "cores    generator 0.50\n");
}

TEST(OutcomeText, HasTheServersCoresAndTheFirstError) {
  Outcome outcome = sample();
  outcome.server_cores = 1.0;
  outcome.errors = 3;
  outcome.unanswered = 9;
  outcome.first_error = "ERR no";
  const std::string text = to_text(outcome);
  EXPECT_NE(text.find("errors 3, unanswered 9\n"), std::string::npos) << text;
  EXPECT_NE(text.find("server 1.00: 400 ns a check\nfirst error: 'ERR no'\n"), std::string::npos) << text;
}

TEST(OutcomeText, HasNanosecondsAsJson) {
  Outcome outcome = sample();
  outcome.errors = 1;
  outcome.first_error = "say \"no\"\x01";
  EXPECT_EQ(to_json(outcome),
            "{\"checks\": 5000000, \"seconds\": 2.000000, \"checks_per_second\": 2500000.0, \"denied\": 7, "
            "\"errors\": 1, \"unanswered\": 0, \"p50_ns\": 50175, \"p90_ns\": 90111, \"p99_ns\": 99327, "
            "\"p99.9_ns\": 100000, \"max_ns\": 100000, \"bytes_out\": 400000000, \"bytes_in\": 1000, "
            "\"generator_cores\": 0.500, \"server_cores\": null, \"server_ns_per_check\": null, "
            "\"first_error\": \"say \\\"no\\\"?\"}\n");
}

}  // namespace
}  // namespace weir::load_generator
