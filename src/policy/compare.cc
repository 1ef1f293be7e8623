// Lists the changes from one policy to the next, and which of them are too large to be intended. See weir/policy.h.
//
// A reload that removed most rules or cut a limit to a fraction has started real outages: an empty file, a wrong
// unit, a failed generator. Such a change must be confirmed.
#include <algorithm>
#include <map>

#include "algorithm/division.h"
#include "policy/fields.h"
#include "weir/policy.h"

namespace weir {
namespace {

// Whether the rate of `to` is less than 1/`factor` of the rate of `from`.
bool is_slowed(const Quota& from, const Quota& to, int factor) {
  return algorithm::Wide{to.permits} * policy::period_us(from) * factor <
         algorithm::Wide{from.permits} * policy::period_us(to);
}

// The same for the burst.
bool is_clipped(const Quota& from, const Quota& to, int factor) {
  return algorithm::Wide{to.burst.value_or(to.permits)} * factor < algorithm::Wide{from.burst.value_or(from.permits)};
}

// The limit with the lowest sustained rate, which bounds long-term traffic.
const RuleLimit* slowest(const std::vector<RuleLimit>& limits) {
  const RuleLimit* out = nullptr;
  for (const RuleLimit& limit : limits) {
    const Quota& quota = limit.quota;
    const bool is_slower = out == nullptr || algorithm::Wide{quota.permits} * policy::period_us(out->quota) <
                                                 algorithm::Wide{out->quota.permits} * policy::period_us(quota);
    if (is_slower) out = &limit;
  }
  return out;
}

bool limits_anybody(const Rule& rule) { return rule.mode == Mode::enforce && rule.percent > 0 && !rule.unlimited; }

bool exempts_all(const Rule& rule) { return rule.mode == Mode::enforce && rule.unlimited && rule.match == Match{}; }

std::string limits_text(const std::vector<RuleLimit>& limits) {
  if (limits.empty()) return "unlimited";
  std::string out;
  for (const RuleLimit& limit : limits) out.append(out.empty() ? "" : ", ").append(limit.text);
  return out;
}

std::string limits_text(const Rule& rule) { return rule.by_plan ? "by plan" : limits_text(rule.limits); }

// Limits of a rule that apply together: its own, or those of one plan.
struct Holding {
  std::string who;  // `rule api`, `rule api for plan pro`
  const Rule* rule = nullptr;
  const std::vector<RuleLimit>* limits = nullptr;
};

const std::vector<RuleLimit>* of_plan(const Rule& rule, const std::string& plan) {
  const auto tier = std::ranges::find(rule.tiers, plan, &PlanTier::name);
  return tier == rule.tiers.end() ? nullptr : &tier->limits;
}

std::string text_of(std::optional<policy::Node> value) {
  return value ? policy::flow(*std::move(value)) : "the default";
}

class Comparison {
 public:
  Comparison(const Policy& in_force, const Policy& next)
      : factor_(in_force.max_change),
        skips_all_(std::ranges::count(next.skip, "/**") > 0 && std::ranges::count(in_force.skip, "/**") == 0),
        from_default_(in_force.plans.fallback),
        to_default_(next.plans.fallback) {
    for (const Rule& rule : in_force.rules) before_[rule.name] = &rule;
    for (const Rule& rule : next.rules) after_[rule.name] = &rule;
    for (const policy::Field<Policy>& row : policy::policy_fields()) {
      if (row.name == "rules") continue;
      const std::string from = text_of(row.write(in_force)), to = text_of(row.write(next));
      if (from == to) continue;
      out_.lines.push_back("changed: " + std::string(row.name) + ": " + from + " -> " + to);
      if (row.name == "identity") out_.lines.push_back("counts restart: everything counted per identity");
    }
  }

  // A rule that was enforced and no longer limits anything counts as removed.
  PolicyChanges run() {
    std::size_t gone = 0;
    for (const auto& [name, rule] : before_) {
      const auto found = after_.find(name);
      if (found == after_.end()) {
        ++gone;
        out_.lines.push_back("removed: " + name);
      } else if (!(*rule == *found->second) || (rule->by_plan && from_default_ != to_default_)) {
        changed(*rule, *found->second);
        if (limits_anybody(*rule) && !limits_anybody(*found->second)) ++gone;
      }
    }
    for (const auto& [name, rule] : after_) {
      if (before_.find(name) == before_.end()) out_.lines.push_back("added: " + name + ": " + limits_text(*rule));
    }
    if (factor_ == kMaxChangeOff) return std::move(out_);
    if (2 * gone > before_.size()) {
      out_.refused.push_back(std::to_string(gone) + " of " + std::to_string(before_.size()) +
                             " rules would be removed or no longer enforced");
    }
    for (const auto& [name, rule] : after_) {
      const auto found = before_.find(name);
      const bool did_before = found != before_.end() && exempts_all(*found->second);
      if (exempts_all(*rule) && !did_before) out_.refused.push_back("rule " + name + " would exempt every request");
    }
    if (skips_all_) out_.refused.push_back("skip would exempt every path");
    return std::move(out_);
  }

 private:
  void changed(const Rule& from, const Rule& to) {
    const std::string before = limits_text(from), after = limits_text(to);
    out_.lines.push_back("changed: " + from.name + (before == after ? "" : ": " + before + " -> " + after));
    if (from.per != to.per) {
      out_.lines.push_back("counts restart: " + from.name + ", because its `per` has changed");
    } else {
      each_pair(from, to, [this](const Holding& a, const Holding& b) {
        for (const RuleLimit& limit : *b.limits) check_continuity(a, b, limit);
      });
    }
    if (factor_ == kMaxChangeOff || to.mode != Mode::enforce || from.mode != Mode::enforce) return;
    if (to.cost.permits / factor_ > from.cost.permits) {
      out_.refused.push_back("the cost of rule " + to.name + " would rise from " + std::to_string(from.cost.permits) +
                             " to " + std::to_string(to.cost.permits) + ", by more than " + std::to_string(factor_) +
                             "x (max_change)");
    }
    each_pair(from, to, [this](const Holding& a, const Holding& b) { check_cut(a, b); });
  }

  // Calls `call` with the old and new limits, once per plan if there are plans. A subject on a removed plan gets the
  // default. A new plan has no subjects yet.
  template <class F>
  void each_pair(const Rule& from, const Rule& to, F call) const {
    const std::string who = "rule " + to.name;
    if (!from.by_plan && !to.by_plan) return call(Holding{who, &from, &from.limits}, Holding{who, &to, &to.limits});
    const auto compared = [&](const std::string& name, const std::string& of) {
      const auto* before = from.by_plan ? of_plan(from, name) : &from.limits;
      const auto* after = to.by_plan ? of_plan(to, name) : &to.limits;
      if (after == nullptr) after = of_plan(to, to_default_);
      if (before != nullptr && after != nullptr) call(Holding{of, &from, before}, Holding{of, &to, after});
    };
    for (const PlanTier& tier : from.by_plan ? from.tiers : to.tiers)
      compared(tier.name, who + " for plan " + tier.name);
    const bool has_other_default = from.by_plan && to.by_plan && from_default_ != to_default_;
    const auto* before = has_other_default ? of_plan(from, from_default_) : nullptr;
    const auto* after = has_other_default ? of_plan(to, to_default_) : nullptr;
    const std::string of = who + " for subjects without a plan";
    if (before != nullptr && after != nullptr) call(Holding{of, &from, before}, Holding{of, &to, after});
  }

  static const RuleLimit* same_window(const Holding& holding, const std::string& window) {
    const auto found = std::ranges::find_if(*holding.limits, [&](const RuleLimit& limit) {
      return policy::window_id(*holding.rule, *holding.limits, limit) == window;
    });
    return found == holding.limits->end() ? nullptr : &*found;
  }

  static const RuleLimit* same_period(const Holding& holding, const Quota& quota) {
    const auto found = std::ranges::find_if(*holding.limits, [&](const RuleLimit& limit) {
      return limit.quota.period == quota.period && limit.quota.calendar == quota.calendar;
    });
    return found == holding.limits->end() ? nullptr : &*found;
  }

  void check_continuity(const Holding& from, const Holding& to, const RuleLimit& limit) {
    const RuleLimit* old = same_window(from, policy::window_id(*to.rule, *to.limits, limit));
    const std::string what = "counts restart: " + to.who.substr(5) + ": " + limit.text;
    if (old == nullptr) {
      if (!from.limits->empty()) out_.lines.push_back(what + ", a new period");
    } else if (old->quota.algorithm != limit.quota.algorithm) {
      out_.lines.push_back(what + ", because its algorithm has changed");
    }
  }

  void refuse(const std::string& who, const std::string& before, const std::string& after) {
    out_.refused.push_back(who + " would be cut from " + before + " to " + after + ", by more than " +
                           std::to_string(factor_) + "x (max_change)");
  }

  void check_cut(const Holding& from, const Holding& to) {
    if (from.limits->empty() && !to.limits->empty()) return refuse(to.who, "unlimited", limits_text(*to.limits));
    for (const RuleLimit& limit : *to.limits) {
      const RuleLimit* old = same_window(from, policy::window_id(*to.rule, *to.limits, limit));
      if (old == nullptr) old = same_period(from, limit.quota);  // one limit became several, or several became one
      const bool is_new = old == nullptr;
      if (is_new) old = slowest(*from.limits);
      if (old == nullptr) continue;
      const bool is_cut =
          is_slowed(old->quota, limit.quota, factor_) || (!is_new && is_clipped(old->quota, limit.quota, factor_));
      if (is_cut) refuse(to.who, old->text, limit.text);
    }
  }

  const int factor_;
  const bool skips_all_;
  const std::string from_default_, to_default_;  // plan names
  std::map<std::string, const Rule*> before_, after_;
  PolicyChanges out_;
};

}  // namespace

PolicyChanges compare(const Policy& in_force, const Policy& next) { return Comparison(in_force, next).run(); }

}  // namespace weir
