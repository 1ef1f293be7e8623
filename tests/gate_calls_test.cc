// The calls of a gate beside check(): peeking without charging, requests that are sent twice, several views of one
// request, reservations, and resetting what one client used.
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "gate_fixture.h"
#include "policy_world.h"
#include "sanitized.h"
#include "seed.h"
#include "waiting_store.h"

namespace weir {
namespace {

using namespace std::chrono_literals;

class GateCalls : public test::GateTest {
 protected:
  static Answer sound(Result<Answer> answer) {
    EXPECT_TRUE(answer) << answer.error().message;
    return answer ? *std::move(answer) : Answer{};
  }
  Answer peek(const Request& request) { return sound(gate.peek(request)); }
  Answer once(std::string_view id, const Request& request) { return sound(gate.check_once(id, request)); }
  RuleReservation reserve(const Request& request, std::string_view id = {}) {
    auto reserved = gate.reserve(request, {.id = id});
    EXPECT_TRUE(reserved) << reserved.error().message;
    return reserved ? *std::move(reserved) : RuleReservation{};
  }
  // How many permits each limit has left for this request.
  std::vector<std::int64_t> left(const Request& request) {
    std::vector<std::int64_t> out;
    for (const LimitAnswer& limit : peek(request).limits) out.push_back(limit.decision.remaining);
    return out;
  }

  struct Checked {
    bool allowed = false;
    std::vector<Answer> answers{};
    std::vector<Decision> decisions{};
  };
  Checked together(const std::vector<Request>& requests, const std::vector<Charge>& also = {}) {
    Checked out{.answers = std::vector<Answer>(requests.size()), .decisions = std::vector<Decision>(also.size())};
    const auto allowed = gate.check_together(gate.rules(), requests, out.answers, also, out.decisions);
    EXPECT_TRUE(allowed) << allowed.error().message;
    out.allowed = allowed && *allowed;
    return out;
  }
};

using Left = std::vector<std::int64_t>;
constexpr const char* kTwoRules =
    "- {name: user, per: user, limit: 3/hour, algorithm: fixed_window}\n"
    "- {name: address, per: ip, limit: 5/hour, algorithm: token_bucket}\n";

TEST_F(GateCalls, SayWhoseStyleTheyAnswerIn) {
  EXPECT_EQ(ask({.user = "1"}).style, nullptr);
  use_rules(kTwoRules);
  const Request request{.user = "1", .ip = "192.0.2.1"};
  const Answer answers[] = {ask(request), peek(request), once("a", request), reserve(request, "b").answer,
                            ask({.path = "/none"})};
  for (const Answer& answer : answers) {
    ASSERT_NE(answer.style, nullptr);
    EXPECT_EQ(*answer.style, gate.policy().answers);
  }
  EXPECT_NE(together({request}).answers[0].style, nullptr);
}

TEST_F(GateCalls, NameTheKeyThatDecidedAsExplainDoes) {
  EXPECT_EQ(gate.key_of(ask({.user = "1"}), {.user = "1"}), "");
  use_rules(std::string(kTwoRules) + "- {name: tenant, per: tenant, limit: 9/hour, required: true}\n");
  const Request request{.user = "1", .ip = "192.0.2.1", .tenant = "acme"};
  for (int i = 0; i < 3; ++i) ask(request);
  const Answer denied = ask(request);
  ASSERT_EQ(denied.rule, "user");
  EXPECT_EQ(gate.key_of(denied, request), "user:1");
  const auto explained = gate.explain(request);
  ASSERT_TRUE(explained);
  EXPECT_EQ(gate.key_of(denied, request), explained->rules[0].key);
  use_rules("- {name: other, per: global, limit: 9/hour}\n");
  EXPECT_EQ(gate.key_of(denied, request), "user:1") << "by the rules that decided";
  EXPECT_EQ(gate.key_of(denied, {.ip = "192.0.2.1"}), "");
  EXPECT_EQ(gate.key_of(ask({.path = "/"}), {.path = "/"}), "all");
}

TEST_F(GateCalls, PeekWithoutChargingAnything) {
  use_rules(std::string(kTwoRules) +
            "- {name: login, per: ip, limit: 4/hour, algorithm: fixed_window, count_denied: true}\n"
            "- {name: watched, per: ip, limit: 9/hour, algorithm: fixed_window, mode: shadow}\n");
  const Request request{.user = "1", .ip = "192.0.2.1"};
  ask(request);
  for (int i = 0; i < 20; ++i) {
    const Answer answer = peek(request);
    EXPECT_TRUE(answer.allowed);
    EXPECT_EQ(answer.why, Why::within);
    ASSERT_EQ(answer.shadows.size(), 1U);
    EXPECT_EQ(answer.shadows[0].decision.remaining, 8);
    EXPECT_EQ(left(request), (Left{2, 4, 3}));
  }
  Request dear = request;
  dear.cost = 3;
  for (int i = 0; i < 20; ++i) {
    const Answer answer = peek(dear);
    EXPECT_FALSE(answer.allowed);
    EXPECT_EQ(answer.why, Why::limited);
    EXPECT_EQ(binding(answer), "user: 3/hour");
    EXPECT_EQ(answer.retry_after, Micros{1h});
  }
  EXPECT_EQ(left(request), (Left{2, 4, 3})) << "a denial was counted that did not happen";
}

TEST_F(GateCalls, PeekAtAMissingAttributeAndAtNothing) {
  EXPECT_TRUE(peek({}).allowed);
  use_rules(
      "- {name: tenant, per: tenant, limit: 9/hour, required: true}\n"
      "- {name: strict, per: ip, limit: 3/hour, algorithm: fixed_window, count_denied: true}\n");
  for (int i = 0; i < 5; ++i) {
    const Answer answer = peek({.ip = "192.0.2.1"});
    EXPECT_FALSE(answer.allowed);
    EXPECT_EQ(answer.missing, "tenant");
  }
  EXPECT_EQ(left({.ip = "192.0.2.1", .tenant = "acme"}), (Left{9, 3}));
}

TEST_F(GateCalls, ChargeARequestOnceThatIsSentTwice) {
  use_rules(std::string(kTwoRules) +
            "- {name: watched, per: ip, limit: 9/hour, algorithm: fixed_window, mode: shadow}\n");
  const Request request{.user = "1", .ip = "192.0.2.1"};
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(once("first", request).allowed);
  EXPECT_EQ(left(request), (Left{2, 4}));
  EXPECT_EQ(peek(request).shadows[0].decision.remaining, 8) << "what is in shadow was charged again";
  EXPECT_TRUE(once("second", request).allowed);
  EXPECT_TRUE(once("third", request).allowed);
  EXPECT_FALSE(once("fourth", request).allowed);
  EXPECT_TRUE(once("third", request).allowed) << "what was allowed once is allowed, also when nothing is left";
  EXPECT_EQ(left(request), (Left{0, 2}));
  go_on(1h);
  EXPECT_TRUE(once("fourth", request).allowed) << "what was denied is a new request";
  EXPECT_EQ(left(request)[0], 2);
}

TEST_F(GateCalls, CountADeniedRequestWithAnId) {
  use_rules(
      "- {name: user, per: user, limit: 1/hour, algorithm: fixed_window}\n"
      "- {name: login, per: ip, limit: 9/hour, algorithm: fixed_window, count_denied: true}\n");
  const Request request{.user = "1", .ip = "192.0.2.1"};
  EXPECT_TRUE(once("a", request).allowed);
  EXPECT_FALSE(once("b", request).allowed);
  EXPECT_FALSE(reserve(request).answer.allowed);
  EXPECT_EQ(left(request), (Left{0, 6}));
}

TEST_F(GateCalls, RefuseAnIdThatCannotBeOne) {
  for (const bool has_rules : {false, true}) {
    if (has_rules) use_rules(kTwoRules);
    const Request request{.user = "1"};
    for (const std::string& id : {std::string(), std::string(65, 'x')}) {
      EXPECT_FALSE(gate.check_once(id, request));
      EXPECT_FALSE(gate.commit(id, request));
      EXPECT_FALSE(gate.cancel(id, request));
    }
    EXPECT_FALSE(gate.reserve(request, {.id = std::string(65, 'x')}));
    EXPECT_TRUE(gate.check_once(std::string(64, 'x'), request));
  }
}

TEST_F(GateCalls, ChargeAllOfSeveralViewsOrNone) {
  use_rules(kTwoRules);
  const std::vector<Request> views = {{.user = "1"}, {.ip = "192.0.2.1"}};
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(together(views).allowed);
  for (int i = 0; i < 5; ++i) {
    const Checked denied = together(views);
    EXPECT_FALSE(denied.allowed);
    EXPECT_FALSE(denied.answers[0].allowed);
    EXPECT_EQ(denied.answers[0].why, Why::limited);
    EXPECT_EQ(denied.answers[0].retry_after, Micros{1h});
    EXPECT_TRUE(denied.answers[1].allowed) << "its own limit has room";
    EXPECT_EQ(denied.answers[1].why, Why::within);
    EXPECT_EQ(denied.answers[1].retry_after, Micros{0});
    EXPECT_EQ(denied.answers[1].limits[0].decision.remaining, 2) << "and nothing was taken of it";
  }
  EXPECT_EQ(left({.ip = "192.0.2.1"}), Left{2});
}

TEST_F(GateCalls, ChargeALimitThatSeveralViewsMeetOnceWithTheHighestCost) {
  use_rules(
      "- {name: user, per: user, limit: 100/hour, algorithm: fixed_window}\n"
      "- {name: watched, per: user, limit: 100/hour, algorithm: fixed_window, mode: shadow}\n");
  const auto costs = [&](std::initializer_list<std::int64_t> all) {
    std::vector<Request> views;
    for (const std::int64_t cost : all) views.push_back({.user = "1", .cost = cost});
    return together(views);
  };
  const Checked first = costs({1, 7, 3});
  EXPECT_EQ(left({.user = "1"}), Left{93});
  for (const Answer& answer : first.answers) {
    EXPECT_EQ(answer.limits[0].cost, 7);
    EXPECT_EQ(answer.limits[0].decision.remaining, 93);
    EXPECT_EQ(answer.shadows[0].decision.remaining, 93);
  }
  costs({-5, -2});
  EXPECT_EQ(left({.user = "1"}), Left{95});
  costs({4, -5});
  EXPECT_EQ(left({.user = "1"}), Left{91});
  EXPECT_EQ(peek({.user = "1"}).shadows[0].decision.remaining, 91);
  together({{.user = "1"}, {.user = "2"}});
  EXPECT_EQ(left({.user = "1"}), Left{90});
  EXPECT_EQ(left({.user = "2"}), Left{99});
}

TEST_F(GateCalls, ChargeOthersBesideTheRulesInTheSameEvent) {
  use_rules("- {name: user, per: user, limit: 2/hour, algorithm: fixed_window}\n");
  const Limit limit = *compile("3/hour", Algorithm::fixed_window);
  const std::vector<Charge> also = {{.key = "x", .limit = &limit, .cost = 1}, {.key = "x", .limit = &limit, .cost = 2}};
  const Checked first = together({{.user = "1"}}, also);
  EXPECT_TRUE(first.allowed);
  EXPECT_EQ(first.decisions[0].remaining, 1);
  EXPECT_EQ(first.decisions[0], first.decisions[1]);
  const Checked second = together({{.user = "1"}}, also);
  EXPECT_FALSE(second.allowed);
  EXPECT_TRUE(second.answers[0].allowed);
  EXPECT_FALSE(second.decisions[0].allowed);
  EXPECT_EQ(left({.user = "1"}), Left{1}) << "the charge beside the rules was denied";
  EXPECT_TRUE(together({}, {{.key = "y", .limit = &limit}}).allowed);
  EXPECT_TRUE(together({}).allowed);
  std::vector<Decision> decisions(1);
  for (const Charge bad : {Charge{.key = "", .limit = &limit}, Charge{.key = "z"}}) {
    EXPECT_FALSE(gate.check_together(gate.rules(), {}, {}, {&bad, 1}, decisions));
  }
}

TEST_F(GateCalls, ChargeNothingIfOneViewLacksWhatARuleRequires) {
  use_rules(
      "- {name: user, per: user, limit: 5/hour, algorithm: fixed_window}\n"
      "- {name: tenant, match: {path: /t}, per: tenant, limit: 9/hour, required: true}\n"
      "- {name: login, per: ip, limit: 5/hour, algorithm: fixed_window, count_denied: true}\n"
      "- {name: watched, per: user, limit: 5/hour, algorithm: fixed_window, mode: shadow}\n");
  const Limit limit = *compile("3/hour", Algorithm::fixed_window);
  const Checked denied = together({{.user = "1"}, {.path = "/t"}, {.ip = "192.0.2.1"}, {.path = "/none"}},
                                  {{.key = "x", .limit = &limit}});
  EXPECT_FALSE(denied.allowed);
  EXPECT_TRUE(denied.answers[0].allowed);
  EXPECT_EQ(denied.answers[0].limits[0].decision.remaining, 5);
  EXPECT_TRUE(denied.answers[0].shadows.empty());
  EXPECT_FALSE(denied.answers[1].allowed);
  EXPECT_EQ(denied.answers[1].why, Why::missing);
  EXPECT_EQ(denied.answers[1].missing, "tenant");
  EXPECT_TRUE(denied.answers[2].allowed);
  EXPECT_EQ(denied.answers[3].why, Why::no_rule);
  EXPECT_EQ(denied.decisions[0].remaining, 3);
  EXPECT_EQ(left({.user = "1", .ip = "192.0.2.1"}), (Left{5, 4})) << "only count_denied charges a denied request";
  EXPECT_EQ(peek({.user = "1"}).shadows[0].decision.remaining, 5);
}

TEST_F(GateCalls, CountADenialOfSeveralViewsOnce) {
  use_rules(
      "- {name: user, per: user, limit: 1/hour, algorithm: fixed_window}\n"
      "- {name: login, per: ip, limit: 9/hour, algorithm: fixed_window, count_denied: true}\n");
  const std::vector<Request> views = {{.ip = "192.0.2.1"}, {.user = "1", .ip = "192.0.2.1"}};
  EXPECT_TRUE(together(views).allowed);
  EXPECT_FALSE(together(views).allowed);
  EXPECT_EQ(left({.ip = "192.0.2.1"}), Left{7});
}

TEST_F(GateCalls, BoundTheLimitsOfAllViewsOfARequest) {
  use_rules("- {name: user, per: user, limit: 9/hour}\n");
  std::vector<std::string> users;
  for (std::size_t i = 0; i <= kChargesMax; ++i) users.push_back("u" + std::to_string(i));
  std::vector<Request> views;
  for (const std::string& user : users) views.push_back({.user = user});
  std::vector<Answer> answers(views.size());
  const auto refused = gate.check_together(gate.rules(), views, answers);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::exhausted);
  EXPECT_EQ(left({.user = "u0"}), Left{9});
  views.back().user = "u0";  // 32 users in 33 views
  EXPECT_TRUE(together(views).allowed);
  EXPECT_EQ(left({.user = "u0"}), Left{8});
}

TEST_F(GateCalls, SettleAReservationOnce) {
  use_rules(
      "- {name: user, per: user, limit: 100/hour, algorithm: fixed_window}\n"
      "- {name: address, per: ip, limit: 100/hour, algorithm: token_bucket}\n"
      "- {name: watched, per: user, limit: 100/hour, algorithm: fixed_window, mode: shadow}\n");
  Request request{.user = "1", .ip = "192.0.2.1", .cost = 30};
  const RuleReservation reserved = reserve(request);
  EXPECT_TRUE(reserved.answer.allowed);
  EXPECT_EQ(reserved.id.size(), 32U);
  EXPECT_EQ(left(request), (Left{70, 70}));
  request.cost = 12;
  const Answer settled = sound(gate.commit(reserved.id, request));
  EXPECT_TRUE(settled.allowed);
  EXPECT_EQ(settled.limits[0].decision.remaining, 88);
  EXPECT_EQ(settled.limits[1].decision.remaining, 88);
  EXPECT_EQ(peek(request).shadows[0].decision.remaining, 88);
  const auto again = gate.commit(reserved.id, request);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, ErrorCode::not_found);
  EXPECT_FALSE(gate.cancel(reserved.id, request));
  EXPECT_EQ(left(request), (Left{88, 88}));
  EXPECT_EQ(peek(request).shadows[0].decision.remaining, 88);

  reserve(request, "mine");
  EXPECT_FALSE(gate.reserve(request, {.id = "mine"})) << "the reservation is open";
  EXPECT_EQ(sound(gate.cancel("mine", request)).limits[0].decision.remaining, 88);
  EXPECT_EQ(left(request), (Left{88, 88}));
  EXPECT_EQ(peek(request).shadows[0].decision.remaining, 88);
  EXPECT_FALSE(gate.commit("never", request));
}

TEST_F(GateCalls, ReserveNothingThatIsDenied) {
  use_rules(kTwoRules);
  const Request dear{.user = "1", .ip = "192.0.2.1", .cost = 4};
  const RuleReservation reserved = reserve(dear, "mine");
  EXPECT_FALSE(reserved.answer.allowed);
  EXPECT_EQ(binding(reserved.answer), "user: 3/hour");
  EXPECT_EQ(left(dear), (Left{3, 5}));
  EXPECT_FALSE(gate.commit("mine", dear));
  Request negative = dear;
  negative.cost = -1;
  EXPECT_FALSE(gate.reserve(negative));
}

TEST_F(GateCalls, ReserveWhereNoRuleApplies) {
  const RuleReservation without_rules = reserve({.user = "1"});
  EXPECT_TRUE(without_rules.answer.allowed);
  EXPECT_FALSE(without_rules.id.empty());
  EXPECT_TRUE(gate.commit(without_rules.id, {.user = "1"}));
  EXPECT_EQ(reserve({.user = "1"}, "mine").id, "mine");
}

TEST_F(GateCalls, SettleWhatTheyCanByRulesThatHaveChanged) {
  use_rules(kTwoRules);
  const Request request{.user = "1", .ip = "192.0.2.1", .cost = 3};
  reserve(request, "mine");
  use_rules(
      "- {name: address, per: ip, limit: 5/hour, algorithm: token_bucket}\n"
      "- {name: new, per: user, limit: 7/hour, algorithm: fixed_window}\n"
      "- {name: tenant, per: tenant, limit: 7/hour, required: true}\n");
  EXPECT_EQ(peek({.ip = "192.0.2.1", .tenant = "t"}).limits[0].decision.remaining, 2);
  const Answer settled = sound(gate.cancel("mine", request));
  EXPECT_TRUE(settled.allowed) << "what has happened cannot be denied";
  EXPECT_EQ(settled.retry_after, Micros{0});
  EXPECT_EQ(settled.limits[0].decision.remaining, 5);
  EXPECT_EQ(settled.limits[1].decision.remaining, 7) << "what was not reserved is not refunded";
  EXPECT_FALSE(gate.cancel("mine", request));
}

TEST_F(GateCalls, ResetExactlyOneSubjectOfOneRule) {
  use_rules(
      "- {name: steps, match: {path: /a}, per: [user, ip], limits: [5/min, 9/hour], algorithm: fixed_window}\n"
      "- {name: other, per: user, limit: 9/hour, algorithm: fixed_window}\n");
  const Request mine{.user = "1", .ip = "192.0.2.1", .path = "/a"};
  const Request next{.user = "1", .ip = "192.0.2.2", .path = "/a"};
  const Request others{.user = "2", .ip = "192.0.2.1", .path = "/a"};
  for (const Request& request : {mine, next, others}) passed(2, request);
  const auto found = gate.reset("steps", {.user = "1", .ip = "192.0.2.1"});
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_TRUE(*found);
  EXPECT_EQ(left(mine), (Left{5, 9, 5})) << "the path says nothing about whom it counts";
  EXPECT_EQ(left(next), (Left{3, 7, 5}));
  EXPECT_EQ(left(others), (Left{3, 7, 7}));
  EXPECT_FALSE(*gate.reset("steps", mine)) << "it was reset before";
}

TEST_F(GateCalls, ResetByPartsOfThePathAndPhases) {
  use("templates: ['/t/{x}']\n"
      "rules:\n"
      "- {name: part, match: {path: '/users/{id}'}, per: '{id}', limit: 5/hour, algorithm: fixed_window, phase: key}\n"
      "- {name: named, match: {path: [/a, /b]}, per: path, limit: 5/hour}\n"
      "- {name: rest, match: {tenant: t}, per: path, limit: 5/hour, mode: 50%}\n");
  ask({.path = "/users/7"});
  ask({.path = "/users/8"});
  ask({.path = "/a"});
  ask({.tenant = "t", .path = "/t/1"});
  EXPECT_TRUE(*gate.reset("part", {.path = "/users/7"}));
  EXPECT_EQ(left({.path = "/users/7"}), Left{5});
  EXPECT_EQ(left({.path = "/users/8"}), Left{4});
  EXPECT_FALSE(*gate.reset("named", {.path = "/b"}));
  EXPECT_TRUE(*gate.reset("named", {.path = "/a"}));
  EXPECT_TRUE(*gate.reset("rest", {.path = "/t/2"})) << "all paths of a template are one";
  for (const char* rule : {"part", "named"}) {
    for (const char* path : {"", "/c"}) {
      const auto refused = gate.reset(rule, {.path = path});
      ASSERT_FALSE(refused) << rule << path;
      EXPECT_EQ(refused.error().code, ErrorCode::invalid_argument);
    }
  }
}

TEST_F(GateCalls, SayWhyAResetFails) {
  EXPECT_EQ(gate.reset("user", {}).error().code, ErrorCode::not_found);
  use_rules(kTwoRules);
  const auto unknown = gate.reset("usr", {.user = "1"});
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, ErrorCode::not_found);
  EXPECT_EQ(unknown.error().message, "there is no rule called 'usr'; did you mean 'user'?");
  const auto lacking = gate.reset("user", {.ip = "192.0.2.1"});
  ASSERT_FALSE(lacking);
  EXPECT_EQ(lacking.error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(lacking.error().message, "rule 'user' counts by user, which this request lacks");
}

// Two gates on two limiters with one clock: one gets check(), the other another call with the same request.
TEST(GateCallsRandomly, AnswerOneRequestInEveryCallAsACheckDoes) {
  const std::uint64_t seed = test::base_seed();
  int denied = 0, requests = 0;
  for (std::uint64_t round = 0; round < (test::kIsSanitized ? 100 : 300); ++round) {
    test::Dice dice(seed + round);
    const auto clock = std::make_shared<ManualClock>(Micros{test::kWorldNow});
    test::GateWorld plain_world(clock), other_world(clock);
    Gate &plain = plain_world.gate, &other = other_world.gate;
    const Policy policy = test::random_policy(dice);
    ASSERT_TRUE(plain.apply(policy) && other.apply(policy));
    for (int i = 0; i < 60; ++i) {
      clock->advance(Micros{static_cast<std::int64_t>(dice.roll(2'000'000))});
      const test::OwnedRequest owned = test::random_request(dice);
      const Request request = owned.view();
      const auto looked = plain.peek(request);
      const auto checked = plain.check(request);
      Answer answer;
      const auto all = other.check_together(other.rules(), {&request, 1}, {&answer, 1});
      const std::string what =
          "WEIR_SEED=" + std::to_string(seed + round) + '\n' + owned.text() + '\n' + to_yaml(policy);
      ASSERT_EQ(all.has_value(), checked.has_value()) << what;
      ASSERT_EQ(looked.has_value(), checked.has_value()) << what;
      if (!checked) continue;
      ASSERT_EQ(*all, checked->allowed) << what;
      ASSERT_EQ(test::shown(answer), test::shown(*checked)) << what;
      ASSERT_EQ(looked->allowed, checked->allowed) << what;
      ASSERT_EQ(looked->why, checked->why) << what;
      ASSERT_EQ(looked->retry_after, checked->retry_after) << what;
      ASSERT_EQ(looked->rule, checked->rule) << what;
      denied += checked->allowed ? 0 : 1;
      ++requests;
    }
  }
  EXPECT_GT(denied, requests / 100);
  EXPECT_LT(denied, requests);
}

// A reservation may have fewer limits than a check. A client may write its path so that more limits apply. It must get
// a denial then, not an error, since callers may let a request pass after an error.
TEST_F(GateCalls, DenyAReservationWhoseReadingsAskForTooMuch) {
  std::string rules;
  for (const char* const place : {"a", "b"}) {
    for (int i = 0; i < 9; ++i) {
      rules += std::string("- {name: ") + place + std::to_string(i) + ", match: {path: '/" + place +
               "/**'}, per: global, limit: 100/year}\n";
    }
  }
  use_rules(rules);
  EXPECT_TRUE(gate.reserve({.path = "/a/x"}, {.id = "plain"})->answer.allowed);
  const auto denied = gate.reserve({.path = "/a/..%2fb/x"}, {.id = "twice"});
  ASSERT_TRUE(denied) << denied.error().message;
  EXPECT_FALSE(denied->answer.allowed);
  EXPECT_EQ(denied->answer.why, Why::ambiguous_path);
  EXPECT_TRUE(ask({.path = "/a/..%2fb/x"}).allowed) << "a check has room for all of them";
}

// Records the last charge that it previewed.
class PreviewedStore final : public test::WaitingStore {
 public:
  PreviewedStore() : WaitingStore([] {}) {}
  Result<Decision> preview(const Charge& charge, std::int64_t now) override {
    fallback = charge.fallback;
    family = charge.family;
    return WaitingStore::preview(charge, now);
  }
  Fallback fallback = Fallback::local;
  std::uint64_t family = 0;
};

// While Redis is unavailable, a rule with `on_backend_error: closed` denies: a peek must say so, too.
TEST(GatePeek, AsksWithTheFallbackAndTheFamilyOfTheLimit) {
  const auto store = std::make_shared<PreviewedStore>();
  Limiter limiter({.sweeping = Sweeping::by_hand, .shared = store});
  Gate gate(limiter);
  const auto policy = parse_policy("rules: [{name: r, per: user, limit: 5/hour, on_backend_error: closed}]", "w");
  ASSERT_TRUE(policy && gate.apply(*policy));
  ASSERT_TRUE(gate.peek({.user = "42"}));
  EXPECT_EQ(store->fallback, Fallback::closed);
  EXPECT_NE(store->family, 0U);
}

}  // namespace
}  // namespace weir
