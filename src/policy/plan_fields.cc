// The `plans` of a config: the tiers, and the source that says which subject is on which plan. See fields.h.
//
// Tiers are read once, and again for each rule by plan, because a rule may choose another algorithm. The table is at
// the end, after the functions that its rows use.
#include <algorithm>

#include "base/nearest.h"
#include "policy/fields.h"

namespace weir::policy {
namespace {

constexpr std::size_t kTiersMax = 64;
constexpr std::size_t kTierNameBytesMax = 64;

void read_source(Reader& reader, const Node& node, PlanPolicy& out) {
  constexpr std::string_view kWanted = "sqlite:plans.db or postgresql://host/database";
  const auto text = reader.text(node, kWanted);
  if (!text) return;
  const bool is_known =
      text->starts_with("sqlite:") || text->starts_with("postgresql://") || text->starts_with("postgres://");
  if (!is_known) return reader.wrong_kind(node, kWanted);
  if (has_password(*text)) {
    return reader.wrong(node.at,
                        "`source`: the address contains a password, which everyone who reads this config would see; "
                        "write it into a file: postgresql://weir@db/app?passfile=/etc/weir/pgpass");
  }
  out.source = *text;
}

void read_query(Reader& reader, const Node& node, PlanPolicy& out) {
  const auto text = reader.text(node, "a query such as SELECT plan FROM users WHERE user_id = $1");
  if (!text) return;
  if (text->find("$1") == text->npos) {
    return reader.wrong(node.at, "`query` must contain $1, the subject: WHERE user_id = $1");
  }
  out.query = *text;
}

void read_tier(Reader& reader, const Node& name, const Node& value, PlanPolicy& out) {
  PlanTier tier;
  tier.name = reader.text(name, "the name of a plan such as free").value_or("");
  const bool is_sound = !tier.name.empty() && tier.name.size() <= kTierNameBytesMax &&
                        std::ranges::all_of(tier.name, [](char c) { return c > ' ' && c < '\x7f'; });
  if (!is_sound) {
    return reader.wrong(
        name.at, "the name of a plan has 1 to 64 ASCII characters and no spaces; found " + base::in_quotes(tier.name));
  }
  if (std::ranges::count(out.tiers, tier.name, &PlanTier::name) > 0) {
    return reader.wrong(name.at, "two plans are called " + base::in_quotes(tier.name));
  }
  tier.unlimited = value.is_scalar() && value.text == "unlimited";
  if (!tier.unlimited) read_quotas(reader, value, {}, tier.limits);
  check_windows(reader, "plan " + base::in_quotes(tier.name), name.at, tier.limits);
  out.tiers.push_back(std::move(tier));
}

void read_tiers(Reader& reader, const Node& node, PlanPolicy& out) {
  if (!node.is_map() || node.items.empty()) {
    return reader.wrong_kind(node, "a map such as {free: 100/minute, pro: [50/second, 1000/minute]}");
  }
  if (node.items.size() / 2 > kTiersMax) {
    return reader.wrong(node.at, "there are more than " + std::to_string(kTiersMax) + " plans");
  }
  for (std::size_t i = 0; i + 1 < node.items.size(); i += 2) read_tier(reader, node.items[i], node.items[i + 1], out);
}

std::optional<Node> write_tiers(const PlanPolicy& plans) {
  Node out{.kind = Node::Kind::map};
  for (const PlanTier& tier : plans.tiers) {
    out.items.push_back(text_node(tier.name));
    out.items.push_back(tier.unlimited ? text_node("unlimited") : write_quotas(tier.limits));
  }
  return out;
}

constexpr Field<PlanPolicy> kPlanFields[] = {
    {"source", read_source, write_member<PlanPolicy, &PlanPolicy::source>},
    {"query", read_query, write_member<PlanPolicy, &PlanPolicy::query>},
    {"default",
     [](Reader& r, const Node& n, PlanPolicy& p) { p.fallback = r.text(n, "the name of a plan").value_or(""); },
     write_member<PlanPolicy, &PlanPolicy::fallback>},
    {"tiers", read_tiers, write_tiers},
    {"subjects", read_whole<PlanPolicy, &PlanPolicy::subjects, 100, 10'000'000>,
     write_member<PlanPolicy, &PlanPolicy::subjects>},
    {"refresh",
     [](Reader& r, const Node& n, PlanPolicy& p) {
       r.span(n, "a duration from 1s to 1h", Micros{1'000'000}, Micros{3'600'000'000}, p.refresh);
     },
     write_member<PlanPolicy, &PlanPolicy::refresh>},
    {"wait",
     [](Reader& r, const Node& n, PlanPolicy& p) {
       r.span(n, "a duration from 0s (never wait) to 100ms", Micros{0}, Micros{100'000}, p.wait);
     },
     write_member<PlanPolicy, &PlanPolicy::wait>},
};

std::string_view nearest_tier(const PlanPolicy& plans, std::string_view name) {
  std::vector<std::string_view> names;
  for (const PlanTier& tier : plans.tiers) names.push_back(tier.name);
  return base::nearest(name, names);
}

void check_plans(Reader& reader, Position at, const PlanPolicy& plans) {
  if (plans.tiers.empty()) return reader.wrong(at, "`plans` has no `tiers`: write tiers: {free: 100/minute}");
  if (plans.fallback.empty()) {
    return reader.wrong(
        at, "`plans` has no `default`, the plan of subjects without one; write default: " + plans.tiers[0].name);
  }
  if (std::ranges::count(plans.tiers, plans.fallback, &PlanTier::name) == 0) {
    const std::string_view meant = nearest_tier(plans, plans.fallback);
    reader.wrong(at, "`default`: there is no plan called " + base::in_quotes(plans.fallback) +
                         (meant.empty() ? "" : "; did you mean " + base::in_quotes(meant) + "?"));
  }
  if (plans.source.empty() && !plans.query.empty())
    reader.wrong(at, "`query` needs a `source`; write source: sqlite:plans.db or postgresql://host/database");
}

// Adds a tier to a rule, under the rule's algorithm.
void resolve(Reader& reader, const PlanTier& tier, Rule& rule) {
  PlanTier out = tier;
  for (RuleLimit& limit : out.limits) {
    if (!rule.plan_algorithm) break;
    const Node written{.at = rule.at, .text = limit.text.empty() ? weir::to_string(limit.quota) : limit.text};
    if (auto quota = reader.quota(written, rule.plan_algorithm)) limit.quota = *std::move(quota);
  }
  rule.tiers.push_back(std::move(out));
}

// Limits whose count continues when the plan changes must share an algorithm, or the count would start again.
void check_algorithms(Reader& reader, const Rule& rule) {
  const PlanTier* first = nullptr;
  for (const PlanTier& tier : rule.tiers) {
    if (tier.limits.empty()) continue;
    if (first == nullptr) first = &tier;
    const Algorithm a = first->limits.back().quota.algorithm, b = tier.limits.back().quota.algorithm;
    if (a == b) continue;
    reader.wrong(rule.at,
                 "rule " + base::in_quotes(rule.name) + " would count plan " + base::in_quotes(first->name) + " by " +
                     std::string(weir::to_string(a)) + " and plan " + base::in_quotes(tier.name) + " by " +
                     std::string(weir::to_string(b)) +
                     ", so a subject's count would restart when its plan changes; give the rule an `algorithm`");
  }
}

}  // namespace

std::span<const Field<PlanPolicy>> plan_fields() { return kPlanFields; }

void read_plans(Reader& reader, const Node& node, PlanPolicy& out) {
  reader.fields(node, plan_fields(), "a map such as {default: free, tiers: {free: 100/minute}}", out);
  if (node.is_map()) check_plans(reader, node.at, out);
}

void resolve_plans(Reader& reader, Policy& policy) {
  for (Rule& rule : policy.rules) {
    if (!rule.by_plan) continue;
    if (policy.plans.tiers.empty()) {
      reader.wrong(rule.at,
                   "rule " + base::in_quotes(rule.name) +
                       " has limit: plan, but the config has no `plans`; write plans: {default: free, tiers: {free: "
                       "100/minute}}");
    }
    for (const PlanTier& tier : policy.plans.tiers) resolve(reader, tier, rule);
    check_algorithms(reader, rule);
  }
}

}  // namespace weir::policy
