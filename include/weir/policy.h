// A policy is a config in memory: the rules, and how servers read requests.
//
//   auto policy = weir::parse_policy(text, "weir.yaml");          // YAML or JSON; every error at once, with its place
//   if (!policy) return report(policy.error().message);
//   weir::Gate gate(limiter);                                     // weir/gate.h: applies the rules
//   gate.apply(*policy);
//
// Plain values, already checked: names are known, quotas are sound, patterns are in their canonical form.
// docs/configuration.md and policy_schema() describe every key of the text. Any thread. Tested by
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

// The attributes of a request that a rule matches or counts by. The last five need a name: `header:x-org`, `{id}`.
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
  capture,  // a part of the path, named by the rule's template
};

// One attribute of a key.
struct Dimension {
  AttributeKind kind = AttributeKind::user;
  std::string name{};         // of a header (lower case), a query parameter, an entry or a part of a template
  std::uint8_t v4_bits = 32;  // ip: a prefix of this length is one client
  std::uint8_t v6_bits = 64;
  friend bool operator==(const Dimension&, const Dimension&) = default;
};

// An attribute that must be present with one of these values. `*` in a value matches anything; see
// docs/configuration.md for paths. Addresses are ranges. API keys are given by their hash.
struct Condition {
  AttributeKind kind = AttributeKind::path;
  std::string name{};
  std::vector<std::string> any_of{};
  friend bool operator==(const Condition&, const Condition&) = default;
};

struct Match {
  std::vector<Condition> all{};                   // in the order of AttributeKind and name
  std::vector<std::string> entries{};             // if not empty: the request has exactly these entries, in this order
  std::vector<std::vector<Condition>> none_of{};  // sets of conditions; the rule does not apply if all of a set are met
  bool otherwise = false;                         // applies only if no enforced rule that names a path does
  friend bool operator==(const Match&, const Match&) = default;
};

enum class Mode : std::uint8_t { enforce, shadow, off };
using OnBackendError = Fallback;

// What one request costs under the rule: a fixed number, or the value of a header, between 1 and `max`.
struct RuleCost {
  std::int64_t permits = 1;  // without the header, or if it is not a number
  std::string header{};      // empty: always `permits`
  std::int64_t max = 1'000'000;
  friend bool operator==(const RuleCost&, const RuleCost&) = default;
};

// An extra delay in retry_after, different for each client, so that clients do not all retry at once.
struct RetryJitter {
  int percent = 0;  // at most this part of the wait
  Micros most{0};   // or at most this time; used if percent is 0
  friend bool operator==(const RetryJitter&, const RetryJitter&) = default;
};

// A quota of a rule, and its name in responses: `100/minute` as it was written.
struct RuleLimit {
  Quota quota{};
  std::string text{};
  friend bool operator==(const RuleLimit&, const RuleLimit&) = default;
};

// A plan and its limits.
struct PlanTier {
  std::string name{};
  std::vector<RuleLimit> limits{};  // all apply; from the shortest period to the longest
  bool unlimited = false;           // then there are no limits
  friend bool operator==(const PlanTier&, const PlanTier&) = default;
};

// The plans, and the database that assigns them to subjects. Without a database, each request names its plan.
struct PlanPolicy {
  std::string source{};    // sqlite:plans.db, postgresql://…
  std::string query{};     // over tables of your own; empty: over Weir's
  std::string fallback{};  // the plan of a subject that has none, `default` in the text
  std::vector<PlanTier> tiers{};
  int subjects = 100'000;      // to remember at most
  Micros refresh{60'000'000};  // how often each is looked up again, even without a notification
  Micros wait{5'000};          // the longest that a check waits for the database
  friend bool operator==(const PlanPolicy&, const PlanPolicy&) = default;
};

// A place in the text, counted from 1. Not part of the policy's meaning, so all positions compare equal.
struct Position {
  std::int32_t line = 0;
  std::int32_t column = 0;
  friend bool operator==(const Position&, const Position&) { return true; }
};

struct Rule {
  std::string name{};
  Match match{};
  std::vector<Dimension> per{};               // empty: one count for all requests, `global`
  std::vector<RuleLimit> limits{};            // all apply; from the shortest period to the longest
  bool unlimited = false;                     // then there are no limits: only bans apply to requests that match
  bool by_plan = false;                       // then the limits are those of the subject's plan
  std::optional<Algorithm> plan_algorithm{};  // the algorithm of those limits
  std::vector<PlanTier> tiers{};              // the plans and their limits, if by_plan, parsed with plan_algorithm
  RuleCost cost{};
  Mode mode = Mode::enforce;
  int percent = 100;  // share of keys that an enforced rule enforces; the others are in shadow mode
  OnBackendError on_backend_error = OnBackendError::local;
  bool required = false;      // a request without the attributes of `per` is denied
  bool count_denied = false;  // a denied request is charged, too, at most to full
  bool phase_by_key = false;  // fixed windows of different keys begin at different times
  RetryJitter retry_jitter{};
  std::string owner{};
  std::string reason{};
  std::optional<Micros> expires_at{};  // since the epoch; from then on as if it were off
  bool by_hand = false;  // a runtime change, such as a ban; never from a config. Metrics add up all such rules
  Position at{};
  friend bool operator==(const Rule&, const Rule&) = default;
};

// The header fields that inform an HTTP client of its limits. The drafts of RateLimit differ.
enum class RateLimitFields : std::uint8_t {
  none,
  draft_03,  // RateLimit-Limit: 100, 100;w=60, -Remaining, -Reset in seconds
  draft_06,  // the same, with the windows in RateLimit-Policy
  draft_07,  // RateLimit: limit=100, remaining=50, reset=5
  draft_11,  // RateLimit: "rule";r=50;t=5, and RateLimit-Policy; the form since -08
};

// Which limits the header fields and a denial name: the binding one, or all that apply.
enum class ShownLimits : std::uint8_t { binding, all };

// How listeners word the decisions of the rules.
struct AnswerStyle {
  bool x_ratelimit = true;  // X-RateLimit-Limit, -Remaining and -Reset, a Unix time
  RateLimitFields rate_limit = RateLimitFields::draft_11;
  bool retry_after = true;                    // sent with a denial
  int deny_status = 429;                      // forward-auth's status for a denial; nginx accepts only 401 and 403
  Micros hold_max{5'000'000};                 // the longest that forward-auth delays for a leaky bucket; 0: never
  ShownLimits limits = ShownLimits::binding;  // binding: a client learns of no rule but the one that limits it
  friend bool operator==(const AnswerStyle&, const AnswerStyle&) = default;
};

inline constexpr int kMaxChangeOff = 0;

// The config files of Envoy's reference rate limit service: limits of its descriptors, which apply in addition to the
// rules.
struct EnvoyImport {
  std::string path{};  // a folder or one file, as written; empty: none
  Algorithm algorithm = Algorithm::fixed_window;
  bool count_denied = false;  // a denied request is charged, too, at most to full
  friend bool operator==(const EnvoyImport&, const EnvoyImport&) = default;
};

struct Policy {
  std::vector<Dimension> identity{{AttributeKind::user}, {AttributeKind::api_key}, {AttributeKind::ip}};
  std::vector<std::string> trusted_proxies{};  // ranges
  std::string client_ip_header = "x-forwarded-for";
  int trusted_hops = 0;             // 0: walk back to the first untrusted address
  std::vector<std::string> skip{};  // path patterns that no rule applies to
  bool skip_preflights = true;
  bool path_case_matters = false;
  std::vector<std::string> templates{};  // what `per: path` counts by in rules that name no path
  int max_change = 10;                   // the largest factor by which a reload may lower a limit; kMaxChangeOff
  AnswerStyle answers{};
  PlanPolicy plans{};
  EnvoyImport envoy{};  // only servers read it
  std::string store{};  // only servers read it, at startup: where the state is; empty: memory, or as --store says
  std::vector<Rule> rules{};
  friend bool operator==(const Policy&, const Policy&) = default;
};

inline constexpr std::size_t kPolicyBytesMax = std::size_t{1} << 20;
inline constexpr std::size_t kRulesMax = 20'000;

// parse_policy()
//
// `name` is the text's name in errors: weir.yaml:3:14. The message has one line per error, in the order of the text.
Result<Policy> parse_policy(std::string_view text, std::string_view name) noexcept;

// to_yaml()
//
// Returns a text that parses to the same policy, unless it is longer than parse_policy() accepts: it may be longer
// than the text that the policy was parsed from.
std::string to_yaml(const Policy& policy);

// policy_schema()
//
// The JSON Schema (draft 2020-12) of the text, made from the parser's own table of keys.
std::string policy_schema();

// policy_keys()
//
// Every key that a text may have, by its place, in the order of the parser's table; for man pages. A key inside a map
// has both names: `cost.header`. A key has either a `default_value` as YAML, or says in `if_absent` what applies
// without the key. Each line of `examples` is a value as YAML.
struct PolicyKey {
  enum class Place { config, rule, match, answers, plans };
  Place place = Place::config;
  std::string name{};
  std::string_view about{}, type{}, default_value{}, if_absent{}, examples{};
};
std::vector<PolicyKey> policy_keys();

// policy_reference()
//
// The page docs/configuration-reference.md: every key with its type, default, meaning and examples, as Markdown.
std::string policy_reference();

// review()
//
// Returns warnings, one line each with its place in the text called `name`: rules that can never match or never deny,
// rules that have expired, proxies that any client can claim to be.
std::vector<std::string> review(const Policy& policy, std::string_view name, Micros now);

// What applying a policy would change.
struct PolicyChanges {
  std::vector<std::string> lines{};    // for people: what is added, removed or changed, and which counts start at zero
  std::vector<std::string> refused{};  // changes beyond Policy::max_change of the policy in effect
};
PolicyChanges compare(const Policy& in_force, const Policy& next);

std::string to_string(const Dimension& dimension);

}  // namespace weir
