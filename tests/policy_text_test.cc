// The text of a policy: printed text reads the same again, JSON means the same as YAML, all errors are reported at once
// with their places, and every bound is exact. Also what review() says about policies.
#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "policy/fields.h"
#include "policy/node.h"
#include "policy_world.h"
#include "sanitized.h"
#include "seed.h"
#include "weir/policy.h"
#include "weir/verdict.h"

namespace weir {
namespace {

using test::Dice;

// Prints a policy as JSON, without code of our own printer.
class JsonPrinter {
 public:
  explicit JsonPrinter(Dice& dice) : gap_(dice.once_in(2) ? "\n\t" : dice.once_in(2) ? " " : "") {}

  std::string print(const Policy& policy) {
    std::vector<std::string> members = {
        member("identity", list(policy.identity, [](const Dimension& d) { return quoted(word(d)); })),
        member("trusted_proxies", texts(policy.trusted_proxies)),
        member("client_ip_header", quoted(policy.client_ip_header)),
        member("trusted_hops", std::to_string(policy.trusted_hops)),
        member("skip", object({member("paths", texts(policy.skip)), flag("preflights", policy.skip_preflights)})),
        member("path_case", policy.path_case_matters ? "\"kept\"" : "\"ignored\""),
        member("templates", texts(policy.templates)),
        member("max_change", policy.max_change == 0 ? "\"off\"" : std::to_string(policy.max_change)),
        member("answers", test::answers_json(policy.answers)),
        member("rules", list(policy.rules, [this](const Rule& rule) { return print(rule); })),
    };
    if (!policy.envoy.path.empty()) {
      members.push_back(member("import", object({member("envoy", quoted(policy.envoy.path)),
                                                 member("algorithm", quoted(to_string(policy.envoy.algorithm))),
                                                 flag("count_denied", policy.envoy.count_denied)})));
    }
    if (!policy.store.empty()) members.push_back(member("store", quoted(policy.store)));
    std::ranges::reverse(members);  // the order of keys says nothing
    return object(members) + gap_;
  }

 private:
  std::string print(const Rule& rule) {
    std::vector<std::string> members = {member("name", quoted(rule.name))};
    if (!(rule.match == Match{})) members.push_back(member("match", print(rule.match)));
    members.push_back(member(
        "per", rule.per.empty() ? "\"global\"" : list(rule.per, [](const Dimension& d) { return quoted(word(d)); })));
    add_limits(rule, members);
    members.push_back(member("cost", print(rule.cost)));
    members.push_back(member("mode", rule.mode == Mode::off      ? "\"off\""
                                     : rule.mode == Mode::shadow ? "\"shadow\""
                                                                 : quoted(std::to_string(rule.percent) + "%")));
    members.push_back(flag("required", rule.required));
    members.push_back(flag("count_denied", rule.count_denied));
    members.push_back(member("phase", rule.phase_by_key ? "\"key\"" : "\"clock\""));
    const RetryJitter& jitter = rule.retry_jitter;
    members.push_back(member("retry_jitter", jitter.most.count() > 0
                                                 ? quoted(std::to_string(jitter.most.count()) + "us")
                                                 : quoted(std::to_string(jitter.percent) + "%")));
    constexpr std::string_view kWords[] = {"local", "open", "closed"};
    members.push_back(member("on_backend_error", quoted(kWords[static_cast<std::size_t>(rule.on_backend_error)])));
    if (!rule.owner.empty()) members.push_back(member("owner", quoted(rule.owner)));
    if (!rule.reason.empty()) members.push_back(member("reason", quoted(rule.reason)));
    if (rule.expires_at) members.push_back(member("expires_at", quoted(utc(*rule.expires_at))));
    return object(members);
  }

  void add_limits(const Rule& rule, std::vector<std::string>& members) {
    if (rule.unlimited) return members.push_back(member("limit", "\"unlimited\""));
    const Algorithm first = rule.limits.front().quota.algorithm;
    const bool is_one =
        std::ranges::all_of(rule.limits, [&](const RuleLimit& l) { return l.quota.algorithm == first; });
    if (is_one) members.push_back(member("algorithm", quoted(to_string(first))));
    members.push_back(member("limits", list(rule.limits, [](const RuleLimit& limit) { return quoted(limit.text); })));
  }

  std::string print(const RuleCost& cost) {
    if (cost.header.empty()) return std::to_string(cost.permits);
    return object({member("default", std::to_string(cost.permits)), member("max", std::to_string(cost.max)),
                   member("header", quoted(cost.header))});
  }

  std::string print(const Match& match) {
    std::vector<std::string> members = conditions(match.all);
    if (match.otherwise) members.push_back(flag("otherwise", true));
    if (!match.entries.empty()) members.push_back(member("entries", texts(match.entries)));
    if (!match.none_of.empty())
      members.push_back(
          member("not", list(match.none_of, [this](const auto& set) { return object(conditions(set)); })));
    return object(members);
  }

  std::vector<std::string> conditions(const std::vector<Condition>& all) {
    std::vector<std::string> members;
    for (const AttributeKind kind : {AttributeKind::entry, AttributeKind::query, AttributeKind::header}) {
      std::vector<std::string> named;
      for (const Condition& one : all) {
        if (one.kind == kind) named.push_back(member(one.name, texts(one.any_of)));
      }
      if (!named.empty()) members.push_back(member(word({.kind = kind}), object(named)));
    }
    for (const Condition& one : all) {
      if (one.name.empty()) members.push_back(member(word({.kind = one.kind}), texts(one.any_of)));
    }
    return members;
  }

  static std::string word(const Dimension& dimension) {
    constexpr std::string_view kWords[] = {"user", "api_key",  "ip",     "tenant", "plan",  "method", "host",
                                           "path", "identity", "header", "query",  "entry", ""};
    const std::string word(kWords[static_cast<std::size_t>(dimension.kind)]);
    if (dimension.kind == AttributeKind::capture) return '{' + dimension.name + '}';
    const bool is_default = dimension.v4_bits == 32 && dimension.v6_bits == 64;
    if (dimension.kind == AttributeKind::ip && !is_default) {
      return "ip/" + std::to_string(dimension.v4_bits) + '/' + std::to_string(dimension.v6_bits);
    }
    return dimension.name.empty() ? word : word + ':' + dimension.name;
  }

  static std::string utc(Micros time) {
    const std::time_t seconds = time.count() / 1'000'000;
    std::tm parts{};
    gmtime_r(&seconds, &parts);
    char out[32];
    std::strftime(out, sizeof out, "%Y-%m-%d %H:%M:%S+00:00", &parts);
    return out;
  }

  static std::string quoted(std::string_view text) {
    constexpr std::string_view kHex = "0123456789ABCDEF";
    std::string out = "\"";
    for (const char c : text) {
      const auto byte = static_cast<unsigned char>(c);
      if (byte < 0x20 || byte == 0x7f) {
        out += {'\\', 'u', '0', '0', kHex[byte >> 4], kHex[byte & 15]};
      } else if (c == '"' || c == '\\' || c == '/') {
        out += {'\\', c};
      } else {
        out += c;
      }
    }
    return out + '"';
  }

  std::string member(std::string_view key, std::string_view value) {
    return quoted(key) + ':' + gap_ + std::string(value);
  }
  std::string flag(std::string_view key, bool value) { return member(key, value ? "true" : "false"); }
  std::string texts(const std::vector<std::string>& all) {
    return list(all, [](const std::string& s) { return quoted(s); });
  }

  template <class T, class Print>
  std::string list(const std::vector<T>& all, Print&& one) {
    std::string out = "[";
    for (const T& item : all) out.append(out.size() > 1 ? "," : "").append(gap_).append(one(item));
    return out + gap_ + ']';
  }
  std::string object(const std::vector<std::string>& members) {
    std::string out = "{";
    for (const std::string& item : members) out.append(out.size() > 1 ? "," : "").append(gap_).append(item);
    return out + gap_ + '}';
  }

  const std::string gap_;
};

TEST(PolicyText, PrintsWhatParsesToTheSame) {
  const std::uint64_t seed = test::base_seed();
  for (std::uint64_t i = 0; i < (test::kIsSanitized ? 800 : 4'000); ++i) {
    Dice dice(seed + i);
    const Policy policy = test::random_policy(dice);
    const std::string text = to_yaml(policy);
    const auto again = parse_policy(text, "printed.yaml");
    if (policy.rules.empty()) continue;
    ASSERT_TRUE(again) << "seed " << seed + i << '\n' << again.error().message << '\n' << text;
    ASSERT_EQ(*again, policy) << "seed " << seed + i << '\n' << text << '\n' << to_yaml(*again);
    ASSERT_EQ(to_yaml(*again), text) << "seed " << seed + i;
  }
}

TEST(PolicyText, ReadsJsonAsItReadsYaml) {
  const std::uint64_t seed = test::base_seed();
  for (std::uint64_t i = 0; i < (test::kIsSanitized ? 400 : 2'000); ++i) {
    Dice dice(seed + i);
    const Policy policy = test::random_policy(dice);
    if (policy.rules.empty()) continue;
    const std::string text = JsonPrinter(dice).print(policy);
    const auto read = parse_policy(text, "policy.json");
    ASSERT_TRUE(read) << "seed " << seed + i << '\n' << read.error().message << '\n' << text;
    ASSERT_EQ(*read, policy) << "seed " << seed + i << '\n' << text << '\n' << to_yaml(*read);
  }
}

// The error of the parser for a text called `w`; empty if the text is valid.
std::string said_of(std::string_view text) {
  const auto policy = parse_policy(text, "w");
  return policy ? "" : policy.error().message;
}

struct Bad {
  std::string text;
  std::string lines;
};

constexpr std::string_view kEmpty = "the config is empty, so it limits nothing; write at least one rule";
constexpr std::string_view kNoRules = "the config has no `rules`, so it limits nothing; write at least one rule";

TEST(PolicyText, ReportsEachErrorWithItsPlace) {
  const std::string rule = "rules:\n- {name: a, per: ip, limit: 5/minute", ban = "rules: [{name: a, limit: 0/s}]\n";
  const Bad cases[] = {
      {rule + ", alogrithm: fixed_window}", "w:2:39: unknown key `alogrithm`, did you mean `algorithm`?"},
      {rule + ", 'zzz\x01': 1}", "w:2:43: a control character, '\\x01'; the file is damaged, or is not a text file"},
      {"ruels: []", "w:1:1: unknown key `ruels`, did you mean `rules`?\nw:1:1: " + std::string(kNoRules)},
      {rule + "}\n- {name: b, per: ip, limit: 5/minte}",
       "w:3:31: `limit`: unknown unit 'minte'; did you mean 5/minute?"},
      {"rules:\n- name: b\n  per: ip\n  limits:\n  - 1/s\n  - \"5/ minte\"\n",
       "w:6:9: `limits`: unknown unit 'minte'; did you mean 5/minute?"},
      {"rules:\n- {name: a, name: b, per: ip, limit: 5/minute}", "w:2:13: the key 'name' is given twice; give it once"},
      {ban + ban, "w:2:1: the key 'rules' is given twice; give it once"},
      {"", "w:1:1: " + std::string(kEmpty)},
      {" \n\n", "w:1:1: " + std::string(kEmpty)},
      {"---\n", "w:1:1: " + std::string(kEmpty)},
      {"# only\n# comments\n", "w:1:1: " + std::string(kEmpty)},
      {"~", "w:1:1: " + std::string(kEmpty)},
      {"{}", "w:1:1: " + std::string(kNoRules)},
      {"skip: /x", "w:1:1: " + std::string(kNoRules)},
      {"rules: []", "w:1:8: `rules` must be a list of at least one rule, found an empty list"},
      {"skip: /x\nrules: ~", "w:2:8: `rules` must be a list of at least one rule, found nothing"},
      {"rules: 5", "w:1:8: `rules` must be a list of at least one rule, found '5'"},
      {"rules: [5]", "w:1:9: `rules` must be a map such as {name: login, per: ip, limit: 5/minute}, found '5'"},
      {"- a", "w:1:1: the config must be a map with `rules`, found a list"},
      {rule + "}\n- {name: a, per: user, limit: 1/s}",
       "w:3:3: a second rule is called 'a', first used in line 2; give each rule its own name, because counts belong "
       "to it"},
      {"rules: [{name: a, match: {api_key: secret}, limit: 0/s}]",
       "w:1:36: `api_key`: a config must not contain plain API keys; write this one as "
       "sha256:2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b"},
      {"trusted_proxies: [10.0.0.1/8]\n" + ban,
       "w:1:19: `trusted_proxies`: '10.0.0.1/8' is not an address range: the address has bits beyond its prefix of 8; "
       "did you mean 10.0.0.0/8?"},
      {"skip: [health, \"/a?b\"]\n" + ban,
       "w:1:8: `skip`: a path pattern begins with '/', not 'health': write '/health'\n"
       "w:1:19: `skip`: '?' in a path pattern: a query is matched by `query`; write '/a'"},
      {rule + ", limits: [1/s]}", "w:2:47: a rule has `limit` or `limits`, not both; several limits are a list"},
      {"rules: [{name: a, limit: 5/minute}]", "w:1:9: rule 'a' has no `per`; write per: user, per: ip or per: global"},
      {"rules: [{name: a, per: ip}]", "w:1:9: rule 'a' has no `limit`; write limit: 100/minute, or limit: unlimited"},
      {"rules: [{name: a, per: '{id}', match: {path: [/a, '/b/{id}']}, limit: 1/s}]",
       "w:1:9: rule 'a' counts per {id}, which its path does not name; write match: {path: '/users/{id}'}"},
      {"rules: [{name: a, match: otherwise, limit: unlimited}]",
       "w:1:9: rule 'a' is unlimited, so it cannot have `otherwise`; write the paths or clients that it exempts"},
      {"rules: [{name: a, match: otherwise, limit: unlimited}, {name: b, per: ip, limit: 1/s}]",
       "w:1:9: rule 'a' is unlimited, so it cannot have `otherwise`; write the paths or clients that it exempts"},
      {"rules: [{name: a, algorithm: token_bucket, limit: unlimited}]",
       "w:1:9: rule 'a' is unlimited, so it has no `algorithm`; remove the algorithm"},
      {"rules: [{name: a, limit: unlimited, mode: 50%}]",
       "w:1:9: rule 'a' is unlimited, so its mode cannot be a percentage; write enforce, shadow or off"},
      {rule + ", algorithm: token_bucket, phase: key}",
       "w:2:3: rule 'a' has phase: key, which only a fixed_window without a calendar unit can have"},
      {"rules: [{name: a, per: ip, limits: [1/min, 9/60s]}]",
       "w:1:9: rule 'a' has two limits for the same period, '1/min' and '9/60s'; keep the smaller one"},
      {"rules: [{name: a, match: {header: {X-A: a, x-a: b}}, limit: 0/s}]",
       "w:1:44: the header 'x-a' is named twice; list its values in one place"},
      {"rules: [{name: a, match: {host: 'a:80'}, limit: 0/s}]",
       "w:1:33: `host`: 'a:80' has a port; remove it, because Weir matches hosts without ports"},
      {"rules: [{name: a, match: {not: otherwise}, limit: 0/s}]",
       "w:1:32: `not` cannot contain `otherwise`, `entries` or another `not`; move them out of it"},
      {"rules: [{name: a, match: {not: {}}, limit: 0/s}]", "w:1:32: `not` is empty; remove it, or add a condition"},
      {"rules: [{name: a, match: {user: []}, limit: 0/s}]",
       "w:1:33: `user` must be one value or a list of at least one, found an empty list"},
      {"rules: [{name: a, cost: {max: 5}, limit: 0/s}]", "w:1:25: `cost` has no `header`; write {header: x-cost}"},
      {"identity: [path]\n" + ban, "w:1:11: `identity` cannot be path; name user, api_key, ip ..."},
      {"rules: [{name: a, per: [ip, global], limit: 1/s}]",
       "w:1:29: `per`: `global` cannot be in a list: it is one count for all requests"},
      {"rules: [{name: a, per: [ip, ip], limit: 5 concurrent}]",
       "w:1:29: `per` names 'ip' twice\n"
       "w:1:41: `limit`: a rule cannot limit permits in flight; write a rate such as "
       "100/minute"},
      {ban + "---\n" + ban, "w:2:1: a second document begins here; a config is one document"},
      {"rules: [{name: !!str a, limit: 0/s}]", "w:1:16: the tag 'tag:yaml.org,2002:str' is not supported; remove it"},
      {"? [a]\n: b", "w:1:3: a key must be a word, not a list or a map"},
      {"rules: &a [*a]", "w:1:12: an alias to a value that contains it; write it out"},
      {"rules: [{name: a, match: {path: /a/{id}}, limit: 0/s}]",
       "w:1:36: this is not YAML: end of map flow not found; close each bracket, and put a value that contains { } [ ] "
       "or "
       ", in quotes, such as '/users/{id}'"},
      {"rules:\n- name: a\n\tlimit: 0/s",
       "w:3:1: this is not YAML: illegal tab when looking for indentation; indent with spaces, all items of a list or "
       "map alike"},
      {"rules: [{name: a, per: *x, limit: 1/s}]",
       "w:1:24: this is not YAML: the referenced anchor is not defined; a value that begins with * must be in quotes"},
      {"rules: [{name: \"\\\xe9\", limit: 0/s}]", "w:1:19: this is not YAML: unknown escape character: \\xe9"},
      {std::string("rules: [\0]", 10),
       "w:1:9: a control character, '\\x00'; the file is damaged, or is not a text file"},
  };
  for (const Bad& bad : cases) EXPECT_EQ(said_of(bad.text), bad.lines) << bad.text;
}

TEST(PolicyText, ReportsAllErrorsInTheOrderOfTheText) {
  EXPECT_EQ(
      said_of("skip: health\n"
              "rules:\n"
              "- {name: [a], per: {a: b}, limit: {a: b}, mode: [off], cost: x, required: yes}\n"
              "- {name: b, per: usr, limit: 0/s, owner: [], expires_at: soon, retry_jitter: 5, phase: x}\n"
              "- {name: c, limit: 0/s, on_backend_error: x, match: 5, algorithm: best}\n"
              "trusted_hops: 65\n"),
      "w:1:7: `skip`: a path pattern begins with '/', not 'health': write '/health'\n"
      "w:3:3: a rule needs a `name`, which answers, logs and metrics show\n"
      "w:3:10: `name` must be a name such as login, found a list\n"
      "w:3:20: `per` must be an attribute such as user, or a list of attributes, found a map\n"
      "w:3:35: `limit` must be a limit such as 100/minute, found a map\n"
      "w:3:49: `mode` must be enforce, shadow, off, or the percentage of keys to enforce it for, such as 30%, found a "
      "list\n"
      "w:3:62: `cost` must be a whole number from 0 to 1000000000, found 'x'\n"
      "w:3:75: `required` must be true or false, found 'yes'\n"
      "w:4:18: `per`: unknown attribute 'usr', did you mean user?\n"
      "w:4:42: `owner` must be a text, found an empty list\n"
      "w:4:58: `expires_at`: 'soon' is not a time; write it like 2026-12-31 or 2026-12-31T18:30:00Z\n"
      "w:4:78: `retry_jitter`: '5' is neither a percentage of the wait such as 10% nor a duration such as 5s\n"
      "w:4:88: `phase` must be clock or key, found 'x'\n"
      "w:5:43: `on_backend_error` must be local, open or closed, found 'x'\n"
      "w:5:53: `match` must be `otherwise`, or a map such as {path: /api/search}, found '5'\n"
      "w:5:67: `algorithm`: unknown algorithm 'best'; the algorithms are fixed_window, sliding_log, sliding_window, "
      "token_bucket, leaky_bucket, leaky_meter and concurrency\n"
      "w:6:15: `trusted_hops` must be a whole number from 0 to 64, found '65'");
}

TEST(PolicyText, ReportsAtMostFiftyErrors) {
  std::string text = "rules: [{name: a, limit: 0/s}]\n";
  for (int i = 0; i < 60; ++i) text += "zz" + std::to_string(i) + ": 1\n";
  const std::string said = said_of(text);
  EXPECT_EQ(std::ranges::count(said, '\n'), 50);
  EXPECT_TRUE(said.ends_with("\nw: and 10 more")) << said;
}

// `before 0 after, before 1 after, ...`
std::string many(std::size_t count, std::string_view before, std::string_view after = "") {
  std::string out;
  for (std::size_t i = 0; i < count; ++i) {
    out.append(i == 0 ? "" : ", ").append(before).append(std::to_string(i)).append(after);
  }
  return out;
}

// A text that is valid with `most` of something, and refused with one more.
struct Bound {
  const char* before;
  std::function<std::string(std::size_t)> part;
  const char* after;
  std::size_t most;
  const char* refusal;
};

TEST(PolicyText, KeepsItsBoundsExactly) {
  const auto letters = [](std::size_t n) { return std::string(n, 'x'); };
  const auto number = [](std::size_t n) { return std::to_string(n); };
  const auto numbers = [](std::size_t n) { return many(n, ""); };
  const auto headers = [](std::size_t n) { return many(n, "h", ": a"); };
  const auto dimensions = [](std::size_t n) { return many(n, "header:h"); };
  const auto seconds = [](std::size_t n) { return many(n, "5/1", "s"); };
  const auto sets = [](std::size_t n) { return many(n, "{user: ", "}"); };
  const auto paths = [](std::size_t n) { return many(n, "/p"); };
  const auto rules = [](std::size_t n) { return many(n, "{limit: 0/s, name: r", "}"); };
  const auto idle_rules = [](std::size_t n) { return many(n, "\n{limit: 0/s, mode: off, name: r", "}"); };
  const auto addresses = [](std::size_t n) { return many(n, "10.0.0.0/8 #", "\n"); };
  const auto aliases = [](std::size_t n) { return many(n, "*a #", "\n"); };
  const auto pattern = [](std::size_t n) { return '/' + std::string(n - 1, 'p'); };
  const auto segments = [](std::size_t n) {
    std::string out;
    while (n-- > 0) out += "/a";
    return out;
  };
  constexpr const char *kRule = "}]", *kTop = "\nrules: [{name: a, limit: 0/s}]",
                       *kLists = "]\nrules: [{name: a, limit: 0/s}]";
  const Bound bounds[] = {
      {"rules: [{limit: 0/s, name: ", letters, kRule, 64, "a name is 1 to 64 letters"},
      {"rules: [{name: a, limit: 0/s, owner: ", letters, kRule, 1'024, "at most 1024 are allowed"},
      {"rules: [{name: a, limit: 0/s, match: {user: ", letters, "}}]", 1'024, "at most 1024 are allowed"},
      {"rules: [{name: a, limit: 0/s, match: {user: [", numbers, "]}}]", 1'000, "at most 1000 are allowed"},
      {"rules: [{name: a, limit: 0/s, match: {header: {", headers, "}}}]", 16, "a map of 1 to 16 names"},
      {"rules: [{name: a, limit: 0/s, match: {query: {", letters, ": a}}}]", 128, "a name is 1 to 128 letters"},
      {"rules: [{name: a, limit: 0/s, match: {not: [", sets, "]}}]", 16, "at most 16 are allowed"},
      {"rules: [{name: a, limit: 0/s, per: [", dimensions, "]}]", 8, "at most 8 are allowed"},
      {"rules: [{name: a, per: ip, limits: [", seconds, "]}]", 8, "at most 8 are allowed"},
      {"rules: [{name: a, limit: 0/s, cost: ", number, kRule, 1'000'000'000, "from 0 to 1000000000"},
      {"rules: [{name: a, limit: 0/s, cost: {header: h, max: ", number, "}}]", 1'000'000'000, "from 1 to 1000000000"},
      {"rules: [{name: a, limit: 0/s, mode: ", number, "%}]", 100, "such as 30%"},
      {"rules: [{name: a, limit: 0/s, retry_jitter: ", number, "s}]", 86'400, "a duration such as 5s"},
      {"rules: [{name: a, limit: 0/s, expires_at: ", number, "-12-31}]", 2'099, "is not a time"},
      {"rules: [", rules, "]", kChargesMax, "at most 32 can be charged at once"},
      {"rules: [", idle_rules, "]", kRulesMax, "at most 20000 are allowed"},
      {"trusted_hops: ", number, kTop, 64, "from 0 to 64"},
      {"max_change: ", number, kTop, 1'000'000, "from 1 to 1000000"},
      {"trusted_proxies: [", addresses, kLists, 10'000, "at most 10000 are allowed"},
      {"skip: [", paths, kLists, 1'000, "at most 1000 are allowed"},
      {"templates: [", paths, kLists, 10'000, "at most 10000 are allowed"},
      {"skip: ", pattern, kTop, 1'024, "at most 1024"},
      {"skip: ", segments, kTop, 64, "more than 64 segments"},
      {"skip: [&a /x, ", aliases, kLists, 64, "more than 64 aliases"},
  };
  for (const Bound& bound : bounds) {
    EXPECT_EQ(said_of(bound.before + bound.part(bound.most) + bound.after), "") << bound.before;
    const std::string said = said_of(bound.before + bound.part(bound.most + 1) + bound.after);
    EXPECT_NE(said.find(bound.refusal), std::string::npos) << bound.before << '\n' << said.substr(0, 300);
    EXPECT_TRUE(said.starts_with("w:")) << bound.before;
  }
  std::string whole = "rules: [{name: a, limit: 0/s}]\n";
  while (whole.size() < kPolicyBytesMax) whole += whole.size() % 100 == 0 ? "\n" : "#";
  EXPECT_EQ(said_of(whole), "");
  EXPECT_EQ(said_of(whole + '#'), "w:1:1: the text has 1048577 bytes; at most 1048576 (1 MiB) are read");
}

TEST(PolicyText, DoesNotMindHowAFileWasSaved) {
  const std::string unix_text = "rules:\n  - name: a\n    match: {user: 'é'}\n    limit: 0/s\n";
  std::string windows_text = "\xef\xbb\xbf";
  for (const char c : unix_text) windows_text += c == '\n' ? "\r\n" : std::string(1, c);
  const auto plain = parse_policy(unix_text, "w"), other = parse_policy(windows_text, "w");
  ASSERT_TRUE(plain && other) << said_of(windows_text);
  EXPECT_EQ(*plain, *other);
  EXPECT_EQ(said_of("\xef\xbb\xbfruels: 1\r\n" + unix_text.substr(0, 7) + "\r\n"),
            said_of("ruels: 1\n" + unix_text.substr(0, 7) + "\n"));
  // Bytes that are no UTF-8 are kept as they are, since requests may bear them, too.
  const auto latin = parse_policy("rules: [{name: a, match: {user: caf\xe9}, limit: 0/s}]", "w");
  ASSERT_TRUE(latin);
  EXPECT_EQ(latin->rules[0].match.all[0].any_of[0], "caf\xe9");
  EXPECT_EQ(parse_policy(to_yaml(*latin), "w").value(), *latin);
}

TEST(PolicyText, ReadsTheEscapesOfJson) {
  const auto policy =
      parse_policy(R"({"rules":[{"name":"a","match":{"user":"\"\\\/\b\f\n\r\t\u00e9\u65e5"},"limit":"0/s"}]})", "w");
  ASSERT_TRUE(policy) << policy.error().message;
  EXPECT_EQ(policy->rules[0].match.all[0].any_of[0], "\"\\/\b\f\n\r\té日");
}

TEST(PolicyText, HasASchemaThatNamesEveryKey) {
  const std::string schema = policy_schema();
  const auto has = [&](std::string_view key) {
    return schema.find('"' + std::string(key) + "\":{") != std::string::npos;
  };
  for (const auto& row : policy::policy_fields()) EXPECT_TRUE(has(row.name)) << row.name;
  for (const auto& row : policy::rule_fields()) EXPECT_TRUE(has(row.name)) << row.name;
  for (const auto& row : policy::match_fields()) EXPECT_TRUE(has(row.name)) << row.name;
  // JSON is YAML, so our own reader can check that it is well formed.
  std::vector<policy::TextProblem> problems;
  const policy::Node root = policy::read_yaml(schema, problems);
  EXPECT_TRUE(problems.empty()) << problems.front().message;
  EXPECT_TRUE(root.is_map());
}

constexpr Micros kNow{test::kWorldNow};

TEST(PolicyReview, WarnsOfWhatIsProbablyNotMeant) {
  const Bad cases[] = {
      {"- {name: a, match: {path: /a, not: {path: /**}}, limit: 0/s}",
       "w:2:3: rule 'a' can never match: its `not` excludes every request that it matches"},
      {"- {name: a, match: {user: [a, b], not: {user: '*'}}, limit: 0/s}",
       "w:2:3: rule 'a' can never match: its `not` excludes every request that it matches"},
      {"- {name: a, match: {path: ['/static/{id}', /static/a/b]}, limit: 0/s}\nskip: [/static/**]",
       "w:2:3: rule 'a' can never match: `skip` contains all its paths"},
      {"- {name: free, match: {path: /api/**}, limit: unlimited}\n"
       "- {name: a, match: {user: a, path: /api/x}, per: ip, limit: 1/s}\n"
       "- {name: ban, match: {path: /api/x}, limit: 0/s}",
       "w:3:3: rule 'a' never applies: rule 'free' is unlimited"},
      {"- {name: a, per: ip, limit: 1/s, expires_at: '2026-09-21T12:00:00Z'}",
       "w:2:3: rule 'a' expired at 2026-09-21T12:00:00Z; remove it"},
      {"- {name: a, per: ip, limit: 1/s, mode: 0%}",
       "w:2:3: rule 'a' is enforced for 0% of its keys; write mode: shadow"},
      {"- {name: all, match: {path: /**}, per: global, limit: 1/s}\n"
       "- {name: rest, match: otherwise, per: ip, limit: 1/s}",
       "w:3:3: rule 'rest' applies only to requests without a path: rule 'all' matches every path"},
      {"- {name: a, per: ip, limit: 10/s}\n- {name: b, per: ip, limit: 5/s}\n- {name: c, per: ip, limit: 5/s}",
       "w:2:3: rule 'a' never decides: rule 'b' counts the same requests, and its limit is not higher\n"
       "w:4:3: rule 'c' never decides: rule 'b' counts the same requests, and its limit is not higher"},
      {"- {name: a, limit: 0/s}\ntrusted_proxies: [0.0.0.0/0, '::/0', 10.0.0.0/7, 10.0.0.0/8, '2000::/15', "
       "'2001::/16']",
       "w:1:1: trusted_proxies: 0.0.0.0/0 lets every client claim any address; list only your proxies\n"
       "w:1:1: trusted_proxies: ::/0 lets every client claim any address; list only your proxies\n"
       "w:1:1: trusted_proxies: 10.0.0.0/7 is very wide: every host in it can claim any address; list only your "
       "proxies\n"
       "w:1:1: trusted_proxies: 2000::/15 is very wide: every host in it can claim any address; list only your "
       "proxies"},
  };
  for (const Bad& bad : cases) {
    const auto policy = parse_policy("rules:\n" + bad.text, "w");
    ASSERT_TRUE(policy) << bad.text << '\n' << policy.error().message;
    std::string lines;
    for (const std::string& line : review(*policy, "w", kNow)) lines.append(lines.empty() ? "" : "\n").append(line);
    EXPECT_EQ(lines, bad.lines) << bad.text;
  }
}

// There is no warning where a config may be meant as it is.
TEST(PolicyReview, KeepsQuietAboutWhatMayBeMeant) {
  for (const char* rules : {
           "- {name: a, match: {path: /a/**, not: {path: /a/b}}, limit: 0/s}",
           "- {name: a, match: {path: [/static/x, /b]}, limit: 0/s}\nskip: [/static/**]",
           "- {name: free, match: {path: /api/**}, limit: unlimited, per: user}\n"
           "- {name: a, match: {path: /api/x}, per: ip, limit: 1/s}",
           "- {name: free, match: {path: /api/**}, limit: unlimited, expires_at: 2030-01-01}\n"
           "- {name: a, match: {path: /api/x}, per: ip, limit: 1/s}",
           "- {name: free, match: {path: /api/**, not: {user: a}}, limit: unlimited}\n"
           "- {name: a, match: {path: /api/x}, per: ip, limit: 1/s}",
           "- {name: a, per: ip, limit: 1/s, expires_at: '2026-09-21T12:00:01Z'}",
           "- {name: all, match: {path: /**}, per: user, limit: 1/s}\n- {name: rest, match: otherwise, per: ip, limit: "
           "1/s}",
           "- {name: a, per: ip, limit: 10/s}\n- {name: b, per: user, limit: 5/s}",
           "- {name: a, per: ip, limit: 10/s}\n- {name: b, per: ip, limit: 20/min}",
           "- {name: a, per: ip, limit: 10/s}\n- {name: b, per: ip, limit: 5/s, mode: shadow}",
           "- {name: a, per: ip, limit: 10/s}\n- {name: b, per: ip, limit: 5/s, expires_at: 2030-01-01}",
           "- {name: a, per: ip, limit: 10/s, algorithm: fixed_window, phase: key}\n"
           "- {name: b, per: ip, limit: 5/s, algorithm: fixed_window}",
           "- {name: a, per: ip, limit: 1/s, mode: off, expires_at: 2020-01-01}",
       }) {
    const auto policy = parse_policy(std::string("rules:\n") + rules, "w");
    ASSERT_TRUE(policy) << rules << '\n' << policy.error().message;
    const auto lines = review(*policy, "w", kNow);
    EXPECT_TRUE(lines.empty()) << rules << '\n' << lines.front();
  }
}

}  // namespace
}  // namespace weir
