// Creates and retires plan directories as the policy changes. See plan_control.h.
#include "control/plan_control.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/nearest.h"
#include "base/sha256.h"
#include "base/text.h"
#include "log/log.h"
#include "policy/dimension.h"
#include "policy/overrides.h"
#include "policy/subject.h"
#include "weir/limit.h"
#include "weir/verdict.h"

namespace weir::control {
namespace {

constexpr std::size_t kShownBytes = 80;

tl::unexpected<Error> refuse(std::string message) { return fail(ErrorCode::invalid_argument, std::move(message)); }

Result<std::string> check_plan(const PlanPolicy& plans, const plans::PlanRow& row) {
  if (!row.has_plan) return std::string();
  if (!row.plan) return refuse("its plan is NULL; set a plan of the config, or remove the row");
  if (std::ranges::count(plans.tiers, *row.plan, &PlanTier::name) > 0) return *row.plan;
  std::vector<std::string_view> names;
  std::string known;
  for (const PlanTier& tier : plans.tiers) {
    names.push_back(tier.name);
    known.append(known.empty() ? "" : ", ").append(tier.name);
  }
  const std::string_view meant = base::nearest(*row.plan, names);
  return refuse("unknown plan " + base::in_quotes(*row.plan, kShownBytes) +
                (meant.empty() ? "; the plans are " + known : "; did you mean " + base::in_quotes(meant) + "?"));
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
  return "use " + std::string(weir::to_string(algorithm)) + ", but the rule counts with " +
         std::string(weir::to_string(*wanted)) + ", so its counts would be lost";
}

// Validates them for every rule that would apply them.
Result<std::string> check_limits(const Policy& policy, const std::string& limits) {
  const auto compiled = [](const Quota& quota) { return compile(quota); };
  std::size_t charges = 0;
  for (const Rule& rule : policy.rules) {
    if (!rule.by_plan) continue;
    const auto parsed = policy::parse_limits(limits, rule.plan_algorithm, compiled);
    if (!parsed) return refuse("its limits " + base::in_quotes(limits, kShownBytes) + ": " + parsed.error().message);
    if (const auto wrong = wrong_with(*parsed, rule)) {
      return refuse("its limits " + base::in_quotes(limits, kShownBytes) + ' ' + *wrong);
    }
    charges += parsed->size();
  }
  if (charges > kChargesMax)
    return refuse("it has too many limits for all rules with `limit: plan` together; write fewer");
  return limits;
}

Result<Micros> check_until(const std::optional<std::string>& until) {
  if (!until) return Micros{0};
  if (const auto seconds = base::to_number<std::int64_t>(*until)) {
    if (*seconds > 0 && *seconds < kTimeEnd / 1'000'000) return Micros{*seconds * 1'000'000};
    return refuse("it ends at " + base::in_quotes(*until, kShownBytes) + ", which is not between 1970 and 2112");
  }
  auto time = policy::parse_time(*until);
  if (!time) return refuse("it ends at " + base::in_quotes(*until, kShownBytes) + ": " + time.error().message);
  return time;
}

}  // namespace

Result<plans::CheckedRow> check_row(const Policy& policy, const plans::PlanRow& row) {
  auto plan = check_plan(policy.plans, row);
  if (!plan) return fail(std::move(plan.error()));
  plans::CheckedRow out{.plan = *std::move(plan)};
  if (!row.has_override) return out;
  if (!row.limits) return refuse("its limits are NULL; set them, such as 5000/minute, or remove the row");
  auto limits = check_limits(policy, *row.limits);
  if (!limits) return fail(std::move(limits.error()));
  out.instead = *std::move(limits);
  const auto until = check_until(row.until);
  if (!until) return fail(until.error());
  out.until = *until;
  return out;
}

Result<std::string> canonical_subject(std::string_view text) {
  constexpr std::array<std::string_view, 4> kKinds = {"user", "tenant", "api_key", "ip"};
  const std::size_t colon = text.find(':');
  const std::string_view kind = text.substr(0, colon);
  if (colon == text.npos || std::ranges::count(kKinds, kind) == 0) {
    return refuse("unknown subject " + base::in_quotes(text, kShownBytes) +
                  "; write user:42, tenant:acme, api_key:… or ip:192.0.2.1");
  }
  const std::string value(text.substr(colon + 1));
  if (value.empty() || value.size() > 512)
    return refuse("a subject must have 1 to 512 bytes after " + std::string(kind) + ":");
  if (kind == "ip" || kind == "api_key") {
    const auto id = policy::parse_subject(text);
    if (!id) return fail(id.error());
    return policy::subject_text(*id);
  }
  return std::string(kind) + ':' + value;
}

namespace {

constexpr Micros kFirstReading{2'000'000};  // a server starts without its plans rather than not at all

void log_event(const plans::PlanEvent& event) {
  switch (event.kind) {
    case plans::PlanEvent::Kind::unavailable:
      log::log(log::LogLevel::warn, "plan database unavailable, using the last known plans",
               {{"error", event.message}});
      break;
    case plans::PlanEvent::Kind::available:
      log::log(log::LogLevel::info, "plan database available again");
      break;
    case plans::PlanEvent::Kind::not_remembered:
      log::log(log::LogLevel::warn, "cannot save plans for the next restart", {{"error", event.message}});
      break;
    case plans::PlanEvent::Kind::refused_row:
      log::log(log::LogLevel::warn, "invalid plan row, its subject keeps the previous plan and limits",
               {{"subject", event.subject}, {"error", event.message}});
      break;
  }
}

// Whether the same directory serves both.
bool is_same_source(const PlanPolicy& a, const PlanPolicy& b) {
  return a.source == b.source && a.query == b.query && a.subjects == b.subjects && a.refresh == b.refresh &&
         a.wait == b.wait;
}

// Whether a row means the same under both.
bool checks_alike(const Policy& a, const Policy& b) {
  const auto rules_of = [](const Policy& policy) {
    std::vector<std::pair<std::optional<Algorithm>, std::vector<PlanTier>>> out;
    for (const Rule& rule : policy.rules) {
      if (rule.by_plan) out.emplace_back(rule.plan_algorithm, rule.tiers);
    }
    return out;
  };
  return a.plans == b.plans && rules_of(a) == rules_of(b);
}

// A relative file name is relative to the config's folder.
std::string seen_from(const std::string& folder, const std::string& source) {
  constexpr std::string_view kFile = "sqlite:";
  const bool is_relative = source.starts_with(kFile) && source.size() > kFile.size() && source[kFile.size()] != '/';
  return is_relative && !folder.empty() ? std::string(kFile) + folder + '/' + source.substr(kFile.size()) : source;
}

std::string limits_of(const Policy& policy, const std::string& plan) {
  const auto tier = std::ranges::find(policy.plans.tiers, plan, &PlanTier::name);
  if (tier == policy.plans.tiers.end()) return {};
  std::string out;
  for (const RuleLimit& limit : tier->limits) out.append(out.empty() ? "" : ", ").append(limit.text);
  return tier->unlimited ? "unlimited" : out;
}

}  // namespace

PlanControl::PlanControl(Gate& gate, std::string folder, std::string memory)
    : gate_(gate), folder_(std::move(folder)), memory_(std::move(memory)) {}

Result<void> PlanControl::check(const PlanPolicy& plans, const std::string& folder) {
  if (plans.source.empty()) return {};
  auto source = plans::make_plan_source({.url = seen_from(folder, plans.source), .query = plans.query});
  if (!source) return fail(source.error().code, "plans: " + source.error().message);
  return {};
}

Result<void> PlanControl::prepare(const Policy& policy) {
  const PlanPolicy& plans = policy.plans;
  if (next_ != nullptr && is_same_source(next_by_->plans, plans)) return {};
  next_ = nullptr;
  if (plans.source.empty()) return {};
  if (auto sound = check(plans, folder_); !sound) return sound;
  const auto before = directory();
  if (before != nullptr && is_same_source(this->policy(), plans)) return {};
  auto source = plans::make_plan_source({.url = seen_from(folder_, plans.source), .query = plans.query});
  if (!source) return fail(std::move(source.error()));
  const auto by = std::make_shared<const Policy>(policy);
  const plans::PlanDirectoryOptions options{.subjects_max = static_cast<std::size_t>(plans.subjects),
                                            .refresh = plans.refresh,
                                            .wait = plans.wait,
                                            .memory = memory_,
                                            .memory_of = base::hex(base::sha256(plans.source + '\n' + plans.query)),
                                            .check = [by](const plans::PlanRow& row) { return check_row(*by, row); },
                                            .report = log_event};
  auto made = std::make_shared<plans::PlanDirectory>(*std::move(source), options);
  if (!made->wait_until_read(kFirstReading) && before != nullptr) {
    return fail(ErrorCode::unavailable,
                "keeping the previous plan source: " + plans.source + " cannot be read: " + made->status().error);
  }
  next_ = std::move(made);
  next_by_ = by;
  return {};
}

Result<PolicyChanges> PlanControl::put(const Policy& policy) {
  if (auto ready = prepare(policy); !ready) return fail(std::move(ready.error()));
  const auto before = directory();
  const bool is_new = next_ != nullptr;
  auto next = policy.plans.source.empty() ? nullptr : is_new ? next_ : before;
  next_ = nullptr;
  auto applied = gate_.apply(policy, Force::yes, next);
  if (!applied) return applied;
  const auto by = std::make_shared<const Policy>(policy);
  const auto checked = is_new ? next_by_ : checked_by();
  const bool is_checked = checks_alike(checked == nullptr ? Policy{} : *checked, policy);
  if (next != nullptr && !is_checked) next->check_by([by](const plans::PlanRow& row) { return check_row(*by, row); });
  if (before != nullptr && before != next) before->retire();
  const base::MutexLock lock(mutex_);
  directory_ = std::move(next);
  checked_by_ = by;
  return applied;
}

std::shared_ptr<plans::PlanDirectory> PlanControl::directory() const {
  const base::MutexLock lock(mutex_);
  return directory_;
}

std::shared_ptr<const Policy> PlanControl::checked_by() const {
  const base::MutexLock lock(mutex_);
  return checked_by_;
}

PlanPolicy PlanControl::policy() const {
  const auto policy = checked_by();
  return policy == nullptr ? PlanPolicy{} : policy->plans;
}

Result<std::shared_ptr<plans::PlanDirectory>> PlanControl::needed() const {
  auto directory = this->directory();
  if (directory != nullptr) return directory;
  return fail(ErrorCode::out_of_range,
              "there is no plan database; add one to the config: plans: {source: sqlite:plans.db, …}");
}

Result<PlanView> PlanControl::show(std::string_view subject) const {
  auto directory = needed();
  if (!directory) return fail(std::move(directory.error()));
  auto who = canonical_subject(subject);
  if (!who) return fail(std::move(who.error()));
  auto row = (*directory)->look(*who);
  if (!row && row.error().code == ErrorCode::not_found) row = plans::PlanRow{.subject = *who};
  if (!row) return fail(std::move(row.error()));
  PlanView view{.row = *std::move(row)};
  const auto policy = checked_by();
  if (const auto checked = check_row(*policy, view.row); !checked) view.refused = checked.error().message;
  const PlanTerms terms = (*directory)->find(*who);
  view.plan = terms.plan;
  view.is_default = view.plan.empty();
  if (view.is_default) view.plan = policy->plans.fallback;
  view.limits = terms.limits != nullptr ? *terms.limits : limits_of(*policy, view.plan);
  return view;
}

Result<std::vector<plans::PlanRow>> PlanControl::list(std::string_view after, std::size_t most) const {
  auto directory = needed();
  if (!directory) return fail(std::move(directory.error()));
  return (*directory)->list(after, most);
}

Result<PlanView> PlanControl::write(plans::PlanChange change, const Author& by) {
  auto directory = needed();
  if (!directory) return fail(std::move(directory.error()));
  auto who = canonical_subject(change.subject);
  if (!who) return fail(std::move(who.error()));
  change.subject = *std::move(who);
  const auto policy = checked_by();
  plans::PlanRow row{.subject = change.subject};
  if (change.kind == plans::PlanChange::Kind::set_plan) {
    row.has_plan = true;
    row.plan = change.plan;
  } else if (change.kind == plans::PlanChange::Kind::set_override) {
    row.has_override = true;
    row.limits = change.limits;
    row.until = change.until;
  }
  if (const auto checked = check_row(*policy, row); !checked) return fail(checked.error());
  if (auto written = (*directory)->write(change); !written) return fail(std::move(written.error()));
  log::log(log::LogLevel::info, "plan changed",
           {{"subject", change.subject},
            {"plan", change.plan},
            {"limits", change.limits},
            {"who", by.who},
            {"from", by.from},
            {"reason", by.reason}});
  return show(change.subject);
}

}  // namespace weir::control
