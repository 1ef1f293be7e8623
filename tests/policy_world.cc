// Draws policies and requests. See policy_world.h.
#include "policy_world.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <utility>

#include "weir/limit.h"
#include "weir/verdict.h"

namespace weir::test {
namespace {

using enum AttributeKind;

constexpr std::array<KnownKey, 4> kKeys = {{
    {"a", "sha256:ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb"},
    {"b", "sha256:3e23e8160039594a33894f6564e1b1348bbd7a0088d42c4acb73eeaed59c009d"},
    {"key-1", "sha256:be2974546978e3739e6d6da85c4be9f334ce32df2b9fd4b6ff1b55c0d57e9d44"},
    {"very secret", "sha256:546bb0a05a36cf112fbc47938f3d554e4d339a2ef033948e40a66ebe63a35a77"},
}};

// Values that meet each other, and such as a printer of YAML could get wrong.
constexpr std::string_view kPlainValues[] = {"a", "b", "ab", "aab", "1", "A"};
constexpr std::string_view kGlobs[] = {"*", "a*", "*b", "a*b", "*a*", "**", "*a*b*"};
constexpr std::string_view kOddValues[] = {
    "null", "~",    "true",    "off",    "No",   "0x1F",   "1e3", " a", "a ",        "a  b",      "a\nb",
    "\t",   " ",    "#a",      "a #b",   "a: b", "a:b",    ":",   "-",  "- a",       "---",       "...",
    "?",    "? a",  "|",       ">",      "@a",   "`a`",    "%a",  "&a", "!a",        "!!str a",   "'",
    "''",   "\"",   "\\",      "\\x41",  "{a}",  "[a]",    "a,b", "a]", "nULL",      "Null",      "\x7f\x01",
    "é",    "日本", "\u0085x", "\u2028", "a\rb", "\ufeff", "=",   "<<", "otherwise", "unlimited", "global"};
constexpr std::string_view kRanges[] = {"10.0.0.0/8", "10.0.0.1",      "10.0.0.0/31", "192.0.2.0/24",
                                        "0.0.0.0/0",  "2001:db8::/32", "::/0",        "2001:db8:0:1::/64",
                                        "::1",        "128.0.0.0/1"};
constexpr std::string_view kMethods[] = {"GET", "POST", "OPTIONS", "M-SEARCH", "A_B"};
constexpr std::string_view kHosts[] = {"a.example", "*.example", "b", "*", "[::1]", "é.example", "a*"};

std::string any_value(Dice& dice) {
  if (dice.once_in(6)) return std::string(dice.pick(kOddValues));
  if (dice.once_in(60)) return std::string(1 + dice.roll(1'024), 'a');
  return std::string(dice.pick(kPlainValues));
}

// A segment of a pattern, in its canonical form. Large letters only where they matter.
std::string segment(Dice& dice, bool has_case) {
  constexpr std::string_view kSegments[] = {"a",      "b",   "ab",    "*",       "a*",  "*b",  "a*b",
                                            "*a*b",   "c",   "a%2ab", "%7bx%7d", "a.b", "%20", "*.b",
                                            "%c3%a9", "x:y", "%25",   "a,b",     "-",   "'\"", "*%2a"};
  if (has_case && dice.once_in(4)) return dice.once_in(2) ? "A" : "A*";
  return std::string(dice.pick(kSegments));
}

// With {name} if one is given. Two `**` never stand side by side: they would be one.
std::string pattern(Dice& dice, bool has_case, std::string_view name = {}) {
  std::vector<std::string> segments;
  for (std::size_t i = dice.roll(4); i > 0; --i) segments.push_back(segment(dice, has_case));
  if (!name.empty()) {
    const std::size_t at = dice.roll(segments.size() + 1);
    segments.insert(segments.begin() + static_cast<std::ptrdiff_t>(at), '{' + std::string(name) + '}');
  }
  if (dice.once_in(4)) {
    segments.insert(segments.begin() + static_cast<std::ptrdiff_t>(dice.roll(segments.size() + 1)), "{other}");
  }
  for (int i = 0; i < 2 && dice.once_in(3); ++i) {
    const std::size_t at = dice.roll(segments.size() + 1);
    const bool beside = (at > 0 && segments[at - 1] == "**") || (at < segments.size() && segments[at] == "**");
    if (!beside) segments.insert(segments.begin() + static_cast<std::ptrdiff_t>(at), "**");
  }
  if (segments.empty()) return "/";
  std::string out;
  for (const std::string& one : segments) out += '/' + one;
  return out;
}

std::string condition_value(Dice& dice, weir::AttributeKind kind, bool has_case) {
  switch (kind) {
    case api_key:
      return std::string(dice.once_in(5) ? "*" : dice.pick(kKeys).hash);
    case ip:
      return std::string(dice.pick(kRanges));
    case method:
      return std::string(dice.pick(kMethods));
    case host:
      return std::string(dice.pick(kHosts));
    case path:
      return pattern(dice, has_case);
    default:
      return dice.once_in(3) ? std::string(dice.pick(kGlobs)) : any_value(dice);
  }
}

Condition condition(Dice& dice, weir::AttributeKind kind, std::string name, bool has_case) {
  Condition out{.kind = kind, .name = std::move(name)};
  const std::size_t count = 1 + (dice.once_in(3) ? dice.roll(4) : 0);
  for (std::size_t i = 0; i < count; ++i) out.any_of.push_back(condition_value(dice, kind, has_case));
  return out;
}

// In the order of the table: by kind, then by name.
std::vector<Condition> conditions(Dice& dice, std::size_t wanted, bool has_case) {
  constexpr weir::AttributeKind kKinds[] = {path, user, api_key, ip, tenant, plan, method, host, header, query, entry};
  constexpr std::string_view kNames[] = {"a", "b", "x-a", "1", "null", "a.b", "-"};
  std::vector<Condition> out;
  for (std::size_t i = 0; i < wanted; ++i) {
    const weir::AttributeKind kind = dice.pick(kKinds);
    std::string name;
    if (kind == header || kind == query || kind == entry) name = dice.pick(kNames);
    if (kind != header && !name.empty() && dice.once_in(4)) name = "A";
    const bool is_there =
        std::ranges::any_of(out, [&](const Condition& c) { return c.kind == kind && c.name == name; });
    if (!is_there) out.push_back(condition(dice, kind, std::move(name), has_case));
  }
  std::ranges::sort(
      out, [](const Condition& a, const Condition& b) { return a.kind != b.kind ? a.kind < b.kind : a.name < b.name; });
  return out;
}

Dimension dimension(Dice& dice) {
  constexpr weir::AttributeKind kKinds[] = {user, ip,     path, identity, api_key, tenant,
                                            plan, method, host, header,   query,   entry};
  constexpr std::string_view kNames[] = {"a", "b", "x-a", "a.b"};
  Dimension out{.kind = dice.pick(kKinds)};
  if (out.kind == header || out.kind == query || out.kind == entry) out.name = dice.pick(kNames);
  if (out.kind != header && !out.name.empty() && dice.once_in(4)) out.name = "A";
  if (out.kind == ip) {
    constexpr std::uint8_t kV4[] = {32, 32, 24, 8, 1, 31}, kV6[] = {64, 64, 48, 128, 20, 1, 65};
    out.v4_bits = dice.pick(kV4);
    out.v6_bits = dice.pick(kV6);
  }
  return out;
}

std::vector<Dimension> dimensions(Dice& dice, std::size_t wanted) {
  std::vector<Dimension> out;
  for (std::size_t i = 0; i < wanted; ++i) {
    Dimension one = dimension(dice);
    if (std::ranges::find(out, one) == out.end()) out.push_back(std::move(one));
  }
  return out;
}

std::int64_t about_how_long(const Quota& quota) {
  constexpr std::int64_t kDays[] = {1, 7, 31, 366};
  if (!quota.calendar) return quota.period.count();
  return kDays[static_cast<std::size_t>(quota.calendar->unit)] * 86'400'000'000;
}

// As they are written; not every one suits every algorithm.
constexpr std::string_view kQuotas[] = {"100/minute",
                                        "5/5min",
                                        "1/s",
                                        "10/second",
                                        "1000/hour",
                                        "0/second",
                                        "10/s burst 50",
                                        "3/minute burst 1",
                                        "7/day",
                                        "2/ 2min",
                                        " 9/week ",
                                        "1/ms",
                                        "1099511627776/h",
                                        "4/calendar_day",
                                        "0/minute",
                                        "12/month",
                                        "5/90s",
                                        "8/calendar_week UTC",
                                        "6/calendar_month Europe/Berlin",
                                        "1/year",
                                        "1/10years",
                                        "60/60s",
                                        "3/1000us"};

std::vector<RuleLimit> limits(Dice& dice, std::size_t most) {
  constexpr Algorithm kAny[] = {Algorithm::fixed_window, Algorithm::sliding_log,  Algorithm::sliding_window,
                                Algorithm::token_bucket, Algorithm::leaky_bucket, Algorithm::leaky_meter};
  const auto algorithm = dice.once_in(2) ? std::optional(dice.pick(kAny)) : std::nullopt;
  const std::size_t wanted = 1 + (dice.once_in(3) ? dice.roll(most) : 0);
  std::vector<RuleLimit> out;
  for (std::size_t i = 0; i < wanted; ++i) {
    const std::string_view text = dice.pick(kQuotas);
    const auto quota = parse_quota(text, algorithm);
    if (!quota || !compile(*quota)) continue;
    const bool is_there = std::ranges::any_of(out, [&](const RuleLimit& other) {
      return other.quota.algorithm == quota->algorithm && other.quota.period == quota->period &&
             other.quota.calendar == quota->calendar;
    });
    if (!is_there) out.push_back({*quota, std::string(text)});
  }
  if (out.empty()) {
    constexpr std::string_view kSuitsAll = "100/minute";
    out.push_back({parse_quota(kSuitsAll, algorithm).value(), std::string(kSuitsAll)});
  }
  std::ranges::stable_sort(out, {}, [](const RuleLimit& limit) { return about_how_long(limit.quota); });
  return out;
}

RuleCost cost(Dice& dice) {
  constexpr std::int64_t kPermits[] = {1, 1, 2, 0, 1'000'000'000}, kMost[] = {1'000'000, 5, 1, 1'000'000'000};
  RuleCost out{.permits = dice.pick(kPermits)};
  if (!dice.once_in(3)) return out;
  out.header = dice.once_in(3) ? "a.b" : "x-cost";
  out.max = dice.pick(kMost);
  return out;
}

std::string text_for_people(Dice& dice) {
  std::string out;
  for (std::size_t i = 1 + dice.roll(3); i > 0; --i) out += any_value(dice);
  return out.substr(0, 1'024);
}

void say_more(Dice& dice, const PolicySize& size, weir::Rule& rule) {
  constexpr Micros kJitters[] = {Micros{5'000'000}, Micros{1}, Micros{86'400'000'000}, Micros{1'500'000}};
  constexpr std::int64_t kExpiries[] = {kWorldNow, kWorldNow - 1'000'000, kWorldNow + 1'000'000, 0,
                                        4'102'444'799'000'000};
  constexpr int kPercents[] = {30, 0, 99, 1, 50};
  if (dice.once_in(4)) rule.cost = cost(dice);
  if (dice.once_in(6)) {
    rule.mode = dice.once_in(3) ? Mode::off : Mode::shadow;
  } else if (!rule.unlimited && dice.once_in(8)) {
    rule.percent = dice.pick(kPercents);
  }
  if (dice.once_in(6)) rule.on_backend_error = dice.once_in(2) ? OnBackendError::open : OnBackendError::closed;
  rule.required = dice.once_in(size.special_one_in);
  rule.count_denied = dice.once_in(6);
  const bool is_fixed = std::ranges::all_of(rule.limits, [](const RuleLimit& limit) {
    return limit.quota.algorithm == Algorithm::fixed_window && !limit.quota.calendar;
  });
  rule.phase_by_key = is_fixed && dice.once_in(3);
  if (dice.once_in(6)) {
    if (dice.once_in(2)) {
      rule.retry_jitter.percent = static_cast<int>(1 + dice.roll(100));
    } else {
      rule.retry_jitter.most = dice.pick(kJitters);
    }
  }
  if (dice.once_in(6)) rule.owner = text_for_people(dice);
  if (dice.once_in(6)) rule.reason = text_for_people(dice);
  if (dice.once_in(8)) rule.expires_at = Micros{dice.pick(kExpiries)};
}

void name_parts(Dice& dice, weir::Rule& rule, bool has_case) {
  const auto paths = std::ranges::find(rule.match.all, path, &Condition::kind);
  if (paths == rule.match.all.end() || !dice.once_in(3)) return;
  for (std::string& text : paths->any_of) text = pattern(dice, has_case, "id");
  rule.per.insert(rule.per.begin(), Dimension{.kind = capture, .name = "id"});
}

weir::Rule random_rule(Dice& dice, std::string name, const PolicySize& size, bool has_case) {
  weir::Rule rule{.name = std::move(name)};
  if (!dice.once_in(4)) rule.match.all = conditions(dice, 1 + dice.roll(3), has_case);
  for (std::size_t i = dice.once_in(5) ? 1 + dice.roll(2) : 0; i > 0; --i) {
    rule.match.none_of.push_back(conditions(dice, 1 + dice.roll(2), has_case));
  }
  for (std::size_t i = dice.once_in(12) ? 1 + dice.roll(2) : 0; i > 0; --i) {
    constexpr std::string_view kNames[] = {"a", "A", "b"};
    rule.match.entries.emplace_back(dice.pick(kNames));
  }
  rule.match.otherwise = dice.once_in(6);
  rule.per = dimensions(dice, dice.roll(dice.once_in(20) ? 8 : 3));
  name_parts(dice, rule, has_case);
  if (!rule.match.otherwise && dice.once_in(size.special_one_in)) {
    rule.unlimited = true;
  } else {
    rule.limits = limits(dice, size.limits_max);
  }
  say_more(dice, size, rule);
  return rule;
}

std::vector<std::string> patterns(Dice& dice, std::size_t most, bool has_case) {
  std::vector<std::string> out;
  for (std::size_t i = dice.roll(most + 1); i > 0; --i) out.push_back(pattern(dice, has_case));
  return out;
}

void draw_reading(Dice& dice, Policy& out) {
  constexpr std::string_view kHeaders[] = {"forwarded", "x-real-ip", "cf-connecting-ip", "..."};
  constexpr int kHops[] = {1, 2, 64}, kFactors[] = {kMaxChangeOff, 1, 2, 1'000'000};
  if (dice.once_in(3)) {
    auto who = dimensions(dice, 1 + dice.roll(4));
    std::erase_if(who, [](const Dimension& d) { return d.kind == identity || d.kind == path; });
    if (!who.empty()) out.identity = std::move(who);
  }
  for (std::size_t i = dice.once_in(2) ? dice.roll(4) : 0; i > 0; --i) {
    out.trusted_proxies.emplace_back(dice.pick(kRanges));
  }
  if (dice.once_in(3)) out.client_ip_header = dice.pick(kHeaders);
  if (dice.once_in(5)) out.trusted_hops = dice.pick(kHops);
  out.path_case_matters = dice.once_in(3);
  out.skip_preflights = !dice.once_in(3);
  if (dice.once_in(4)) out.skip = patterns(dice, 2, out.path_case_matters);
  if (dice.once_in(2)) out.templates = patterns(dice, 3, out.path_case_matters);
  if (dice.once_in(4)) out.max_change = dice.pick(kFactors);
  if (dice.once_in(8)) out.store = dice.once_in(2) ? "memory" : "rediss+sentinel://a,b:26380/main?ca=/c#d";
  if (dice.once_in(5)) {
    out.envoy = {.path = dice.once_in(2) ? "/etc/ratelimit" : "a b/\"c\"",
                 .algorithm = dice.once_in(2) ? Algorithm::token_bucket : Algorithm::fixed_window,
                 .count_denied = dice.once_in(2)};
  }
}

// `/a/%61?a=1`: parts of targets, in any order.
std::string random_path(Dice& dice) {
  constexpr std::string_view kParts[] = {
      "/a",  "/b",      "/ab",  "/aab", "/c",     "/A",   "/a.b", "/*",   "/{x}",    "/%61",     "//",   "/.", "/..",
      "\\b", ";p=1",    "%2fb", "%5ca", "/a%2ab", "%zz",  "/%25", "/é",   "/%C3%A9", "/ ",       "/x:y", "/,", "/a,b",
      "/-",  "/%2e%2e", "/..;", "/#",   "%c0%af", "/%00", "/;",   "/'\"", "%",       "/%7bx%7d", "/%3f", "/%", "b"};
  constexpr std::string_view kQueries[] = {
      "a=a", "b=b", "a=ab", "A=1", "%61=b", "a=", "a", "x-a=a+b", "a=%61", "&", "="};
  if (dice.once_in(12)) return {};
  std::string out;
  if (dice.once_in(12)) out = dice.once_in(2) ? "http://a.example" : "h+1://";
  for (std::size_t i = 1 + dice.roll(4); i > 0; --i) {
    constexpr std::size_t kUsual = 5;
    out += kParts[dice.once_in(3) ? dice.roll(std::size(kParts)) : dice.roll(kUsual)];
  }
  if (dice.once_in(2)) {
    out += '?';
    for (std::size_t i = dice.roll(4); i > 0; --i) out.append(dice.pick(kQueries)).append(i > 1 ? "&" : "");
  }
  if (dice.once_in(12)) out += "#a?a=b";
  return out;
}

constexpr std::string_view kAddresses[] = {"10.0.0.1",    "10.0.0.0",        "10.0.0.2",        "192.0.2.1",
                                           "192.0.2.255", "198.51.100.7",    "2001:db8::1",     "2001:db8:0:1::2",
                                           "::1",         "::ffff:10.0.0.1", "2001:DB8:0:0::1", "2001:db8:0:1:8000::"};

// A node as a proxy writes it, or what only looks like one.
std::string random_node(Dice& dice) {
  constexpr std::string_view kOdd[] = {"10.0.0.1:80", "[2001:db8::1]:443", "[::1]", "fe80::1%eth0",   " 10.0.0.2 ",
                                       "unknown",     "_hidden",           "",      "10.0.0",         "10.0.0.01",
                                       "1.2.3.4.5",   "[10.0.0.1]",        ":80",   "10.0.0.1:99999", "::1::"};
  return std::string(dice.once_in(4) ? dice.pick(kOdd) : dice.pick(kAddresses));
}

OwnedRequest::Pair random_header(Dice& dice) {
  constexpr std::string_view kNames[] = {"x-a",  "X-A", "a", "b",         "1",
                                         "null", "a.b", "-", "x-real-ip", "CF-Connecting-IP"};
  constexpr std::string_view kCosts[] = {
      "3",   "0",   "-5", "99999999999999999999", "-99999999999999999999", "x", "3 ", "", "+3", "1000000",
      "007", "0x3", "4"};
  switch (dice.roll(6)) {
    case 0:
      return {dice.once_in(2) ? "X-Forwarded-For" : "x-forwarded-for", random_node(dice) + ',' + random_node(dice)};
    case 1: {
      const std::string node = random_node(dice), second = random_node(dice);
      return {"Forwarded", "for=\"" + node + "\";proto=https, For=\"" + second + '"'};
    }
    case 2:
      return {"X-Cost", std::string(dice.pick(kCosts))};
    case 3:
      return {"Access-Control-Request-Method", "POST"};
    default: {
      const std::string name(dice.pick(kNames));
      const bool is_address = name == "x-real-ip" || name == "CF-Connecting-IP";
      return {name, is_address ? random_node(dice) : dice.once_in(8) ? std::string() : any_value(dice)};
    }
  }
}

AnswerStyle random_answers(Dice& dice) {
  constexpr std::int64_t kHolds[] = {0, 1, 1'000, 1'000'000, 2'500'000, 5'000'000, 60'000'000};
  return {.x_ratelimit = dice.once_in(2),
          .rate_limit = static_cast<RateLimitFields>(dice.roll(5)),
          .retry_after = dice.once_in(2),
          .deny_status = static_cast<int>(400 + dice.roll(100)),
          .hold_max = Micros{dice.pick(kHolds)},
          .limits = dice.once_in(2) ? ShownLimits::binding : ShownLimits::all};
}

}  // namespace

std::size_t Dice::roll(std::size_t sides) {
  if (!has_bytes_) return std::uniform_int_distribution<std::size_t>(0, sides - 1)(random_);
  std::size_t value = 0;
  for (std::size_t reach = 1; reach < sides && !bytes_.empty(); reach *= 256) {
    value = value * 256 + bytes_.front();
    bytes_ = bytes_.subspan(1);
  }
  return value % sides;
}

std::span<const KnownKey> known_keys() { return kKeys; }

Policy random_policy(Dice& dice, PolicySize size) {
  constexpr std::string_view kNames[] = {"r", "a:b/c.d-e_F", "null", "true", "1", "-", "...", "rest"};
  Policy out;
  draw_reading(dice, out);
  std::set<std::string> names;
  std::size_t always = 0;  // limits that hold every request
  for (std::size_t i = 1 + dice.roll(size.rules_max); i > 0; --i) {
    std::string name(dice.pick(kNames));
    if (!names.insert(name).second) names.insert(name += std::to_string(i));
    if (dice.once_in(20)) name.append(64 - name.size(), 'x');
    weir::Rule rule = random_rule(dice, std::move(name), size, out.path_case_matters);
    if (rule.mode == Mode::enforce && rule.match == Match{}) {
      if (always + rule.limits.size() > kChargesMax) continue;
      always += rule.limits.size();
    }
    out.rules.push_back(std::move(rule));
  }
  if (dice.once_in(4)) out.answers = random_answers(dice);
  return out;
}

std::string answers_json(const AnswerStyle& style) {
  constexpr std::string_view kForms[] = {"", "\"draft-03\"", "\"draft-06\"", "\"draft-07\"", "\"draft-11\""};
  std::string headers(kForms[static_cast<std::size_t>(style.rate_limit)]);
  if (style.retry_after) headers = "\"retry-after\"" + std::string(headers.empty() ? "" : ",") + headers;
  if (style.x_ratelimit) headers += std::string(headers.empty() ? "" : ",") + "\"x-ratelimit\"";
  return "{\"hold_max\":\"" + std::to_string(style.hold_max.count()) + (style.hold_max.count() == 0 ? "s" : "us") +
         "\",\"headers\":[" + headers + "],\"deny_status\":" + std::to_string(style.deny_status) + ",\"limits\":\"" +
         (style.limits == ShownLimits::all ? "all" : "binding") + "\"}";
}

weir::Request OwnedRequest::view() const {
  header_views_.clear();
  entry_views_.clear();
  for (const Pair& pair : headers) header_views_.push_back({pair.name, pair.value});
  for (const Pair& pair : entries) entry_views_.push_back({pair.name, pair.value});
  return {.user = user,
          .api_key = api_key,
          .ip = ip,
          .tenant = tenant,
          .plan = plan,
          .method = method,
          .host = host,
          .path = path,
          .headers = header_views_,
          .entries = entry_views_,
          .cost = cost};
}

std::string OwnedRequest::text() const {
  std::string out = "user '" + user + "' api_key '" + api_key + "' ip '" + ip + "' tenant '" + tenant + "' plan '" +
                    plan + "' method '" + method + "' host '" + host + "' path '" + path + "' cost " +
                    std::to_string(cost);
  for (const Pair& pair : headers) out += "\n  header '" + pair.name + "': '" + pair.value + "'";
  for (const Pair& pair : entries) out += "\n  entry '" + pair.name + "': '" + pair.value + "'";
  return out;
}

OwnedRequest random_request(Dice& dice) {
  constexpr std::string_view kRequestMethods[] = {"GET",     "get",     "POST",     "Post",
                                                  "OPTIONS", "options", "m-search", "a_b"};
  constexpr std::string_view kRequestHosts[] = {"a.example", "A.EXAMPLE:80", "a.example.", "b", "[::1]:80", "[::1]",
                                                "b.example", "é.example",    "a..",        ":", ".",        "ab"};
  constexpr std::string_view kNames[] = {"a", "A", "b", "x-a", "1", "null"};
  constexpr std::int64_t kCosts[] = {0, -1, 5, INT64_MAX, INT64_MIN, 1'000'000'000};
  OwnedRequest out;
  if (!dice.once_in(3)) out.user = any_value(dice);
  if (!dice.once_in(2)) out.api_key = dice.once_in(4) ? std::string(200, 'k') : std::string(dice.pick(kKeys).clear);
  if (!dice.once_in(4)) out.ip = dice.pick(kAddresses);
  if (dice.once_in(2)) out.tenant = any_value(dice);
  if (dice.once_in(2)) out.plan = any_value(dice);
  if (!dice.once_in(3)) out.method = dice.pick(kRequestMethods);
  if (!dice.once_in(2)) out.host = dice.pick(kRequestHosts);
  out.path = random_path(dice);
  for (std::size_t i = dice.roll(5); i > 0; --i) out.headers.push_back(random_header(dice));
  for (std::size_t i = dice.roll(3); i > 0; --i) {
    const std::string name(dice.pick(kNames));
    out.entries.push_back({name, dice.once_in(8) ? std::string() : any_value(dice)});
  }
  if (dice.once_in(6)) out.cost = dice.pick(kCosts);
  return out;
}

}  // namespace weir::test
