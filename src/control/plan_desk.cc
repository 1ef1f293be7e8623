// Creates and retires plan directories as the policy changes. See plan_desk.h.
#include "control/plan_desk.h"

#include <algorithm>
#include <utility>

#include "base/sha256.h"
#include "control/plan_judge.h"
#include "log/log.h"

namespace weir {
namespace {

constexpr Micros kFirstReading{2'000'000};  // a server starts without its plans rather than not at all

void tell(const PlanEvent& event) {
  switch (event.kind) {
    case PlanEvent::Kind::away:
      log(LogLevel::warn, "plan database unavailable, using the last known plans", {{"error", event.message}});
      break;
    case PlanEvent::Kind::back:
      log(LogLevel::info, "plan database available again");
      break;
    case PlanEvent::Kind::not_remembered:
      log(LogLevel::warn, "cannot save plans for the next restart", {{"error", event.message}});
      break;
    case PlanEvent::Kind::refused_row:
      log(LogLevel::warn, "invalid plan row, its subject keeps the previous plan and limits",
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
bool judges_alike(const Policy& a, const Policy& b) {
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

PlanDesk::PlanDesk(Gate& gate, std::string folder, std::string memory)
    : gate_(gate), folder_(std::move(folder)), memory_(std::move(memory)) {}

Result<void> PlanDesk::check(const PlanPolicy& plans, const std::string& folder) {
  if (plans.source.empty()) return {};
  auto source = make_plan_source({.url = seen_from(folder, plans.source), .query = plans.query});
  if (!source) return fail(source.error().code, "plans: " + source.error().message);
  return {};
}

Result<void> PlanDesk::prepare(const Policy& policy) {
  const PlanPolicy& plans = policy.plans;
  if (next_ != nullptr && is_same_source(next_by_->plans, plans)) return {};
  next_ = nullptr;
  if (plans.source.empty()) return {};
  if (auto sound = check(plans, folder_); !sound) return sound;
  const auto before = directory();
  if (before != nullptr && is_same_source(this->policy(), plans)) return {};
  auto source = make_plan_source({.url = seen_from(folder_, plans.source), .query = plans.query});
  if (!source) return fail(std::move(source.error()));
  const auto by = std::make_shared<const Policy>(policy);
  const PlanDirectoryOptions options{.subjects_max = static_cast<std::size_t>(plans.subjects),
                                     .refresh = plans.refresh,
                                     .wait = plans.wait,
                                     .memory = memory_,
                                     .memory_of = hex(sha256(plans.source + '\n' + plans.query)),
                                     .judge = [by](const PlanRow& row) { return judge_row(*by, row); },
                                     .tell = tell};
  auto made = std::make_shared<PlanDirectory>(*std::move(source), options);
  if (!made->wait_until_read(kFirstReading) && before != nullptr) {
    return fail(ErrorCode::unavailable,
                "keeping the previous plan source: " + plans.source + " cannot be read: " + made->status().error);
  }
  next_ = std::move(made);
  next_by_ = by;
  return {};
}

Result<PolicyChanges> PlanDesk::put(const Policy& policy) {
  if (auto ready = prepare(policy); !ready) return fail(std::move(ready.error()));
  const auto before = directory();
  const bool is_new = next_ != nullptr;
  auto next = policy.plans.source.empty() ? nullptr : is_new ? next_ : before;
  next_ = nullptr;
  auto applied = gate_.apply(policy, Force::yes, next);
  if (!applied) return applied;
  const auto by = std::make_shared<const Policy>(policy);
  const bool is_judged = judges_alike(is_new ? *next_by_ : judged_by_ == nullptr ? Policy{} : *judged_by_, policy);
  if (next != nullptr && !is_judged) next->judge_by([by](const PlanRow& row) { return judge_row(*by, row); });
  if (before != nullptr && before != next) before->retire();
  const std::lock_guard lock(mutex_);
  directory_ = std::move(next);
  judged_by_ = by;
  return applied;
}

std::shared_ptr<PlanDirectory> PlanDesk::directory() const {
  const std::lock_guard lock(mutex_);
  return directory_;
}

PlanPolicy PlanDesk::policy() const {
  const std::lock_guard lock(mutex_);
  return judged_by_ == nullptr ? PlanPolicy{} : judged_by_->plans;
}

Result<std::shared_ptr<PlanDirectory>> PlanDesk::needed() const {
  auto directory = this->directory();
  if (directory != nullptr) return directory;
  return fail(ErrorCode::out_of_range,
              "there is no plan database; add one to the config: plans: {source: sqlite:plans.db, …}");
}

Result<PlanView> PlanDesk::show(std::string_view subject) const {
  auto directory = needed();
  if (!directory) return fail(std::move(directory.error()));
  auto who = canonical_subject(subject);
  if (!who) return fail(std::move(who.error()));
  auto row = (*directory)->look(*who);
  if (!row && row.error().code == ErrorCode::not_found) row = PlanRow{.subject = *who};
  if (!row) return fail(std::move(row.error()));
  PlanView view{.row = *std::move(row)};
  std::shared_ptr<const Policy> policy;
  {
    const std::lock_guard lock(mutex_);
    policy = judged_by_;
  }
  if (const auto judged = judge_row(*policy, view.row); !judged) view.refused = judged.error().message;
  const PlanTerms terms = (*directory)->find(*who);
  view.plan = terms.plan;
  view.is_default = view.plan.empty();
  if (view.is_default) view.plan = policy->plans.fallback;
  view.limits = terms.instead != nullptr ? *terms.instead : limits_of(*policy, view.plan);
  return view;
}

Result<std::vector<PlanRow>> PlanDesk::list(std::string_view after, std::size_t most) const {
  auto directory = needed();
  if (!directory) return fail(std::move(directory.error()));
  return (*directory)->list(after, most);
}

Result<PlanView> PlanDesk::write(PlanChange change, const Author& by) {
  auto directory = needed();
  if (!directory) return fail(std::move(directory.error()));
  auto who = canonical_subject(change.subject);
  if (!who) return fail(std::move(who.error()));
  change.subject = *std::move(who);
  std::shared_ptr<const Policy> policy;
  {
    const std::lock_guard lock(mutex_);
    policy = judged_by_;
  }
  PlanRow row{.subject = change.subject};
  if (change.kind == PlanChange::Kind::set_plan) {
    row.has_plan = true;
    row.plan = change.plan;
  } else if (change.kind == PlanChange::Kind::set_override) {
    row.has_override = true;
    row.limits = change.limits;
    row.until = change.until;
  }
  if (const auto judged = judge_row(*policy, row); !judged) return fail(judged.error());
  if (auto written = (*directory)->write(change); !written) return fail(std::move(written.error()));
  log(LogLevel::info, "plan changed",
      {{"subject", change.subject},
       {"plan", change.plan},
       {"limits", change.limits},
       {"who", by.who},
       {"from", by.from},
       {"reason", by.reason}});
  return show(change.subject);
}

}  // namespace weir
