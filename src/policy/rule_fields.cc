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
     [](Reader& r, const Node& n, RuleCost& cost) { read_header_name(r, n, "the name of a header", cost.header); },
     write_member<RuleCost, &RuleCost::header>},
    {"default", read_whole<RuleCost, &RuleCost::permits, 0, kCostMax>, write_member<RuleCost, &RuleCost::permits>},
    {"max", read_whole<RuleCost, &RuleCost::max, 1, kCostMax>, write_member<RuleCost, &RuleCost::max>},
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
constexpr Field<RuleDraft> note_row(std::string_view name) {
  return {name, [](Reader& r, const Node& n, RuleDraft& d) { d.*member = r.text(n, "a text").value_or(""); },
          write_member<RuleDraft, member>};
}

// `algorithm` precedes the limits, because it decides how they are parsed.
constexpr Field<RuleDraft> kRuleFields[] = {
    {"name", read_name, write_member<RuleDraft, &Rule::name>},
    {"match", [](Reader& r, const Node& n, RuleDraft& d) { read_match(r, n, d.match); },
     [](const RuleDraft& d) { return write_match(d.match); }},
    {"per", [](Reader& r, const Node& n, RuleDraft& d) { read_dimensions(r, n, d.per); },
     [](const RuleDraft& d) { return std::optional(write_dimensions(d.per)); }},
    {"algorithm", read_algorithm, write_algorithm},
    {"limit", read_limits, write_limit},
    {"limits", read_limits, write_limits},
    {"cost", read_cost, write_cost},
    {"mode", read_mode, write_mode},
    flag_row<RuleDraft, &Rule::required>("required"),
    flag_row<RuleDraft, &Rule::count_denied>("count_denied"),
    {"phase", read_word<RuleDraft, &Rule::phase_by_key, kPhase>, write_word<RuleDraft, &Rule::phase_by_key, kPhase>},
    {"retry_jitter", read_retry_jitter, write_retry_jitter},
    {"on_backend_error", read_word<RuleDraft, &Rule::on_backend_error, kOnBackendError>,
     write_word<RuleDraft, &Rule::on_backend_error, kOnBackendError>},
    note_row<&Rule::owner>("owner"),
    note_row<&Rule::reason>("reason"),
    {"expires_at", read_expires_at,
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
