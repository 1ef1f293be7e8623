// Converts database rows to plan terms, or refuses them. See plan_judge.h.
#include "control/plan_judge.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <vector>

#include "base/nearest.h"
#include "policy/dimension.h"
#include "policy/overrides.h"
#include "policy/subject.h"
#include "weir/limit.h"
#include "weir/verdict.h"

namespace weir {
namespace {

constexpr std::size_t kShownBytes = 80;

tl::unexpected<Error> refuse(std::string message) { return fail(ErrorCode::invalid_argument, std::move(message)); }

Result<std::string> judge_plan(const PlanPolicy& plans, const PlanRow& row) {
  if (!row.has_plan) return std::string();
  if (!row.plan) return refuse("its plan is NULL; set a plan of the config, or remove the row");
  if (std::ranges::count(plans.tiers, *row.plan, &PlanTier::name) > 0) return *row.plan;
  std::vector<std::string_view> names;
  std::string known;
  for (const PlanTier& tier : plans.tiers) {
    names.push_back(tier.name);
    known.append(known.empty() ? "" : ", ").append(tier.name);
  }
  const std::string_view meant = nearest(*row.plan, names);
  return refuse("unknown plan " + in_quotes(*row.plan, kShownBytes) +
                (meant.empty() ? "; the plans are " + known : "; did you mean " + in_quotes(meant) + "?"));
}

// The algorithm that the rule counts with: that of the longest of any plan's limits.
std::optional<Algorithm> counted_by(const Rule& rule) {
  const auto tier = std::ranges::find_if(rule.tiers, [](const PlanTier& one) { return !one.limits.empty(); });
  return tier == rule.tiers.end() ? std::nullopt : std::optional(tier->limits.back().quota.algorithm);
}

std::optional<std::string> wrong_with(const std::vector<RuleLimit>& limits, const Rule& rule) {
  for (const RuleLimit& limit : limits) {
    if (limit.quota.permits == 0) return "deny every request; to block a client, use weir keys ban";
  }
  const Algorithm algorithm = limits.back().quota.algorithm;
  const auto wanted = counted_by(rule);
  if (!wanted || *wanted == algorithm) return {};
  return "use " + std::string(to_string(algorithm)) + ", but the rule counts with " + std::string(to_string(*wanted)) +
         ", so its counts would be lost";
}

// Validates them for every rule that would apply them.
Result<std::string> judge_limits(const Policy& policy, const std::string& limits) {
  const auto compiled = [](const Quota& quota) { return compile(quota); };
  std::size_t charges = 0;
  for (const Rule& rule : policy.rules) {
    if (!rule.by_plan) continue;
    const auto parsed = parse_limits(limits, rule.plan_algorithm, compiled);
    if (!parsed) return refuse("its limits " + in_quotes(limits, kShownBytes) + ": " + parsed.error().message);
    if (const auto wrong = wrong_with(*parsed, rule)) {
      return refuse("its limits " + in_quotes(limits, kShownBytes) + ' ' + *wrong);
    }
    charges += parsed->size();
  }
  if (charges > kChargesMax)
    return refuse("it has too many limits for all rules with `limit: plan` together; write fewer");
  return limits;
}

Result<Micros> judge_until(const std::optional<std::string>& until) {
  if (!until) return Micros{0};
  std::int64_t seconds = 0;
  const auto [end, error] = std::from_chars(until->data(), until->data() + until->size(), seconds);
  if (error == std::errc{} && end == until->data() + until->size()) {
    if (seconds > 0 && seconds < kTimeEnd / 1'000'000) return Micros{seconds * 1'000'000};
    return refuse("it ends at " + in_quotes(*until, kShownBytes) + ", which is not between 1970 and 2112");
  }
  auto time = parse_time(*until);
  if (!time) return refuse("it ends at " + in_quotes(*until, kShownBytes) + ": " + time.error().message);
  return time;
}

}  // namespace

Result<JudgedRow> judge_row(const Policy& policy, const PlanRow& row) {
  auto plan = judge_plan(policy.plans, row);
  if (!plan) return fail(std::move(plan.error()));
  JudgedRow out{.plan = *std::move(plan)};
  if (!row.has_override) return out;
  if (!row.limits) return refuse("its limits are NULL; set them, such as 5000/minute, or remove the row");
  auto limits = judge_limits(policy, *row.limits);
  if (!limits) return fail(std::move(limits.error()));
  out.instead = *std::move(limits);
  const auto until = judge_until(row.until);
  if (!until) return fail(until.error());
  out.until = *until;
  return out;
}

Result<std::string> canonical_subject(std::string_view text) {
  constexpr std::array<std::string_view, 4> kKinds = {"user", "tenant", "api_key", "ip"};
  const std::size_t colon = text.find(':');
  const std::string_view kind = text.substr(0, colon);
  if (colon == text.npos || std::ranges::count(kKinds, kind) == 0) {
    return refuse("unknown subject " + in_quotes(text, kShownBytes) +
                  "; write user:42, tenant:acme, api_key:… or ip:192.0.2.1");
  }
  const std::string value(text.substr(colon + 1));
  if (value.empty() || value.size() > 512)
    return refuse("a subject must have 1 to 512 bytes after " + std::string(kind) + ":");
  if (kind == "ip" || kind == "api_key") {
    const auto id = parse_subject(text);
    if (!id) return fail(id.error());
    return subject_text(*id);
  }
  return std::string(kind) + ':' + value;
}

}  // namespace weir
