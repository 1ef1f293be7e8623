// What rules mean: which requests they apply to, what is counted together, which rule denies, and what a denial costs.
// Every promise of docs/configuration.md about rules is an assertion here.
#include <gtest/gtest.h>

#include <chrono>
#include <set>
#include <string>

#include "gate_fixture.h"

namespace weir {
namespace {

using namespace std::chrono_literals;
using Gates = test::GateTest;

TEST_F(Gates, LetEveryRequestPassUntilThereIsAPolicy) {
  const Answer answer = ask({.user = "42", .path = "/api"});
  EXPECT_TRUE(answer.allowed);
  EXPECT_EQ(answer.why, Why::no_rule);
}

TEST_F(Gates, NameTheRuleAndTheWindowThatDenied) {
  use_rules("- {name: steps, per: user, limits: [10/second, 100/minute, 1000/hour]}");
  EXPECT_EQ(passed(11, {.user = "42"}), 10);
  EXPECT_EQ(binding(ask({.user = "42"})), "steps: 10/second");
  for (int second = 1; second < 12; ++second) {
    go_on(2s);
    passed(10, {.user = "42"});
  }
  const Answer answer = ask({.user = "42"});
  EXPECT_FALSE(answer.allowed);
  EXPECT_EQ(answer.why, Why::limited);
  EXPECT_EQ(answer.rule, "steps");
  EXPECT_EQ(binding(answer), "steps: 100/minute");
  EXPECT_EQ(answer.limits.size(), 3U);
  EXPECT_TRUE(ask({.user = "43"}).allowed);
}

TEST_F(Gates, ReturnTheLongestWaitOfTheLimitsThatDeny) {
  use_rules(
      "- {name: short, per: user, limit: 1/second, algorithm: fixed_window}\n"
      "- {name: long, per: user, limit: 1/hour, algorithm: fixed_window}\n");
  EXPECT_TRUE(ask({.user = "42"}).allowed);
  const Answer answer = ask({.user = "42"});
  EXPECT_EQ(binding(answer), "long: 1/hour");
  EXPECT_EQ(answer.retry_after, Micros{1h});
  EXPECT_EQ(answer.limits[0].decision.retry_after, Micros{1s});
}

// F40: a request that one of several rules denies is charged to none.
TEST_F(Gates, ChargeNothingForADeniedRequest) {
  use_rules(
      "- {name: wide, per: ip, limit: 100/hour, algorithm: token_bucket}\n"
      "- {name: log, per: ip, limit: 100/hour, algorithm: sliding_log}\n"
      "- {name: narrow, per: user, limit: 3/hour, algorithm: fixed_window}\n");
  const Request request{.user = "42", .ip = "192.0.2.1"};
  EXPECT_EQ(passed(50, request), 3);
  const Answer other = ask({.user = "43", .ip = "192.0.2.1"});
  EXPECT_TRUE(other.allowed);
  EXPECT_EQ(other.limits[0].decision.remaining, 96);
  EXPECT_EQ(other.limits[1].decision.remaining, 96);
}

TEST_F(Gates, CountDeniedRequestsWhereARuleSaysSo) {
  use_rules(
      "- {name: login, match: {path: /login}, per: ip, limit: 5/5min, algorithm: sliding_log, count_denied: true}\n"
      "- {name: user, per: user, limit: 1/hour, algorithm: fixed_window}\n");
  const Request attempt{.user = "42", .ip = "192.0.2.1", .path = "/login"};
  EXPECT_EQ(passed(4, attempt), 1);  // the other three are denied by `user`, and charged to `login`
  const Answer other = ask({.user = "43", .ip = "192.0.2.1", .path = "/login"});
  EXPECT_TRUE(other.allowed);
  EXPECT_EQ(other.limits[0].decision.remaining, 0);
  EXPECT_FALSE(ask({.user = "44", .ip = "192.0.2.1", .path = "/login"}).allowed);
  EXPECT_EQ(binding(ask({.user = "44", .ip = "192.0.2.1", .path = "/login"})), "login: 5/5min");
}

TEST_F(Gates, DoNotApplyARuleWhoseAttributeIsAbsent) {
  use_rules("- {name: user, per: user, limit: 1/hour}");
  EXPECT_EQ(passed(5, {.ip = "192.0.2.1"}), 5);
  EXPECT_EQ(ask({.ip = "192.0.2.1"}).why, Why::no_rule);
}

TEST_F(Gates, DenyARequestThatLacksARequiredAttribute) {
  const std::string rules =
      "- {name: tenant, per: [tenant, user], limit: 9/hour, required: true}\n"
      "- {name: address, per: ip, limit: 9/hour}\n"
      "- {name: strict, per: ip, limit: 9/hour, count_denied: true}\n";
  use_rules(rules);
  const Answer answer = ask({.ip = "192.0.2.1", .tenant = "acme"});
  EXPECT_FALSE(answer.allowed);
  EXPECT_EQ(answer.why, Why::missing);
  EXPECT_EQ(answer.rule, "tenant");
  EXPECT_EQ(answer.missing, "user");
  use_rules("- {name: org, per: header:x-org, limit: 1/s, required: true}");
  EXPECT_EQ(ask({}).missing, "header:x-org");
  use_rules(rules);
  const Answer whole = ask({.user = "42", .ip = "192.0.2.1", .tenant = "acme"});
  EXPECT_TRUE(whole.allowed);
  EXPECT_EQ(whole.limits[1].decision.remaining, 8) << "a denied request was charged";
  EXPECT_EQ(whole.limits[2].decision.remaining, 7) << "a denied request was not counted";
}

TEST_F(Gates, TakeTheFirstIdentityThatIsPresent) {
  use_rules("- {name: who, per: identity, limit: 1/hour}");
  EXPECT_EQ(passed(2, {.user = "7", .api_key = "7", .ip = "192.0.2.7"}), 1);
  EXPECT_EQ(passed(2, {.api_key = "7", .ip = "192.0.2.7"}), 1) << "user 7 is not API key 7";
  EXPECT_EQ(passed(2, {.ip = "192.0.2.7"}), 1);
  EXPECT_EQ(passed(1, {.user = "7", .ip = "198.51.100.1"}), 0);
  EXPECT_EQ(passed(2, {}), 2) << "without an identity the rule does not apply";
}

TEST_F(Gates, TakeAnotherOrderOfIdentities) {
  use("identity: [header:x-org, ip]\nrules: [{name: who, per: identity, limit: 1/hour}]");
  const Attribute org[] = {{"X-Org", "acme"}};
  EXPECT_EQ(passed(2, {.user = "1", .ip = "192.0.2.1", .headers = org}), 1);
  EXPECT_EQ(passed(1, {.user = "2", .ip = "192.0.2.2", .headers = org}), 0);
  EXPECT_EQ(passed(2, {.user = "3", .ip = "192.0.2.3"}), 1);
}

TEST_F(Gates, GroupAddressesByTheirNetwork) {
  use_rules(
      "- {name: client, per: ip, limit: 2/hour}\n"
      "- {name: network, per: ip/24/48, limit: 3/hour}\n");
  EXPECT_EQ(passed(9, {.ip = "2001:db8:0:1::1"}), 2);
  EXPECT_EQ(passed(9, {.ip = "2001:db8:0:1:ffff::2"}), 0) << "one /64 is one client";
  EXPECT_EQ(passed(9, {.ip = "2001:db8:0:2::1"}), 1) << "one /48 is one network";
  EXPECT_EQ(passed(9, {.ip = "192.0.2.1"}), 2);
  EXPECT_EQ(passed(9, {.ip = "::ffff:192.0.2.1"}), 0) << "every spelling of an address is one client";
  EXPECT_EQ(passed(9, {.ip = "192.0.2.77"}), 1);
  EXPECT_EQ(passed(9, {.ip = "198.51.100.1"}), 2);
}

TEST_F(Gates, BelieveHeadersOfTrustedProxiesOnly) {
  use("trusted_proxies: [10.0.0.0/8]\nrules: [{name: client, per: ip, limit: 1/hour}]");
  for (int i = 0; i < 1000; ++i) {  // other values of the header make no other client
    const std::string spoofed = "203.0.113." + std::to_string(i % 256);
    const Attribute headers[] = {{"X-Forwarded-For", spoofed}};
    EXPECT_EQ(ask({.ip = "198.51.100.9", .headers = headers}).allowed, i == 0);
  }
  const Attribute behind[] = {{"X-Forwarded-For", "6.6.6.6, 203.0.113.1"}};
  EXPECT_EQ(passed(2, {.ip = "10.0.0.1", .headers = behind}), 1);
  const Attribute lied[] = {{"X-Forwarded-For", "7.7.7.7, 203.0.113.1"}};
  EXPECT_EQ(passed(1, {.ip = "10.0.0.2", .headers = lied}), 0) << "what the client wrote to the left counts";
}

TEST_F(Gates, FoldATemplateIntoOneKey) {
  use_rules("- {name: orders, match: {path: '/users/{id}/orders'}, per: path, limit: 3/hour}");
  EXPECT_EQ(passed(2, {.path = "/users/1/orders"}), 2);
  EXPECT_EQ(passed(2, {.path = "/users/2/orders"}), 1);
}

TEST_F(Gates, CountApartByAPartOfThePath) {
  use_rules("- {name: repo, match: {path: '/repos/{owner}/{repo}/**'}, per: ['{owner}', '{repo}'], limit: 1/hour}");
  EXPECT_EQ(passed(2, {.path = "/repos/a/b/pulls"}), 1);
  EXPECT_EQ(passed(2, {.path = "/repos/a/b/issues/7"}), 0);
  EXPECT_EQ(passed(2, {.path = "/repos/a/c/pulls"}), 1);
  EXPECT_EQ(passed(2, {.path = "/repos/b/b/pulls"}), 1);
}

TEST_F(Gates, KeepPartsOfAKeyApart) {
  use_rules("- {name: both, per: [tenant, user], limit: 1/hour}");
  EXPECT_TRUE(ask({.user = "c", .tenant = "ab"}).allowed);
  EXPECT_TRUE(ask({.user = "bc", .tenant = "a"}).allowed) << "joined without a separator they would be equal";
  EXPECT_FALSE(ask({.user = "c", .tenant = "ab"}).allowed);
  const std::string long_one(700, 'x'), long_two = long_one + 'y';
  EXPECT_TRUE(ask({.user = long_one, .tenant = "t"}).allowed);
  EXPECT_TRUE(ask({.user = long_two, .tenant = "t"}).allowed);
  EXPECT_FALSE(ask({.user = long_one, .tenant = "t"}).allowed);
}

TEST_F(Gates, ApplyOtherwiseWhereNoRuleThatNamesAPathDoes) {
  use_rules(
      "- {name: search, match: {path: /search}, per: ip, limit: 5/hour}\n"
      "- {name: everyone, per: global, limit: 1000/hour}\n"
      "- {name: rest, match: otherwise, per: ip, limit: 2/hour}\n");
  EXPECT_EQ(passed(9, {.ip = "192.0.2.1", .path = "/search"}), 5);
  EXPECT_EQ(passed(9, {.ip = "192.0.2.1", .path = "/other"}), 2);
  EXPECT_EQ(passed(9, {.ip = "192.0.2.2"}), 2) << "without a path, too";
}

TEST_F(Gates, ShareOneKeyAmongPathsThatNoRuleNames) {
  use_rules("- {name: rest, match: otherwise, per: [ip, path], limit: 3/hour}");
  int count = 0;
  for (int i = 0; i < 100; ++i) {
    count += ask({.ip = "192.0.2.1", .path = "/made/up/" + std::to_string(i)}).allowed ? 1 : 0;
  }
  EXPECT_EQ(count, 3) << "random paths had their own limits";
}

TEST_F(Gates, CountOtherwiseByTheTemplatesThatSayMore) {
  use("templates: ['/users/{id}', /orders/**]\n"
      "rules: [{name: rest, match: otherwise, per: [ip, path], limit: 1/hour}]");
  EXPECT_EQ(passed(1, {.ip = "192.0.2.1", .path = "/users/1"}), 1);
  EXPECT_EQ(passed(1, {.ip = "192.0.2.1", .path = "/users/2"}), 0);
  EXPECT_EQ(passed(1, {.ip = "192.0.2.1", .path = "/orders/1/items"}), 1);
  EXPECT_EQ(passed(1, {.ip = "192.0.2.1", .path = "/x"}), 1);
  EXPECT_EQ(passed(1, {.ip = "192.0.2.1", .path = "/y"}), 0);
}

// A rule applies to every spelling of its path, so that no spelling bypasses it.
TEST_F(Gates, MeetEverySpellingOfAPath) {
  use_rules("- {name: login, match: {path: /api/login}, per: global, limit: 0/second}");
  for (const char* path : {"/api/login", "/api/login/", "/api//login", "//api/login", "/api/./login", "/api/x/../login",
                           "/API/Login", "/api%2flogin", "/api/%6cogin", "/api/login?x=1", "/api/login#top",
                           "/api\\login", "/api/login;v=1", "/api/..;/api/login", "http://example.com/api/login",
                           "/%2e/api/login", "/api/login/.", "/../api/login", "/api%252flogin"}) {
    EXPECT_FALSE(ask({.path = path}).allowed) << path;
  }
  for (const char* path : {"/api/login2", "/api", "/api/login/x"}) {
    EXPECT_TRUE(ask({.path = path}).allowed) << path;
  }
}

// A path exempts a request only if every server reads it the same way.
TEST_F(Gates, LetNothingPassByAPathThatCanBeReadInTwoWays) {
  use("skip: [/health]\nrules:\n"
      "- {name: ban, per: global, limit: 0/second, match: {not: {path: /open}}}\n"
      "- {name: free, match: {path: /free}, limit: unlimited}\n"
      "- {name: held, match: {path: /**}, per: global, limit: 0/hour}\n");
  EXPECT_TRUE(ask({.path = "/health"}).allowed);
  EXPECT_TRUE(ask({.path = "/HEALTH//?x=/.."}).allowed);
  EXPECT_FALSE(ask({.path = "//health"}).allowed) << "which is / on the host `health` to some";
  for (const char* to : {"health", "open", "free"}) {
    for (const char* way : {"/x/..%2f", "/x\\..\\", "/x/../", "/%2e/", "/a;b/../", "/x%5c..%5c", "/%2F", "/..;/"}) {
      EXPECT_FALSE(ask({.path = std::string(way) + to}).allowed) << way << to;
    }
  }
}

TEST_F(Gates, CountByTheFirstValueThatIsNotEmpty) {
  use_rules("- {name: q, match: {query: {id: '*'}}, per: query:id, limit: 1/hour}");
  EXPECT_EQ(passed(2, {.path = "/a?id=&id=7"}), 1) << "an empty value hid the other";
  const Attribute headers[] = {{"x-org", ""}, {"X-Org", "acme"}};
  use_rules("- {name: h, per: header:x-org, limit: 1/hour}");
  EXPECT_EQ(passed(2, {.headers = headers}), 1);
}

TEST_F(Gates, CheckAPolicyMadeByHandTheSameWay) {
  const RuleLimit limit{.quota = parse_quota("1/hour").value()};
  Rule sound{.name = "a", .per = {{AttributeKind::user}}, .limits = {limit}};
  ASSERT_TRUE(gate.apply({.rules = {sound}}));
  EXPECT_EQ(passed(2, {.user = "42"}), 1);
  EXPECT_EQ(binding(ask({.user = "42"})), "a: 1/h");
  const auto refused = [&](Rule rule, Policy policy = {}) {
    policy.rules = {std::move(rule)};
    const auto applied = gate.apply(policy, Force::yes);
    EXPECT_FALSE(applied);
    EXPECT_TRUE(applied || applied.error().message.starts_with("the policy:")) << applied.error().message;
  };
  Rule bad = sound;
  bad.per = {{AttributeKind::capture, "id"}};
  refused(bad);
  bad = sound;
  bad.match.all = {{AttributeKind::api_key, "", {"sha256:ab"}}};
  refused(bad);
  bad.match.all = {{AttributeKind::ip, "", {"10.0.0.1/8"}}};
  refused(bad);
  bad = sound;
  bad.name = "a b\r\n";
  refused(bad);
  bad = sound;
  bad.limits[0].text = "1/hour\r\nX-Evil: 1";
  refused(bad);
  for (const int percent : {-1, 101, 1'000}) {
    bad = sound;
    bad.percent = percent;
    refused(bad);
    bad = sound;
    bad.retry_jitter.percent = percent;
    refused(bad);
  }
  refused(sound, {.identity = {{AttributeKind::identity}}});
  EXPECT_FALSE(gate.apply({}, Force::yes)) << "no rules at all";
  EXPECT_FALSE(gate.apply({.rules = {sound, sound}}, Force::yes)) << "two of one name";
  EXPECT_EQ(passed(1, {.user = "42"}), 0) << "the previous rules stay in effect";
}

TEST_F(Gates, KeepTheCaseOfPathsIfAsked) {
  use("path_case: kept\nrules: [{name: login, match: {path: /Login}, limit: 0/second}]");
  EXPECT_FALSE(ask({.path = "/Login"}).allowed);
  EXPECT_TRUE(ask({.path = "/login"}).allowed);
}

struct MatchCase {
  const char* match;
  Request hit, miss;
};

TEST_F(Gates, MatchOnEveryAttribute) {
  static const Attribute org[] = {{"X-Org", "acme"}, {"X-Other", "1"}};
  static const Attribute orgs[] = {{"x-org", "other"}, {"X-ORG", "acme"}};
  static const Attribute entry[] = {{"remote", "acme"}};
  const MatchCase cases[] = {
      {"{user: [a, b]}", {.user = "b"}, {.user = "c"}},
      {"{user: 'svc-*'}", {.user = "svc-1"}, {.user = "user-1"}},
      {"{user: '*'}", {.user = "x"}, {.ip = "192.0.2.1"}},
      {"{tenant: acme}", {.tenant = "acme"}, {.tenant = "Acme"}},
      {"{plan: free}", {.plan = "free"}, {.plan = "pro"}},
      {"{method: [post, PUT]}", {.method = "Post"}, {.method = "GET"}},
      {"{host: '*.Example.com'}", {.host = "API.example.COM:8443"}, {.host = "example.org"}},
      {"{header: {X-Org: acme}}", {.headers = org}, {.headers = entry}},
      {"{header: {x-org: acme}}", {.headers = orgs}, {}},
      {"{query: {q: a b}}", {.path = "/s?p=1&q=a+b"}, {.path = "/s?q=ab"}},
      {"{query: {q: x}}", {.path = "/s?q=1&q=x"}, {.path = "/s?Q=x"}},
      {"{entry: {remote: acme}}", {.entries = entry}, {.entries = org}},
      {"{entries: [X-Org, X-Other]}", {.entries = org}, {.entries = std::span(org).first(1)}},
      {"{entries: remote}", {.entries = entry}, {.entries = org}},
      {"{ip: [10.0.0.0/8, '2001:db8::/32']}", {.ip = "10.1.2.3"}, {.ip = "11.0.0.1"}},
      {"{ip: '2001:db8::/32'}", {.ip = "2001:db8::9"}, {.ip = "192.0.2.1"}},
      {"{path: /a, method: GET}", {.method = "GET", .path = "/a"}, {.method = "POST", .path = "/a"}},
      {"{path: /a/*}", {.path = "/a/b"}, {.path = "/a/b/c"}},
      {"{path: /a/**}", {.path = "/a/b/c"}, {.path = "/ab"}},
      {"{not: {tenant: acme}}", {.tenant = "x"}, {.tenant = "acme"}},
      {"{path: /a/**, not: [{path: /a/open}, {method: GET, user: root}]}",
       {.user = "root", .method = "PUT", .path = "/a/b"},
       {.user = "root", .method = "GET", .path = "/a/b"}},
      {"{api_key: 'sha256:2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b'}",
       {.api_key = "secret"},
       {.api_key = "other"}},
  };
  for (const MatchCase& one : cases) {
    use_rules(std::string("- {name: ban, match: ") + one.match + ", limit: 0/second}");
    EXPECT_FALSE(ask(one.hit).allowed) << one.match;
    EXPECT_TRUE(ask(one.miss).allowed) << one.match;
  }
}

TEST_F(Gates, BanWithZeroAndExemptWithUnlimited) {
  use_rules(
      "- {name: office, match: {ip: 192.0.2.0/24}, limit: unlimited}\n"
      "- {name: banned, match: {user: mallory}, limit: 0/second}\n"
      "- {name: all, per: ip, limit: 1/hour}\n");
  EXPECT_EQ(passed(50, {.user = "alice", .ip = "192.0.2.9"}), 50);
  EXPECT_EQ(ask({.ip = "192.0.2.9"}).why, Why::exempt);
  EXPECT_EQ(ask({.ip = "192.0.2.9"}).rule, "office");
  const Answer banned = ask({.user = "mallory", .ip = "192.0.2.9"});
  EXPECT_FALSE(banned.allowed) << "a ban applies to exempt clients, too";
  EXPECT_EQ(binding(banned), "banned: 0/second");
  EXPECT_EQ(banned.retry_after, kNever);
  EXPECT_EQ(passed(5, {.ip = "198.51.100.1"}), 1);
}

TEST_F(Gates, SkipExemptPathsAndPreflights) {
  use("skip: [/health, /static/**]\nrules: [{name: all, per: global, limit: 0/second}]");
  EXPECT_EQ(ask({.path = "/health"}).why, Why::skipped);
  EXPECT_TRUE(ask({.path = "/static/a/b.png"}).allowed);
  EXPECT_TRUE(ask({.method = "OPTIONS", .path = "/api"}).allowed);
  const Attribute preflight[] = {{"Access-Control-Request-Method", "POST"}}, plain[] = {{"Accept", "*/*"}};
  EXPECT_TRUE(ask({.method = "OPTIONS", .path = "/api", .headers = preflight}).allowed);
  EXPECT_FALSE(ask({.method = "OPTIONS", .path = "/api", .headers = plain}).allowed) << "no preflight, but OPTIONS";
  EXPECT_FALSE(ask({.path = "/api"}).allowed);
  use("skip: {paths: [/health], preflights: false}\nrules: [{name: all, per: global, limit: 0/second}]");
  EXPECT_FALSE(ask({.method = "OPTIONS", .path = "/api", .headers = preflight}).allowed);
  EXPECT_TRUE(ask({.path = "/health"}).allowed);
}

TEST_F(Gates, ChargeWhatARequestCosts) {
  const Attribute three[] = {{"X-Cost", "3"}}, huge[] = {{"x-cost", "99999999999999999999"}},
                  none[] = {{"x-cost", "-5"}};
  use_rules("- {name: a, per: user, limit: 100/hour, cost: {header: X-Cost, default: 2, max: 50}}");
  const auto left = [&](const Request& request) { return ask(request).limits[0].decision.remaining; };
  EXPECT_EQ(left({.user = "1", .headers = three}), 97);
  EXPECT_EQ(left({.user = "1"}), 95);
  EXPECT_EQ(left({.user = "1", .headers = none}), 93) << "a client cannot refund by a header";
  EXPECT_EQ(left({.user = "1", .headers = huge}), 43);
  EXPECT_EQ(left({.user = "1", .cost = 0}), 43) << "cost 0 only asks";
  EXPECT_EQ(left({.user = "1", .cost = 2}), 39);
  use_rules("- {name: a, per: user, limit: 100/hour, cost: 10}");
  EXPECT_EQ(left({.user = "1", .cost = 3}), 9);
}

TEST_F(Gates, EnforceForAPartOfTheKeys) {
  use_rules("- {name: canary, per: user, limit: 0/second, mode: 30%}");
  int denied = 0;
  for (int i = 0; i < 10'000; ++i) {
    const std::string user = std::to_string(i);
    const bool first = ask({.user = user}).allowed;
    EXPECT_EQ(first, ask({.user = user}).allowed) << "the same user is treated alike";
    denied += first ? 0 : 1;
  }
  EXPECT_NEAR(denied, 3'000, 250);
}

TEST_F(Gates, LeaveOutWhatIsOffOrHasExpired) {
  use_rules(
      "- {name: off, per: global, limit: 0/second, mode: off}\n"
      "- {name: old, per: global, limit: 0/second, expires_at: '2026-09-21T12:00:10Z', owner: me, reason: incident}\n");
  EXPECT_FALSE(ask({}).allowed);
  go_on(9'999'999us);
  EXPECT_FALSE(ask({}).allowed);
  go_on(1us);
  EXPECT_TRUE(ask({}).allowed);
}

TEST_F(Gates, SendClientsBackAtDifferentTimesButNeverTooEarly) {
  use_rules("- {name: day, per: user, limit: 1/day, algorithm: fixed_window, retry_jitter: 10min}");
  std::set<std::int64_t> waits;
  for (int i = 0; i < 50; ++i) {
    const std::string user = std::to_string(i);
    passed(1, {.user = user});
    const Answer answer = ask({.user = user});
    EXPECT_GE(answer.retry_after, answer.binding_limit()->decision.retry_after);
    EXPECT_LE(answer.retry_after, answer.binding_limit()->decision.retry_after + Micros{10min});
    waits.insert(answer.retry_after.count());
  }
  EXPECT_GT(waits.size(), 40U);
}

TEST_F(Gates, SendClientsOfOneKeyBackAtDifferentTimes) {
  use_rules("- {name: all, per: global, limit: 1/day, algorithm: fixed_window, retry_jitter: 10%}");
  passed(1, {});
  std::set<std::int64_t> waits;
  for (int i = 0; i < 50; ++i) waits.insert(ask({.user = std::to_string(i)}).retry_after.count());
  EXPECT_GT(waits.size(), 40U);
}

TEST_F(Gates, BeginFixedWindowsOfDifferentKeysAtDifferentTimes) {
  use_rules("- {name: hour, per: user, limit: 1/hour, algorithm: fixed_window, phase: key}");
  std::set<std::int64_t> resets;
  for (int i = 0; i < 200; ++i) resets.insert(ask({.user = std::to_string(i)}).limits[0].decision.reset_after.count());
  EXPECT_EQ(resets.size(), 16U);
  EXPECT_LE(*resets.rbegin(), 3'600'000'000);
  EXPECT_EQ(passed(3, {.user = "a"}), 1);
  go_on(1h);
  EXPECT_EQ(passed(3, {.user = "a"}), 1);
}

// F39: a rule in shadow changes nothing but its own counts.
TEST_F(Gates, ChangeNothingByARuleInShadow) {
  const std::string rules =
      "- {name: search, match: {path: /search}, per: ip, limit: 3/hour}\n"
      "- {name: rest, match: otherwise, per: ip, limit: 2/hour, algorithm: token_bucket}\n";
  const std::string shadows =
      "- {name: tight, per: ip, limit: 1/hour, mode: shadow}\n"
      "- {name: path, match: {path: /**}, per: ip, limit: 1/hour, mode: shadow, count_denied: true}\n"
      "- {name: open, match: {path: /**}, limit: unlimited, mode: shadow}\n"
      "- {name: must, per: tenant, limit: 1/hour, mode: shadow, required: true}\n";
  test::GateWorld other_world(clock);
  Gate& other = other_world.gate;
  use_rules(rules);
  ASSERT_TRUE(other.apply(*parse_policy("rules:\n" + shadows + rules, "shadow.yaml")));
  for (int i = 0; i < 200; ++i) {
    const std::string ip = "192.0.2." + std::to_string(i % 7), path = i % 3 == 0 ? "/search" : "/x";
    const Request request{.ip = ip, .path = path};
    const Answer without = ask(request);
    const auto with = other.check(request);
    ASSERT_TRUE(with);
    ASSERT_EQ(without.allowed, with->allowed);
    ASSERT_EQ(without.limits.size(), with->limits.size());
    ASSERT_EQ(without.retry_after, with->retry_after);
    for (std::size_t k = 0; k < without.limits.size(); ++k) {
      ASSERT_EQ(without.limits[k].name, with->limits[k].name);
      ASSERT_EQ(without.limits[k].decision, with->limits[k].decision);
    }
    clock->advance(1s);
  }
  EXPECT_FALSE(other.check({.ip = "203.0.113.1", .path = "/x"})->shadows.empty());
  const auto second = other.check({.ip = "203.0.113.1", .path = "/x"});
  EXPECT_TRUE(second->allowed);
  EXPECT_FALSE(second->shadows[0].decision.allowed) << "the answer has what the rule would have denied";
}

TEST_F(Gates, RefuseWhatCannotBeARequest) {
  use_rules("- {name: all, per: ip, limit: 1/hour}");
  const auto bad_ip = gate.check({.ip = "not an address"});
  ASSERT_FALSE(bad_ip);
  EXPECT_NE(bad_ip.error().message.find("not an address such as"), std::string::npos);
  const std::string path(10'000, '/');
  EXPECT_FALSE(gate.check({.path = path}));
}

TEST_F(Gates, SayWhenARequestMeetsTooManyLimits) {
  std::string rules;
  for (int i = 0; i < 40; ++i) {
    rules += "- {name: r" + std::to_string(i) + ", match: {user: '*'}, per: user, limit: 9/hour}\n";
  }
  use_rules(rules);
  const auto answer = gate.check({.user = "42"});
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::exhausted);
}

TEST_F(Gates, KeepThePlacesOfTheRulesInTheirText) {
  use_rules("# a comment\n- {name: a, per: ip, limit: 1/s}");
  const Position at = gate.policy().rules[0].at;
  EXPECT_EQ(at.line, 3);
  EXPECT_EQ(at.column, 3);
}

TEST_F(Gates, NeverShowAnApiKey) {
  use_rules("- {name: key, per: [api_key], limit: 1/hour}");
  const auto explained = gate.explain({.api_key = "very-secret"});
  ASSERT_TRUE(explained);
  EXPECT_EQ(explained->rules[0].key.find("secret"), std::string::npos);
  EXPECT_NE(explained->rules[0].key.find("sha256:"), std::string::npos);
}

}  // namespace
}  // namespace weir
