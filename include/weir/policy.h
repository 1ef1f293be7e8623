// A policy is what a person writes about who may do how much of what: rules, and how requests are looked at.
//
//   auto policy = weir::parse_policy(text, "weir.yaml");          // YAML or JSON; every error at once, with its place
//   if (!policy) return report(policy.error().message);
//   weir::Gate gate(limiter);                                     // weir/gate.h: asks a limiter by the rules
//   gate.apply(*policy);
//
// Plain values, already checked: names are known, quotas are sound, patterns are in their canonical form. What every
// key of the text means is told in docs/configuration.md, and by policy_schema(). Any thread. Tested by
// tests/policy_text_test.cc, examples_test.cc and the tests of src/policy.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weir/clock.h"
#include "weir/quota.h"
#include "weir/result.h"
#include "weir/verdict.h"

namespace weir {

// What of a request a rule looks at or counts by. The last five need a name: `header:x-org`, `{id}`.
enum class AttributeKind : std::uint8_t {
  user,
  api_key,
  ip,
  tenant,
  plan,
  method,
  host,
  path,
  identity,  // the first of Policy::identity that is known
  header,
  query,
  entry,
  capture,  // a part of the path that the rule's template names
};

// One attribute that keys are made of.
struct Dimension {
  AttributeKind kind = AttributeKind::user;
  std::string name{};         // of a header (in small letters), a query parameter, an entry or a part of a template
  std::uint8_t v4_bits = 32;  // ip: so much of an address is one client
  std::uint8_t v6_bits = 64;
  friend bool operator==(const Dimension&, const Dimension&) = default;
};

// An attribute that must be there, with one of these values. `*` in a value stands for anything; for paths see
// docs/configuration.md; addresses are ranges; API keys are given by their hash.
struct Condition {
  AttributeKind kind = AttributeKind::path;
  std::string name{};
  std::vector<std::string> any_of{};
  friend bool operator==(const Condition&, const Condition&) = default;
};

struct Match {
  std::vector<Condition> all{};                   // in the order of AttributeKind and name
  std::vector<std::string> entries{};             // if any: the request has exactly these entries, in this order
  std::vector<std::vector<Condition>> none_of{};  // each a set of conditions that must not hold together
  bool otherwise = false;                         // only if no enforced rule that names a path applied
  friend bool operator==(const Match&, const Match&) = default;
};

enum class Mode : std::uint8_t { enforce, shadow, off };
using OnBackendError = Fallback;

// What one request takes from the rule: a number, or what a header says, between 1 and `max`.
struct RuleCost {
  std::int64_t permits = 1;  // without the header, or if it is no number
  std::string header{};      // empty: always `permits`
  std::int64_t max = 1'000'000;
  friend bool operator==(const RuleCost&, const RuleCost&) = default;
};

// How much later than the honest wait clients are sent back, so that they do not all come at once.
struct RetryJitter {
  int percent = 0;  // of the wait
  Micros most{0};   // or at most so long
  friend bool operator==(const RetryJitter&, const RetryJitter&) = default;
};

// A quota of a rule, and the text that answers name it by: `100/minute` as it was written.
struct RuleLimit {
  Quota quota{};
  std::string text{};
  friend bool operator==(const RuleLimit&, const RuleLimit&) = default;
};

// What a plan entitles to.
struct PlanTier {
  std::string name{};
  std::vector<RuleLimit> limits{};  // all hold; from the shortest period to the longest
  bool unlimited = false;           // then there are none
  friend bool operator==(const PlanTier&, const PlanTier&) = default;
};

// The plans that there are, and the database that says who is on which; without one each request says it itself.
struct PlanPolicy {
  std::string source{};    // sqlite:plans.db, postgresql://…
  std::string query{};     // over tables of the user's own; empty: over Weir's
  std::string fallback{};  // the tier of whoever has none, `default` in the text
  std::vector<PlanTier> tiers{};
  int subjects = 100'000;      // that are remembered
  Micros refresh{60'000'000};  // so often they are asked about again, told of a change or not
  Micros wait{5'000};          // the longest that a check waits for the database
  friend bool operator==(const PlanPolicy&, const PlanPolicy&) = default;
};

// Where it stands in the text; from 1. No part of what it means.
struct Position {
  std::int32_t line = 0;
  std::int32_t column = 0;
  friend bool operator==(const Position&, const Position&) { return true; }
};

struct Rule {
  std::string name{};
  Match match{};
  std::vector<Dimension> per{};               // empty: one count for all, `global`
  std::vector<RuleLimit> limits{};            // all hold; from the shortest period to the longest
  bool unlimited = false;                     // then there are no limits: who matches is held by bans only
  bool by_plan = false;                       // then the limits are those of its subject's plan
  std::optional<Algorithm> plan_algorithm{};  // that those are counted by
  std::vector<PlanTier> tiers{};              // of Policy::plans, for a rule by plan; counted by its algorithm
  RuleCost cost{};
  Mode mode = Mode::enforce;
  int percent = 100;  // of an enforced rule's keys; the others are in shadow
  OnBackendError on_backend_error = OnBackendError::local;
  bool required = false;      // a request without the attributes of `per` is denied
  bool count_denied = false;  // a denied request is charged, too, at most to full
  bool phase_by_key = false;  // fixed windows of different keys begin at different times
  RetryJitter retry_jitter{};
  std::string owner{};
  std::string reason{};
  std::optional<Micros> expires_at{};  // since the epoch; from then on as if it were off
  bool by_hand = false;  // made while a server ran, as bans are; no text says so. Metrics count all such as one
  Position at{};
  friend bool operator==(const Rule&, const Rule&) = default;
};

// Which fields tell an HTTP client about its limits; RateLimit has had several forms on its way to a standard.
enum class RateLimitFields : std::uint8_t {
  none,
  draft_03,  // RateLimit-Limit: 100, 100;w=60, -Remaining, -Reset in seconds
  draft_06,  // the same, with the windows in RateLimit-Policy
  draft_07,  // RateLimit: limit=100, remaining=50, reset=5
  draft_11,  // RateLimit: "rule";r=50;t=5, and RateLimit-Policy; the form since -08
};

// Which limits the header fields and a denial name: the one that denies, or is tightest; or all that apply.
enum class ShownLimits : std::uint8_t { binding, all };

// How the doors word what the rules decide.
struct AnswerStyle {
  bool x_ratelimit = true;  // X-RateLimit-Limit, -Remaining and -Reset, a Unix time
  RateLimitFields rate_limit = RateLimitFields::draft_11;
  bool retry_after = true;     // of a denial
  int deny_status = 429;       // what forward-auth answers; nginx understands 401 and 403 only
  Micros hold_max{5'000'000};  // so long forward-auth holds an answer back until a leaky bucket's turn; 0: never
  ShownLimits limits = ShownLimits::binding;  // a client learns no rule but the one that holds it
  friend bool operator==(const AnswerStyle&, const AnswerStyle&) = default;
};

inline constexpr int kMaxChangeOff = 0;

// The files of Envoy's reference rate limit service, which hold its descriptors beside the rules.
struct EnvoyImport {
  std::string path{};  // a folder, or one file, as it was written; empty: none
  Algorithm algorithm = Algorithm::fixed_window;
  bool count_denied = false;  // a denied request is charged, too, at most to full
  friend bool operator==(const EnvoyImport&, const EnvoyImport&) = default;
};

struct Policy {
  std::vector<Dimension> identity{{AttributeKind::user}, {AttributeKind::api_key}, {AttributeKind::ip}};
  std::vector<std::string> trusted_proxies{};  // ranges
  std::string client_ip_header = "x-forwarded-for";
  int trusted_hops = 0;             // 0: walk back to the first that is not trusted
  std::vector<std::string> skip{};  // path patterns that no rule sees
  bool skip_preflights = true;
  bool path_case_matters = false;
  std::vector<std::string> templates{};  // what `per: path` counts by in rules that name no path
  int max_change = 10;                   // the largest factor by which a reload may lower a limit; kMaxChangeOff
  AnswerStyle answers{};
  PlanPolicy plans{};
  EnvoyImport envoy{};  // read by servers only
  std::string store{};  // the same, when they start: where counts are kept; empty: in memory, or as a flag says
  std::vector<Rule> rules{};
  friend bool operator==(const Policy&, const Policy&) = default;
};

inline constexpr std::size_t kPolicyBytesMax = std::size_t{1} << 20;
inline constexpr std::size_t kRulesMax = 20'000;

// parse_policy()
//
// `name` is what errors call the text: weir.yaml:3:14. Every error is a line of the message, in the order of the text.
Result<Policy> parse_policy(std::string_view text, std::string_view name) noexcept;

// to_yaml()
//
// A text that parses to the same policy, unless it is longer than parse_policy() takes: it may be longer than the text
// that the policy was read from.
std::string to_yaml(const Policy& policy);

// policy_schema()
//
// The JSON Schema (draft 2020-12) of the text, made from the table that the parser reads by.
std::string policy_schema();

// policy_keys()
//
// Every key that a text may have, by where it stands, in the order of that table; for man pages.
struct PolicyKey {
  enum class Place { config, rule, match, answers, plans };
  Place place = Place::config;
  std::string_view name{}, about{};
};
std::vector<PolicyKey> policy_keys();

// review()
//
// What is probably not meant, a line each, with its place in the text called `name`: rules that can never match or
// never bind, that have expired, proxies that anybody may claim to be.
std::vector<std::string> review(const Policy& policy, std::string_view name, Micros now);

// What applying a policy would change.
struct PolicyChanges {
  std::vector<std::string> lines{};    // for people: what is added, gone, changed, and what starts to count anew
  std::vector<std::string> refused{};  // what goes beyond Policy::max_change of the one in force
};
PolicyChanges compare(const Policy& in_force, const Policy& next);

std::string to_string(const Dimension& dimension);

}  // namespace weir
