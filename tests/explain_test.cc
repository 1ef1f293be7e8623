// An explanation says what a check would do, for any rules and requests, and charges nothing. It also says the most
// that each limit can admit.
#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "gate/explain.h"
#include "gate_fixture.h"
#include "policy_world.h"
#include "seed.h"

namespace weir {
namespace {

using namespace std::chrono_literals;
using Explain = test::GateTest;

Explanation explained(Gate& gate, const Request& request) {
  auto explanation = gate.explain(request);
  EXPECT_TRUE(explanation) << explanation.error().message;
  return explanation ? *std::move(explanation) : Explanation{};
}

const RuleExplanation& rule_of(const Explanation& explanation, const std::string& name) {
  for (const RuleExplanation& rule : explanation.rules) {
    if (rule.rule == name) return rule;
  }
  static const RuleExplanation none;
  ADD_FAILURE() << name << " is not explained";
  return none;
}

TEST_F(Explain, SaysWhyARuleIsNotAboutARequest) {
  use("skip: [/health]\nrules:\n"
      "- {name: path, match: {path: /a}, per: ip, limit: 1/s}\n"
      "- {name: method, match: {method: POST}, per: ip, limit: 1/s}\n"
      "- {name: header, match: {header: {x-org: acme}}, per: ip, limit: 1/s}\n"
      "- {name: net, match: {ip: 10.0.0.0/8}, per: ip, limit: 1/s}\n"
      "- {name: not, match: {not: {user: '42', method: GET}}, per: ip, limit: 1/s}\n"
      "- {name: absent, per: tenant, limit: 1/s}\n"
      "- {name: must, per: [ip, tenant], limit: 1/s, mode: shadow, required: true}\n"
      "- {name: off, per: ip, limit: 1/s, mode: off}\n"
      "- {name: old, per: ip, limit: 1/s, expires_at: 2020-02-29}\n"
      "- {name: here, match: {path: /b}, per: [user, path], limit: 1/s}\n"
      "- {name: rest, match: otherwise, per: ip, limit: 1/s}\n");
  const Explanation told = explained(gate, {.user = "42", .ip = "192.0.2.1", .method = "GET", .path = "/b"});
  const std::pair<const char*, const char*> reasons[] = {
      {"path", "path is '/b', not /a"},
      {"method", "method is 'GET', not POST"},
      {"header", "the request has no header x-org"},
      {"net", "ip is '192.0.2.1', not 10.0.0.0/8"},
      {"not", "not for user 42 and method GET"},
      {"absent", "the request has no tenant"},
      {"must", "the request has no tenant, which the rule requires"},
      {"off", "the rule is off"},
      {"old", "the rule expired at 2020-02-29T00:00:00Z"},
      {"here", "enforced"},
      {"rest", "rule here, which names a path, applies"},
  };
  for (const auto& [name, reason] : reasons) EXPECT_EQ(rule_of(told, name).reason, reason);
  EXPECT_EQ(rule_of(told, "here").key, "user:42,path:/b");
  EXPECT_EQ(told.binding, "here: 1/s");
  const Explanation skipped = explained(gate, {.ip = "192.0.2.1", .path = "/Health/"});
  EXPECT_EQ(skipped.summary, "passes: `skip` exempts it from all rules");
  EXPECT_EQ(skipped.path, "/health");
}

TEST_F(Explain, StatesTheWorstCaseOfEveryAlgorithm) {
  const std::pair<const char*, const char*> cases[] = {
      {"100/minute, algorithm: fixed_window", "up to 200 permits at once across a window boundary, 100 from each side"},
      {"100/minute, algorithm: sliding_log", "never more than 100 permits in any minute"},
      {"1000000/hour, algorithm: sliding_log",
       "never more than 1000000 permits in any hour, in at most 65536 requests"},
      {"100/minute",
       "up to 200 permits in any minute, if the previous window's requests came at its end; 100 with even traffic"},
      {"10/s burst 50", "a burst of 50 at once, so up to 60 permits in any second"},
      {"100/5min, algorithm: leaky_bucket", "a queue of 100, admitted at an even rate"},
      {"0/s", "nothing: the rule is a ban"},
  };
  for (const auto& [limit, worst] : cases) {
    use_rules(std::string("- {name: a, per: user, limit: ") + limit + "}");
    EXPECT_EQ(explained(gate, {.user = "42"}).rules[0].limits[0].worst_case, worst) << limit;
  }
  use_rules("- {name: a, per: user, limit: 1000003/7day, algorithm: token_bucket}");
  const std::string slower = explained(gate, {.user = "42"}).rules[0].limits[0].worst_case;
  EXPECT_NE(slower.find(" % slower than written, the nearest rate that Weir can count"), std::string::npos) << slower;
}

// The same bounds that tests/fleet_faults_test.cc asserts of real fleets.
TEST_F(Explain, StatesTheWorstCaseWhileRedisIsDown) {
  const Limit limit = compile("100/hour burst 40", Algorithm::token_bucket).value(), ban = compile("0/s").value();
  const std::string failover = "; after a failover of Redis, up to 40 plus charges that were not yet replicated";
  EXPECT_EQ(gate::on_unavailable(limit, Fallback::local, 3),
            "up to 40 on 3 servers, each its share (local)" + failover);
  EXPECT_EQ(gate::on_unavailable(limit, Fallback::local, 50),
            "up to 50 on 50 servers, each its share (local)" + failover);
  EXPECT_EQ(gate::on_unavailable(limit, Fallback::open, 3),
            "up to 120 on 3 servers, each the whole limit (open)" + failover);
  EXPECT_EQ(gate::on_unavailable(limit, Fallback::closed, 3), "nothing passes (closed)");
  EXPECT_EQ(gate::on_unavailable(limit, Fallback::local, 0), "up to max(40, N) on N servers, each its share (local)");
  EXPECT_EQ(gate::on_unavailable(limit, Fallback::open, 0), "up to N x 40 on N servers, each the whole limit (open)");
  EXPECT_EQ(gate::on_unavailable(ban, Fallback::local, 3), "");

  use_rules("- {name: a, per: user, limit: 100/minute}");
  EXPECT_EQ(explained(gate, {.user = "42"}).rules[0].limits[0].on_unavailable, "") << "it shares with nobody";
  const auto policy = parse_policy("store: redis://r\nrules: [{name: a, per: user, limit: 100/minute}]", "t");
  ASSERT_TRUE(gate.apply(policy.value(), Force::yes));
  EXPECT_EQ(explained(gate, {.user = "42"}).rules[0].limits[0].on_unavailable,
            "up to max(100, N) on N servers, each its share (local)");
}

TEST_F(Explain, ShowsWhatIsLeftAndWhatBinds) {
  use_rules(
      "- {name: wide, per: ip, limit: 100/hour, algorithm: token_bucket}\n"
      "- {name: narrow, per: user, limit: 2/hour, algorithm: fixed_window}\n");
  const Request request{.user = "42", .ip = "192.0.2.1"};
  passed(2, request);
  const Explanation told = explained(gate, request);
  EXPECT_FALSE(told.allowed);
  EXPECT_EQ(told.binding, "narrow: 2/hour");
  EXPECT_EQ(told.summary, "denied by narrow: 2/hour");
  EXPECT_EQ(rule_of(told, "wide").limits[0].decision.remaining, 98);
  EXPECT_EQ(rule_of(told, "narrow").limits[0].decision.retry_after, Micros{1h});
}

// On random rules: a check decides what the explanation said, and the explanation has charged nothing.
TEST_F(Explain, SaysWhatACheckWouldDoAndChargesNothing) {
  test::Dice dice(test::base_seed());
  int denied = 0, passed_on = 0;
  for (int world = 0; world < 150; ++world) {
    auto twin_clock = std::make_shared<ManualClock>(Micros{test::kWorldNow});
    test::GateWorld asked(twin_clock), unasked(twin_clock);
    const Policy policy = test::random_policy(dice);
    if (!asked.gate.apply(policy) || !unasked.gate.apply(policy)) continue;
    for (int i = 0; i < 40; ++i) {
      test::OwnedRequest request = test::random_request(dice);
      const auto told = asked.gate.explain(request.view());
      const auto answer = asked.gate.check(request.view()), twin = unasked.gate.check(request.view());
      ASSERT_EQ(told.has_value(), answer.has_value() || answer.error().code == ErrorCode::exhausted);
      if (!answer) continue;
      ASSERT_EQ(told->allowed, answer->allowed) << to_yaml(policy) << request.text() << "\n" << told->summary;
      ASSERT_EQ(twin->allowed, answer->allowed);
      if (!answer->allowed && answer->why == Why::limited) {
        ASSERT_EQ(told->binding, answer->limits[answer->binding].name) << to_yaml(policy) << request.text();
      }
      for (std::size_t k = 0; k < answer->limits.size(); ++k) {
        ASSERT_EQ(answer->limits[k].decision, twin->limits[k].decision) << "an explanation was charged";
      }
      ++(answer->allowed ? passed_on : denied);
      twin_clock->advance(Micros{static_cast<std::int64_t>(dice.roll(2'000'000))});
    }
  }
  EXPECT_GT(denied, 100);
  EXPECT_GT(passed_on, 100);
}

}  // namespace
}  // namespace weir
