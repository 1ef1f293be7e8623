// The keys of a rule: how they are read, checked against each other, and printed. See fields.h. The table is at the
// end, after the functions that its rows use.
#include <algorithm>
#include <charconv>

#include "algorithm/quota_words.h"
#include "base/nearest.h"
#include "policy/dimension.h"
#include "policy/fields.h"
#include "policy/flow.h"
#include "policy/path_pattern.h"
#include "weir/duration.h"

namespace weir {
namespace {

constexpr std::size_t kNameBytesMax = 64;
constexpr std::size_t kDimensionsMax = 8;
constexpr std::int64_t kCostMax = 1'000'000'000;

void read_name(Reader& reader, const Node& node, RuleDraft& draft) {
  const auto text = reader.text(node, "a name such as login");
  if (!text) return;
  const bool is_sound = text->size() <= kNameBytesMax && std::ranges::all_of(*text, [](char c) {
                          return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) ||
                                 std::string_view("_-.:/").find(c) != std::string_view::npos;
                        });
  if (is_sound) {
    draft.rule.name = *text;
  } else {
    reader.wrong(node.at, "a name is 1 to 64 letters, digits and any of _ - . : /, not " + in_quotes(*text));
  }
}

// 30% -> 30
std::optional<int> percent_of(std::string_view text) {
  int percent = 0;
  if (!text.ends_with('%')) return {};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size() - 1, percent);
  if (error != std::errc{} || end != text.data() + text.size() - 1 || percent < 0 || percent > 100) return {};
  return percent;
}

void read_mode(Reader& reader, const Node& node, RuleDraft& draft) {
  constexpr std::array<std::string_view, 3> kModes = {"enforce", "shadow", "off"};
  const auto known = std::ranges::find(kModes, std::string_view(node.text == "false" ? "off" : node.text));
  if (node.is_scalar() && known != kModes.end()) {
    draft.rule.mode = static_cast<Mode>(known - kModes.begin());
  } else if (const auto percent = percent_of(node.text)) {
    draft.rule.percent = *percent;
  } else {
    reader.wrong_kind(node, "enforce, shadow, off, or the percentage of keys to enforce it for, such as 30%");
  }
}

std::string print_mode(const RuleDraft& draft) {
  if (draft.rule.mode == Mode::shadow) return "shadow";
  if (draft.rule.mode == Mode::off) return "off";
  return draft.rule.percent == 100 ? "" : std::to_string(draft.rule.percent) + '%';
}

void read_algorithm(Reader& reader, const Node& node, RuleDraft& draft) {
  const auto text = reader.text(node, "an algorithm such as token_bucket");
  if (!text) return;
  const auto algorithm = parse_algorithm(*text);
  if (algorithm) {
    draft.algorithm = *algorithm;
  } else {
    reader.wrong(node, "algorithm", algorithm.error());
  }
}

// The text as written. For a limit built by hand, its canonical text.
std::string limit_text(const RuleLimit& limit) { return limit.text.empty() ? to_string(limit.quota) : limit.text; }

// Prints the algorithm only if the text of a quota does not imply it.
std::string print_algorithm(const RuleDraft& draft) {
  if (draft.rule.plan_algorithm) return std::string(to_string(*draft.rule.plan_algorithm));
  for (const RuleLimit& limit : draft.rule.limits) {
    const auto usual = parse_quota(limit_text(limit));
    if (!usual || !(*usual == limit.quota)) return std::string(to_string(limit.quota.algorithm));
  }
  return {};
}

void read_limits(Reader& reader, const Node& node, RuleDraft& draft) {
  if (std::exchange(draft.has_limit, true)) {
    return reader.wrong(node.at, "a rule has `limit` or `limits`, not both; several limits are a list");
  }
  if (node.is_scalar() && node.text == "unlimited") {
    draft.rule.unlimited = true;
    return;
  }
  if (node.is_scalar() && node.text == "plan") {
    draft.rule.by_plan = true;
    draft.rule.plan_algorithm = draft.algorithm;
    return;
  }
  read_quotas(reader, node, draft.algorithm, draft.rule.limits);
}

std::string print_limit(const RuleDraft& draft) {
  if (draft.rule.unlimited) return "unlimited";
  if (draft.rule.by_plan) return "plan";
  return draft.rule.limits.size() == 1 ? print_quotas(draft.rule.limits) : "";
}

std::string print_limits(const RuleDraft& draft) {
  return draft.rule.limits.size() < 2 ? "" : print_quotas(draft.rule.limits);
}

void read_cost_header(Reader& reader, const Node& node, RuleCost& out) {
  read_header_name(reader, node, "the name of a header", out.header);
}
void read_cost_default(Reader& reader, const Node& node, RuleCost& out) {
  out.permits = reader.whole(node, 0, kCostMax).value_or(1);
}
void read_cost_max(Reader& reader, const Node& node, RuleCost& out) {
  out.max = reader.whole(node, 1, kCostMax).value_or(out.max);
}

constexpr Field<RuleCost> kCostFields[] = {
    {"header",
     R"({"type":"string"})",
     {.about = "The header whose value is the cost.",
      .type = "name of a header",
      .if_absent = "required",
      .examples = "x-cost"},
     read_cost_header,
     [](const RuleCost& cost) { return flow_text(cost.header); }},
    {"default",
     R"({"type":"integer","minimum":0,"maximum":1000000000})",
     {.about = "The cost if the header is missing, or is not a number of at least 1.",
      .type = "integer, 0 to 1,000,000,000",
      .default_value = "1",
      .examples = "5"},
     read_cost_default,
     [](const RuleCost& cost) { return cost.permits == 1 ? std::string() : std::to_string(cost.permits); }},
    {"max",
     R"({"type":"integer","minimum":1,"maximum":1000000000})",
     {.about = "The highest cost. A larger value in the header costs this much.",
      .type = "integer, 1 to 1,000,000,000",
      .default_value = "1000000",
      .examples = "1000"},
     read_cost_max,
     [](const RuleCost& cost) { return cost.max == RuleCost{}.max ? std::string() : std::to_string(cost.max); }},
};

void read_cost(Reader& reader, const Node& node, RuleDraft& draft) {
  RuleCost& cost = draft.rule.cost;
  if (!node.is_map()) {
    if (const auto permits = reader.whole(node, 0, kCostMax)) cost.permits = *permits;
    return;
  }
  reader.fields(node, cost_fields(), "a number or a map such as {header: x-cost}", cost);
  if (Reader::member(node, "header") == nullptr)
    reader.wrong(node.at, "`cost` has no `header`; write {header: x-cost}");
}

std::string print_cost(const RuleDraft& draft) {
  const RuleCost& cost = draft.rule.cost;
  if (!cost.header.empty()) return flow_map(print_fields(cost_fields(), cost));
  return cost.permits == 1 ? "" : std::to_string(cost.permits);
}

void read_on_backend_error(Reader& reader, const Node& node, RuleDraft& draft) {
  constexpr std::array<std::string_view, 3> kWords = {"local", "open", "closed"};
  const auto known = std::ranges::find(kWords, std::string_view(node.text));
  if (!node.is_scalar() || known == kWords.end()) return reader.wrong_kind(node, "local, open or closed");
  draft.rule.on_backend_error = static_cast<OnBackendError>(known - kWords.begin());
}

std::string print_on_backend_error(const RuleDraft& draft) {
  if (draft.rule.on_backend_error == OnBackendError::open) return "open";
  return draft.rule.on_backend_error == OnBackendError::closed ? "closed" : "";
}

template <bool Rule::*flag>
void read_flag(Reader& reader, const Node& node, RuleDraft& draft) {
  draft.rule.*flag = reader.boolean(node).value_or(false);
}
template <bool Rule::*flag>
std::string print_flag(const RuleDraft& draft) {
  return draft.rule.*flag ? "true" : "";
}

template <std::string Rule::*text>
void read_text(Reader& reader, const Node& node, RuleDraft& draft) {
  draft.rule.*text = reader.text(node, "a text").value_or("");
}
template <std::string Rule::*text>
std::string print_text(const RuleDraft& draft) {
  return (draft.rule.*text).empty() ? "" : flow_text(draft.rule.*text);
}

void read_phase(Reader& reader, const Node& node, RuleDraft& draft) {
  if (node.is_scalar() && (node.text == "key" || node.text == "clock")) {
    draft.rule.phase_by_key = node.text == "key";
  } else {
    reader.wrong_kind(node, "clock or key");
  }
}

void read_expires_at(Reader& reader, const Node& node, RuleDraft& draft) {
  const auto text = reader.text(node, "a time such as 2026-12-31");
  if (!text) return;
  const auto time = parse_time(*text);
  if (time) {
    draft.rule.expires_at = *time;
  } else {
    reader.wrong(node, "expires_at", time.error());
  }
}

void read_retry_jitter(Reader& reader, const Node& node, RuleDraft& draft) {
  const auto text = reader.text(node, "a percentage of the wait such as 10%, or a duration such as 5s");
  if (!text) return;
  if (const auto percent = percent_of(*text)) {
    draft.rule.retry_jitter.percent = *percent;
    return;
  }
  const auto most = parse_duration(*text);
  if (most) {
    draft.rule.retry_jitter.most = *most;
  } else {
    reader.wrong(node.at, "`retry_jitter`: " + in_quotes(*text) +
                              " is neither a percentage of the wait such as 10% nor a duration such as 5s");
  }
}

std::string print_retry_jitter(const RuleDraft& draft) {
  const RetryJitter& jitter = draft.rule.retry_jitter;
  if (jitter.percent > 0) return std::to_string(jitter.percent) + '%';
  return jitter.most > Micros{0} ? duration_text(jitter.most.count()) : "";
}

constexpr std::string_view kText = R"({"type":"string","minLength":1,"maxLength":1024})";
constexpr std::string_view kFlag = R"({"type":"boolean"})";
constexpr std::string_view kQuota = R"({"$ref":"#/$defs/quota"})";

// `algorithm` precedes the limits, because it decides how they are parsed.
constexpr Field<RuleDraft> kRuleFields[] = {
    {"name",
     R"({"type":["string","integer"],"minLength":1,"maxLength":64,"pattern":"^[A-Za-z0-9_.:/-]+$"})",
     {.about = "The rule's name in answers, logs and metrics. The rule's counts belong to it: under a new name, they "
               "start again.",
      .type = "1 to 64 of `A-Z a-z 0-9 _ - . : /`, unique",
      .if_absent = "required",
      .examples = "login"},
     read_name,
     print_text<&Rule::name>},
    {"match",
     R"({"anyOf":[{"const":"otherwise"},{"$ref":"#/$defs/match"}]})",
     {.about = "Which requests the rule applies to.",
      .type = "map of the keys of `match`, or `otherwise`",
      .if_absent = "all requests",
      .examples = "{path: /api/login, method: POST}\notherwise"},
     [](Reader& r, const Node& n, RuleDraft& d) { read_match(r, n, d.rule.match); },
     [](const RuleDraft& d) { return print_match(d.rule.match); }},
    {"per",
     R"({"$ref":"#/$defs/per"})",
     {.about = "The attributes that Weir counts separately. `global`: one count for all requests.",
      .type = "attribute, list of 1 to 8, or `global`",
      .if_absent = "required for a rule that counts",
      .examples = "identity\n[tenant, header:x-org]\nip/24\nglobal"},
     [](Reader& r, const Node& n, RuleDraft& d) { read_dimensions(r, n, d.rule.per); },
     [](const RuleDraft& d) { return print_dimensions(d.rule.per); }},
    {"algorithm",
     R"({"$ref":"#/$defs/algorithm"})",
     {.about = "How Weir counts. A limit that names a calendar unit or a burst implies its own algorithm.",
      .type = "name of an algorithm, except `concurrency`",
      .default_value = "sliding_window",
      .examples = "token_bucket"},
     read_algorithm,
     print_algorithm},
    {"limit",
     kQuota,
     {.about = "How many permits in which time. `0/second` is a ban. `unlimited` exempts from every rule except bans. "
               "`plan` applies the limits of the subject's plan.",
      .type = "limit, `unlimited` or `plan`",
      .if_absent = "required, unless `limits` is given",
      .examples = "100/minute\n10/s burst 50\n100/calendar_day Europe/Berlin\n0/second\nunlimited\nplan"},
     read_limits,
     print_limit},
    {"limits",
     R"({"type":"array","items":{"$ref":"#/$defs/quota"},"minItems":1,"maxItems":8})",
     {.about = "Several limits that all apply.",
      .type = "list of 1 to 8 limits",
      .if_absent = "required, unless `limit` is given",
      .examples = "[10/second, 1000/hour]"},
     read_limits,
     print_limits},
    {"cost",
     R"({"anyOf":[{"type":"integer","minimum":0,"maximum":1000000000},{"$ref":"#/$defs/cost"}]})",
     {.about = "How many permits a request costs: a number, or the value of a header. The cost that the caller sends "
               "multiplies it.",
      .type = "integer, 0 to 1,000,000,000, or a map of the keys below",
      .default_value = "1",
      .examples = "5\n{header: x-cost, default: 1, max: 1000}"},
     read_cost,
     print_cost},
    {"mode",
     R"({"anyOf":[{"enum":["enforce","shadow","off",false]},{"type":"string","pattern":"^[0-9]{1,3}%$"}]})",
     {.about = "`enforce`. `shadow`: count, but never deny. `off`: ignore the rule. `30%`: enforce for 30 % of the "
               "keys, shadow for the rest.",
      .type = "`enforce`, `shadow`, `off`, or `0%` to `100%`",
      .default_value = "enforce",
      .examples = "shadow\n30%"},
     read_mode,
     print_mode},
    {"required",
     kFlag,
     {.about = "Whether the rule denies a request that lacks an attribute of `per`. If `false`, the rule does not "
               "apply to that request.",
      .type = "`true` or `false`",
      .default_value = "false",
      .examples = "true"},
     read_flag<&Rule::required>,
     print_flag<&Rule::required>},
    {"count_denied",
     kFlag,
     {.about = "Whether denied requests are charged, too, until the limit is full: for login attempts.",
      .type = "`true` or `false`",
      .default_value = "false",
      .examples = "true"},
     read_flag<&Rule::count_denied>,
     print_flag<&Rule::count_denied>},
    {"phase",
     R"({"enum":["clock","key"]})",
     {.about = "`key`: the windows of different keys begin at different times, so clients do not all come back at "
               "the same moment. Only for a `fixed_window` without a calendar unit.",
      .type = "`clock` or `key`",
      .default_value = "clock",
      .examples = "key"},
     read_phase,
     [](const RuleDraft& d) { return std::string(d.rule.phase_by_key ? "key" : ""); }},
    {"retry_jitter",
     R"({"type":"string"})",
     {.about = "Adds a random delay to the wait that clients receive: up to this part of the wait, or up to this time. "
               "It never shortens the wait.",
      .type = "percentage or duration",
      .default_value = "0%",
      .examples = "10%\n5s"},
     read_retry_jitter,
     print_retry_jitter},
    {"on_backend_error",
     R"({"enum":["local","open","closed"]})",
     {.about = "What applies while Redis is unavailable. `local`: this server's share. `open`: the whole limit on "
               "each server. `closed`: deny all requests.",
      .type = "`local`, `open` or `closed`",
      .default_value = "local",
      .examples = "closed"},
     read_on_backend_error,
     print_on_backend_error},
    {"owner",
     kText,
     {.about = "Whom to ask about the rule.",
      .type = "text of up to 1,024 bytes",
      .if_absent = "none",
      .examples = "security-team"},
     read_text<&Rule::owner>,
     print_text<&Rule::owner>},
    {"reason",
     kText,
     {.about = "Why the rule exists.",
      .type = "text of up to 1,024 bytes",
      .if_absent = "none",
      .examples = "incident 7"},
     read_text<&Rule::reason>,
     print_text<&Rule::reason>},
    {"expires_at",
     R"({"type":"string"})",
     {.about = "From this time on, the rule is off. A date means the start of that day, UTC.",
      .type = "date or time",
      .if_absent = "never",
      .examples = "2026-12-31\n2026-12-31T18:30:00+01:00"},
     read_expires_at,
     [](const RuleDraft& d) { return d.rule.expires_at ? flow_text(time_text(*d.rule.expires_at)) : std::string(); }},
};

std::string period_text(const Quota& quota) {
  const std::string text =
      to_string(Quota{.algorithm = quota.algorithm, .permits = 1, .period = quota.period, .calendar = quota.calendar});
  return text.substr(text.find('/') + 1);
}

// A rule by plan must first count by a subject, because that subject's plan decides.
void check_subject(Reader& reader, const Rule& rule) {
  constexpr std::array kSubjects = {AttributeKind::user, AttributeKind::api_key, AttributeKind::tenant,
                                    AttributeKind::ip, AttributeKind::identity};
  if (!rule.per.empty() && std::ranges::count(kSubjects, rule.per[0].kind) > 0) return;
  reader.wrong(rule.at, "rule " + in_quotes(rule.name) + " has limit: plan, so its `per` must begin with the " +
                            "subject: user, api_key, tenant, ip or identity");
}

// Every pattern of the rule must contain each `{part}` that it counts by, or some requests could not be counted.
void check_captures(Reader& reader, const Rule& rule) {
  const auto paths = std::ranges::find(rule.match.all, AttributeKind::path, &Condition::kind);
  for (const Dimension& dimension : rule.per) {
    if (dimension.kind != AttributeKind::capture) continue;
    bool is_named = paths != rule.match.all.end();
    if (is_named) {
      for (const std::string& text : paths->any_of) {
        const auto pattern = PathPattern::parse(text, reader.path_case_matters ? PathCase::kept : PathCase::folded);
        is_named = is_named && pattern && std::ranges::count(pattern->names(), dimension.name) > 0;
      }
    }
    if (!is_named) {
      reader.wrong(rule.at, "rule " + in_quotes(rule.name) + " counts per {" + dimension.name +
                                "}, which its path does not name; write match: {path: '/users/{" + dimension.name +
                                "}'}");
    }
  }
}

void check_rule(Reader& reader, const RuleDraft& draft) {
  const Rule& rule = draft.rule;
  const std::string who = "rule " + (rule.name.empty() ? std::string("without a name") : in_quotes(rule.name));
  if (rule.name.empty()) reader.wrong(rule.at, "a rule needs a `name`, which answers, logs and metrics show");
  if (!draft.has_limit) reader.wrong(rule.at, who + " has no `limit`; write limit: 100/minute, or limit: unlimited");
  if (rule.unlimited && draft.algorithm)
    reader.wrong(rule.at, who + " is unlimited, so it has no `algorithm`; remove the algorithm");
  if (rule.unlimited && rule.match.otherwise) {
    reader.wrong(rule.at, who + " exempts requests whose path no rule names; they pass without it, so remove the rule");
  }
  if (rule.unlimited && rule.percent < 100) {
    reader.wrong(rule.at, who + " is unlimited, so its mode cannot be a percentage; write enforce, shadow or off");
  }
  const auto is_fixed = [](const RuleLimit& limit) {
    return limit.quota.algorithm == Algorithm::fixed_window && !limit.quota.calendar;
  };
  if (rule.phase_by_key && (rule.by_plan || !std::ranges::all_of(rule.limits, is_fixed))) {
    reader.wrong(rule.at, who + " has phase: key, which only a fixed_window without a calendar unit can have");
  }
  check_windows(reader, "rule " + in_quotes(rule.name), rule.at, rule.limits);
  if (rule.by_plan) check_subject(reader, rule);
  check_captures(reader, rule);
}

}  // namespace

std::span<const Field<RuleDraft>> rule_fields() { return kRuleFields; }
std::span<const Field<RuleCost>> cost_fields() { return kCostFields; }

void read_dimensions(Reader& reader, const Node& node, std::vector<Dimension>& out) {
  if (node.is_scalar() && node.text == "global") return;
  reader.each(node, kDimensionsMax, Empty::refused, [&](const Node& one) {
    const auto text = reader.text(one, "an attribute such as user, or a list of attributes");
    if (!text) return;
    const auto dimension = parse_dimension(*text);
    if (!dimension) {
      const bool is_global = *text == "global";
      reader.wrong(one.at, "`" + std::string(reader.field()) + "`: " +
                               (is_global ? "`global` cannot be in a list: it is one count for all requests"
                                          : dimension.error().message));
    } else if (std::ranges::find(out, *dimension) != out.end()) {
      reader.wrong(one.at, "`" + std::string(reader.field()) + "` names " + in_quotes(*text) + " twice");
    } else {
      out.push_back(*dimension);
    }
  });
}

void read_header_name(Reader& reader, const Node& node, std::string_view wanted, std::string& out) {
  const auto text = reader.text(node, wanted);
  if (!text) return;
  const auto header = parse_dimension("header:" + *text);
  if (header) {
    out = header->name;
  } else {
    reader.wrong(node.at, header.error().message);
  }
}

std::string print_dimensions(const std::vector<Dimension>& dimensions) {
  if (dimensions.empty()) return "global";
  std::vector<std::string> texts;
  for (const Dimension& dimension : dimensions) texts.push_back(to_string(dimension));
  return flow_list(texts);
}

std::int64_t period_us(const Quota& quota) {
  constexpr std::int64_t kDays[] = {1, 7, 31, 366};
  if (!quota.calendar) return quota.period.count();
  return kDays[static_cast<std::size_t>(quota.calendar->unit)] * 86'400'000'000;
}

std::string window_id(const Rule& rule, std::span<const RuleLimit> beside, const RuleLimit& limit) {
  const bool is_main = rule.by_plan ? &limit == &beside.back() : beside.size() == 1;
  return is_main ? std::string() : period_text(limit.quota);
}

void read_quotas(Reader& reader, const Node& node, std::optional<Algorithm> algorithm, std::vector<RuleLimit>& out) {
  reader.each(node, kLimitsMaxOfRule, Empty::refused, [&](const Node& one) {
    auto quota = reader.quota(one, algorithm);
    if (!quota) return;
    out.push_back({*std::move(quota), one.text});
    std::ranges::replace(out.back().text, '\t', ' ');  // the text will be sent in header fields
  });
  std::ranges::stable_sort(out, {}, [](const RuleLimit& limit) { return period_us(limit.quota); });
}

std::string print_quotas(const std::vector<RuleLimit>& limits) {
  std::vector<std::string> texts;
  for (const RuleLimit& limit : limits) texts.push_back(limit_text(limit));
  return flow_list(texts);
}

void check_windows(Reader& reader, const std::string& who, Position at, std::span<const RuleLimit> limits) {
  for (const RuleLimit& b : limits) {
    for (const RuleLimit* a = limits.data(); a != &b; ++a) {
      if (a->quota.algorithm != b.quota.algorithm || period_text(a->quota) != period_text(b.quota)) continue;
      reader.wrong(at, who + " has two limits for the same period, " + in_quotes(a->text) + " and " +
                           in_quotes(b.text) + "; keep the smaller one");
    }
  }
}

std::optional<Rule> read_rule(Reader& reader, const Node& node) {
  RuleDraft draft;
  draft.rule.at = node.at;
  reader.fields(node, rule_fields(), "a map such as {name: login, per: ip, limit: 5/minute}", draft);
  if (!node.is_map()) return {};
  const bool counts =
      std::ranges::any_of(draft.rule.limits, [](const RuleLimit& limit) { return limit.quota.permits > 0; });
  if (counts && Reader::member(node, "per") == nullptr) {
    reader.wrong(node.at,
                 "rule " + in_quotes(draft.rule.name) + " has no `per`; write per: user, per: ip or per: global");
  }
  check_rule(reader, draft);
  return std::move(draft.rule);
}

std::string print_rule(const Rule& rule) { return flow_map(print_fields(rule_fields(), RuleDraft{.rule = rule})); }

}  // namespace weir
