// The keys of a rule: how they are read, checked against each other, and printed. See fields.h. The table is at the
// end, after the functions that its rows use.
#include <algorithm>

#include "base/nearest.h"
#include "policy/dimension.h"
#include "policy/fields.h"
#include "policy/path_pattern.h"

namespace weir::policy {
namespace {

constexpr std::size_t kNameBytesMax = 64;
constexpr std::size_t kDimensionsMax = 8;
constexpr std::int64_t kCostMax = 1'000'000'000;

void read_name(Reader& reader, const Node& node, RuleDraft& draft) {
  const auto text = reader.text(node, "a name such as login");
  if (!text) return;
  const bool is_sound = text->size() <= kNameBytesMax && std::ranges::all_of(*text, [](char c) {
                          return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || base::is_digit(c) ||
                                 std::string_view("_-.:/").find(c) != std::string_view::npos;
                        });
  if (!is_sound) {
    return reader.wrong(node.at,
                        "a name is 1 to 64 letters, digits and any of _ - . : /, not " + base::in_quotes(*text));
  }
  draft.name = *text;
}

// 30% -> 30
std::optional<int> percent_of(std::string_view text) {
  const auto percent = text.ends_with('%') ? base::to_number<int>(text.substr(0, text.size() - 1)) : std::nullopt;
  return percent && *percent >= 0 && *percent <= 100 ? percent : std::nullopt;
}

constexpr std::string_view kModes[] = {"enforce", "shadow", "off"};
constexpr Words kMode{kModes, "enforce, shadow, off, or the percentage of keys to enforce it for, such as 30%"};

void read_mode(Reader& reader, const Node& node, RuleDraft& draft) {
  if (node.text == "false") {
    draft.mode = Mode::off;
  } else if (const auto percent = percent_of(node.text)) {
    draft.percent = *percent;
  } else {
    read_word<RuleDraft, &Rule::mode, kMode>(reader, node, draft);
  }
}

std::optional<Node> write_mode(const RuleDraft& draft) {
  if (draft.mode == Mode::enforce && draft.percent != 100) return text_node(std::to_string(draft.percent) + '%');
  return write_word<RuleDraft, &Rule::mode, kMode>(draft);
}

void read_algorithm(Reader& reader, const Node& node, RuleDraft& draft) {
  const auto text = reader.text(node, "an algorithm such as token_bucket");
  if (!text) return;
  const auto algorithm = parse_algorithm(*text);
  if (!algorithm) return reader.wrong(node, "algorithm", algorithm.error());
  draft.algorithm = *algorithm;
}

// The text as written. For a limit built by hand, its canonical text.
std::string limit_text(const RuleLimit& limit) {
  return limit.text.empty() ? weir::to_string(limit.quota) : limit.text;
}

// Prints the algorithm only if the text of a quota does not imply it.
std::optional<Node> write_algorithm(const RuleDraft& draft) {
  if (draft.plan_algorithm) return write_value(*draft.plan_algorithm);
  for (const RuleLimit& limit : draft.limits) {
    const auto usual = parse_quota(limit_text(limit));
    if (!usual || !(*usual == limit.quota)) return write_value(limit.quota.algorithm);
  }
  return {};
}

void read_limits(Reader& reader, const Node& node, RuleDraft& draft) {
  if (std::exchange(draft.has_limit, true)) {
    return reader.wrong(node.at, "a rule has `limit` or `limits`, not both; several limits are a list");
  }
  if (node.is_scalar() && node.text == "unlimited") {
    draft.unlimited = true;
    return;
  }
  if (node.is_scalar() && node.text == "plan") {
    draft.by_plan = true;
    draft.plan_algorithm = draft.algorithm;
    return;
  }
  read_quotas(reader, node, draft.algorithm, draft.limits);
}

std::optional<Node> write_limit(const RuleDraft& draft) {
  if (draft.unlimited) return text_node("unlimited");
  if (draft.by_plan) return text_node("plan");
  if (draft.limits.size() != 1) return {};
  return write_quotas(draft.limits);
}

std::optional<Node> write_limits(const RuleDraft& draft) {
  if (draft.limits.size() < 2) return {};
  return write_quotas(draft.limits);
}

constexpr Field<RuleCost> kCostFields[] = {
    {"header",
     R"({"type":"string"})",
     {.about = "The header whose value is the cost.",
      .type = "name of a header",
      .if_absent = "required",
      .examples = "x-cost"},
     [](Reader& r, const Node& n, RuleCost& cost) { read_header_name(r, n, "the name of a header", cost.header); },
     write_member<RuleCost, &RuleCost::header>},
    {"default",
     R"({"type":"integer","minimum":0,"maximum":1000000000})",
     {.about = "The cost if the header is missing, or is not a number of at least 1.",
      .type = "integer, 0 to 1,000,000,000",
      .default_value = "1",
      .examples = "5"},
     read_whole<RuleCost, &RuleCost::permits, 0, kCostMax>,
     write_member<RuleCost, &RuleCost::permits>},
    {"max",
     R"({"type":"integer","minimum":1,"maximum":1000000000})",
     {.about = "The highest cost. A larger value in the header costs this much.",
      .type = "integer, 1 to 1,000,000,000",
      .default_value = "1000000",
      .examples = "1000"},
     read_whole<RuleCost, &RuleCost::max, 1, kCostMax>,
     write_member<RuleCost, &RuleCost::max>},
};

void read_cost(Reader& reader, const Node& node, RuleDraft& draft) {
  RuleCost& cost = draft.cost;
  if (!node.is_map()) {
    if (const auto permits = reader.whole(node, 0, kCostMax)) cost.permits = *permits;
    return;
  }
  reader.fields(node, cost_fields(), "a number or a map such as {header: x-cost}", cost);
  if (Reader::member(node, "header") == nullptr)
    reader.wrong(node.at, "`cost` has no `header`; write {header: x-cost}");
}

std::optional<Node> write_cost(const RuleDraft& draft) {
  if (!draft.cost.header.empty()) return write_fields(cost_fields(), draft.cost);
  return write_member<RuleCost, &RuleCost::permits>(draft.cost);
}

constexpr std::string_view kFallbacks[] = {"local", "open", "closed"};
constexpr Words kOnBackendError{kFallbacks, "local, open or closed"};
constexpr std::string_view kPhaseWords[] = {"clock", "key"};
constexpr Words kPhase{kPhaseWords, "clock or key"};

void read_expires_at(Reader& reader, const Node& node, RuleDraft& draft) {
  const auto text = reader.text(node, "a time such as 2026-12-31");
  if (!text) return;
  const auto time = parse_time(*text);
  if (!time) return reader.wrong(node, "expires_at", time.error());
  draft.expires_at = *time;
}

void read_retry_jitter(Reader& reader, const Node& node, RuleDraft& draft) {
  const auto text = reader.text(node, "a percentage of the wait such as 10%, or a duration such as 5s");
  if (!text) return;
  if (const auto percent = percent_of(*text)) {
    draft.retry_jitter.percent = *percent;
    return;
  }
  const auto most = parse_duration(*text);
  if (!most) {
    return reader.wrong(node.at, "`retry_jitter`: " + base::in_quotes(*text) +
                                     " is neither a percentage of the wait such as 10% nor a duration such as 5s");
  }
  draft.retry_jitter.most = *most;
}

std::optional<Node> write_retry_jitter(const RuleDraft& draft) {
  const RetryJitter& jitter = draft.retry_jitter;
  if (jitter.percent != 0) return text_node(std::to_string(jitter.percent) + '%');
  if (jitter.most > Micros{0}) return write_value(jitter.most);
  return {};
}

// A row for a text that is only shown.
template <std::string Rule::*member>
constexpr Field<RuleDraft> note_row(std::string_view name, std::string_view about, std::string_view example) {
  return {name,
          R"({"type":"string","minLength":1,"maxLength":1024})",
          {.about = about, .type = "text of up to 1,024 bytes", .if_absent = "none", .examples = example},
          [](Reader& r, const Node& n, RuleDraft& d) { d.*member = r.text(n, "a text").value_or(""); },
          write_member<RuleDraft, member>};
}

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
     write_member<RuleDraft, &Rule::name>},
    {"match",
     R"({"anyOf":[{"const":"otherwise"},{"$ref":"#/$defs/match"}]})",
     {.about = "Which requests the rule applies to.",
      .type = "map of the keys of `match`, or `otherwise`",
      .if_absent = "all requests",
      .examples = "{path: /api/login, method: POST}\notherwise"},
     [](Reader& r, const Node& n, RuleDraft& d) { read_match(r, n, d.match); },
     [](const RuleDraft& d) { return write_match(d.match); }},
    {"per",
     R"({"$ref":"#/$defs/per"})",
     {.about = "The attributes that Weir counts separately. `global`: one count for all requests.",
      .type = "attribute, list of 1 to 8, or `global`",
      .if_absent = "required for a rule that counts",
      .examples = "identity\n[tenant, header:x-org]\nip/24\nglobal"},
     [](Reader& r, const Node& n, RuleDraft& d) { read_dimensions(r, n, d.per); },
     [](const RuleDraft& d) { return std::optional(write_dimensions(d.per)); }},
    {"algorithm",
     R"({"$ref":"#/$defs/algorithm"})",
     {.about = "How Weir counts. A limit that names a calendar unit or a burst implies its own algorithm.",
      .type = "name of an algorithm, except `concurrency`",
      .default_value = "sliding_window",
      .examples = "token_bucket"},
     read_algorithm,
     write_algorithm},
    {"limit",
     kQuota,
     {.about = "How many permits in which time. `0/second` is a ban. `unlimited` exempts from every rule except bans. "
               "`plan` applies the limits of the subject's plan.",
      .type = "limit, `unlimited` or `plan`",
      .if_absent = "required, unless `limits` is given",
      .examples = "100/minute\n10/s burst 50\n100/calendar_day Europe/Berlin\n0/second\nunlimited\nplan"},
     read_limits,
     write_limit},
    {"limits",
     R"({"type":"array","items":{"$ref":"#/$defs/quota"},"minItems":1,"maxItems":8})",
     {.about = "Several limits that all apply.",
      .type = "list of 1 to 8 limits",
      .if_absent = "required, unless `limit` is given",
      .examples = "[10/second, 1000/hour]"},
     read_limits,
     write_limits},
    {"cost",
     R"({"anyOf":[{"type":"integer","minimum":0,"maximum":1000000000},{"$ref":"#/$defs/cost"}]})",
     {.about = "How many permits a request costs: a number, or the value of a header. The cost that the caller sends "
               "multiplies it.",
      .type = "integer, 0 to 1,000,000,000, or a map of the keys below",
      .default_value = "1",
      .examples = "5\n{header: x-cost, default: 1, max: 1000}"},
     read_cost,
     write_cost},
    {"mode",
     R"({"anyOf":[{"enum":["enforce","shadow","off",false]},{"type":"string","pattern":"^[0-9]{1,3}%$"}]})",
     {.about = "`enforce`: count and deny. `shadow`: count, but never deny. `off`: ignore the rule. `30%`: enforce for "
               "30 % of the keys, shadow for the rest.",
      .type = "`enforce`, `shadow`, `off`, or `0%` to `100%`",
      .default_value = "enforce",
      .examples = "shadow\n30%"},
     read_mode,
     write_mode},
    flag_row<RuleDraft, &Rule::required>(
        "required", "false",
        "Whether the rule denies a request that lacks an attribute of `per`. If `false`, the rule does not apply to "
        "that request."),
    flag_row<RuleDraft, &Rule::count_denied>(
        "count_denied", "false",
        "Whether denied requests are charged, too, until the limit is used up: for login attempts."),
    {"phase",
     R"({"enum":["clock","key"]})",
     {.about = "`key`: the windows of different keys begin at different times, so clients do not all come back at "
               "the same moment. Only for a `fixed_window` without a calendar unit.",
      .type = "`clock` or `key`",
      .default_value = "clock",
      .examples = "key"},
     read_word<RuleDraft, &Rule::phase_by_key, kPhase>,
     write_word<RuleDraft, &Rule::phase_by_key, kPhase>},
    {"retry_jitter",
     R"({"type":"string"})",
     {.about = "Adds a delay to the wait that clients receive, different for each client: up to this part of the wait, "
               "or up to this time. It never shortens the wait.",
      .type = "percentage or duration",
      .default_value = "0%",
      .examples = "10%\n5s"},
     read_retry_jitter,
     write_retry_jitter},
    {"on_backend_error",
     R"({"enum":["local","open","closed"]})",
     {.about = "What applies while Redis is unavailable. `local`: this server's share. `open`: the whole limit on "
               "each server. `closed`: deny all requests.",
      .type = "`local`, `open` or `closed`",
      .default_value = "local",
      .examples = "closed"},
     read_word<RuleDraft, &Rule::on_backend_error, kOnBackendError>,
     write_word<RuleDraft, &Rule::on_backend_error, kOnBackendError>},
    note_row<&Rule::owner>("owner", "Whom to ask about the rule.", "security-team"),
    note_row<&Rule::reason>("reason", "Why the rule exists.", "incident 7"),
    {"expires_at",
     R"({"type":"string"})",
     {.about = "From this time on, the rule is off. A date means the start of that day, UTC.",
      .type = "date or time",
      .if_absent = "never",
      .examples = "2026-12-31\n2026-12-31T18:30:00+01:00"},
     read_expires_at,
     [](const RuleDraft& d) -> std::optional<Node> {
       if (!d.expires_at) return {};
       return text_node(time_text(*d.expires_at));
     }},
};

std::string period_text(const Quota& quota) {
  const std::string text = weir::to_string(
      Quota{.algorithm = quota.algorithm, .permits = 1, .period = quota.period, .calendar = quota.calendar});
  return text.substr(text.find('/') + 1);
}

// A rule by plan must first count by a subject, because that subject's plan decides.
void check_subject(Reader& reader, const Rule& rule) {
  constexpr std::array kSubjects = {weir::AttributeKind::user, weir::AttributeKind::api_key,
                                    weir::AttributeKind::tenant, weir::AttributeKind::ip,
                                    weir::AttributeKind::identity};
  if (!rule.per.empty() && std::ranges::count(kSubjects, rule.per[0].kind) > 0) return;
  reader.wrong(rule.at, "rule " + base::in_quotes(rule.name) + " has limit: plan, so its `per` must begin with the " +
                            "subject: user, api_key, tenant, ip or identity");
}

// Every pattern of the rule must contain each `{part}` that it counts by, or some requests could not be counted.
void check_captures(Reader& reader, const Rule& rule) {
  const auto paths = std::ranges::find(rule.match.all, weir::AttributeKind::path, &Condition::kind);
  for (const Dimension& dimension : rule.per) {
    if (dimension.kind != weir::AttributeKind::capture) continue;
    bool is_named = paths != rule.match.all.end();
    if (is_named) {
      for (const std::string& text : paths->any_of) {
        const auto pattern = PathPattern::parse(text, reader.path_case_matters ? PathCase::kept : PathCase::folded);
        is_named = is_named && pattern && std::ranges::count(pattern->names(), dimension.name) > 0;
      }
    }
    if (!is_named) {
      reader.wrong(rule.at, "rule " + base::in_quotes(rule.name) + " counts per {" + dimension.name +
                                "}, which its path does not name; write match: {path: '/users/{" + dimension.name +
                                "}'}");
    }
  }
}

void check_rule(Reader& reader, const RuleDraft& draft) {
  const Rule& rule = draft;
  const std::string who = "rule " + (rule.name.empty() ? std::string("without a name") : base::in_quotes(rule.name));
  if (rule.name.empty()) reader.wrong(rule.at, "a rule needs a `name`, which answers, logs and metrics show");
  if (!draft.has_limit) reader.wrong(rule.at, who + " has no `limit`; write limit: 100/minute, or limit: unlimited");
  if (rule.unlimited && draft.algorithm)
    reader.wrong(rule.at, who + " is unlimited, so it has no `algorithm`; remove the algorithm");
  if (rule.unlimited && rule.match.otherwise) {
    reader.wrong(rule.at,
                 who + " is unlimited, so it cannot have `otherwise`; write the paths or clients that it exempts");
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
  check_windows(reader, "rule " + base::in_quotes(rule.name), rule.at, rule.limits);
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
      reader.wrong(one.at, "`" + std::string(reader.field()) + "` names " + base::in_quotes(*text) + " twice");
    } else {
      out.push_back(*dimension);
    }
  });
}

void read_header_name(Reader& reader, const Node& node, std::string_view wanted, std::string& out) {
  const auto text = reader.text(node, wanted);
  if (!text) return;
  const auto header = parse_dimension("header:" + *text);
  if (!header) return reader.wrong(node.at, header.error().message);
  out = header->name;
}

Node write_dimensions(const std::vector<Dimension>& dimensions) {
  if (dimensions.empty()) return text_node("global");
  std::vector<std::string> texts;
  for (const Dimension& dimension : dimensions) texts.push_back(weir::to_string(dimension));
  return list_node(texts);
}

std::string print_dimensions(const std::vector<Dimension>& dimensions) { return flow(write_dimensions(dimensions)); }

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

Node write_quotas(const std::vector<RuleLimit>& limits) {
  std::vector<std::string> texts;
  for (const RuleLimit& limit : limits) texts.push_back(limit_text(limit));
  return list_node(texts);
}

void check_windows(Reader& reader, const std::string& who, Position at, std::span<const RuleLimit> limits) {
  for (const RuleLimit& b : limits) {
    for (const RuleLimit* a = limits.data(); a != &b; ++a) {
      if (a->quota.algorithm != b.quota.algorithm || period_text(a->quota) != period_text(b.quota)) continue;
      reader.wrong(at, who + " has two limits for the same period, " + base::in_quotes(a->text) + " and " +
                           base::in_quotes(b.text) + "; keep the smaller one");
    }
  }
}

std::optional<Rule> read_rule(Reader& reader, const Node& node) {
  RuleDraft draft;
  draft.at = node.at;
  reader.fields(node, rule_fields(), "a map such as {name: login, per: ip, limit: 5/minute}", draft);
  if (!node.is_map()) return {};
  const bool counts = std::ranges::any_of(draft.limits, [](const RuleLimit& limit) { return limit.quota.permits > 0; });
  if (counts && Reader::member(node, "per") == nullptr) {
    reader.wrong(node.at,
                 "rule " + base::in_quotes(draft.name) + " has no `per`; write per: user, per: ip or per: global");
  }
  check_rule(reader, draft);
  return std::optional<Rule>(std::move(draft));
}

}  // namespace weir::policy
