// What changes when one policy follows another, and what of that is too much to be an intention. See weir/policy.h.
//
// A reload that takes most rules away, or cuts a limit to a small part, has been the start of real outages: an empty
// file, a unit mistaken, a generator that failed. Such a change must be said twice.
#include <algorithm>
#include <map>

#include "algorithm/division.h"
#include "policy/fields.h"
#include "weir/policy.h"

namespace weir {
namespace {

std::int64_t period_us(const Quota& quota) {
  constexpr std::int64_t kDays[] = {1, 7, 30, 365};
  if (!quota.calendar) return quota.period.count();
  return kDays[static_cast<std::size_t>(quota.calendar->unit)] * 86'400'000'000;
}

// Whether `to` is less than a `factor`th of `from`.
bool is_cut(const Quota& from, const Quota& to, int factor) {
  const Wide before = Wide{from.permits} * period_us(to), after = Wide{to.permits} * period_us(from);
  const std::int64_t burst_before = from.burst.value_or(from.permits), burst_after = to.burst.value_or(to.permits);
  return after * factor < before || Wide{burst_after} * factor < Wide{burst_before};
}

std::string limits_text(const Rule& rule) {
  if (rule.unlimited) return "unlimited";
  std::string out;
  for (const RuleLimit& limit : rule.limits) out.append(out.empty() ? "" : ", ").append(limit.text);
  return out;
}

class Comparison {
 public:
  Comparison(const Policy& in_force, const Policy& next) : factor_(in_force.max_change) {
    for (const Rule& rule : in_force.rules) before_[rule.name] = &rule;
    for (const Rule& rule : next.rules) after_[rule.name] = &rule;
    for (const Field<Policy>& row : policy_fields()) {
      const std::string from = row.print(in_force), to = row.print(next);
      if (row.name == "rules" || from == to) continue;
      out_.lines.push_back("changed: " + std::string(row.name) + ": " + (from.empty() ? "the default" : from) + " -> " +
                           (to.empty() ? "the default" : to));
      if (row.name == "identity") out_.lines.push_back("counts anew: what is counted per identity");
    }
  }

  // A rule that was enforced and no longer is might as well be gone.
  PolicyChanges run() {
    std::size_t gone = 0;
    for (const auto& [name, rule] : before_) {
      const auto found = after_.find(name);
      if (found == after_.end()) {
        ++gone;
        out_.lines.push_back("gone: " + name);
      } else if (!(*rule == *found->second)) {
        changed(*rule, *found->second);
        if (rule->mode == Mode::enforce && found->second->mode != Mode::enforce) ++gone;
      }
    }
    for (const auto& [name, rule] : after_) {
      if (before_.find(name) == before_.end()) out_.lines.push_back("added: " + name + ": " + limits_text(*rule));
    }
    if (factor_ != kMaxChangeOff && 2 * gone > before_.size()) {
      out_.refused.push_back(std::to_string(gone) + " of " + std::to_string(before_.size()) + " rules would be gone, or no longer enforced");
    }
    return std::move(out_);
  }

 private:
  void changed(const Rule& from, const Rule& to) {
    const std::string before = limits_text(from), after = limits_text(to);
    out_.lines.push_back("changed: " + from.name + (before == after ? "" : ": " + before + " -> " + after));
    if (from.per != to.per) {
      out_.lines.push_back("counts anew: " + from.name + ", because what it counts per has changed");
    } else {
      for (const RuleLimit& limit : to.limits) check_continuity(from, to, limit);
    }
    if (factor_ != kMaxChangeOff && to.mode == Mode::enforce && from.mode == Mode::enforce) check_cut(from, to);
  }

  static const RuleLimit* same_window(const Rule& rule, const std::string& window) {
    const auto found = std::ranges::find_if(
        rule.limits, [&](const RuleLimit& limit) { return window_id(rule, limit.quota) == window; });
    return found == rule.limits.end() ? nullptr : &*found;
  }

  static const RuleLimit* same_period(const Rule& rule, const Quota& quota) {
    const auto found = std::ranges::find_if(rule.limits, [&](const RuleLimit& limit) {
      return limit.quota.period == quota.period && limit.quota.calendar == quota.calendar;
    });
    return found == rule.limits.end() ? nullptr : &*found;
  }

  void check_continuity(const Rule& from, const Rule& to, const RuleLimit& limit) {
    const RuleLimit* old = same_window(from, window_id(to, limit.quota));
    const std::string what = "counts anew: " + to.name + ": " + limit.text;
    if (old == nullptr) {
      if (!from.limits.empty()) out_.lines.push_back(what + ", a new window");
    } else if (old->quota.algorithm != limit.quota.algorithm) {
      out_.lines.push_back(what + ", because its algorithm has changed");
    }
  }

  void check_cut(const Rule& from, const Rule& to) {
    const auto refuse = [&](const std::string& before, const std::string& after) {
      out_.refused.push_back("rule " + to.name + " would be cut from " + before + " to " + after + ", by more than " +
                             std::to_string(factor_) + "x (max_change)");
    };
    if (from.unlimited && !to.limits.empty()) return refuse("unlimited", limits_text(to));
    for (const RuleLimit& limit : to.limits) {
      const RuleLimit* old = same_window(from, window_id(to, limit.quota));
      if (old == nullptr) old = same_period(from, limit.quota);  // when one limit becomes several, or several one
      if (old != nullptr && is_cut(old->quota, limit.quota, factor_)) refuse(old->text, limit.text);
    }
  }

  const int factor_;
  std::map<std::string, const Rule*> before_, after_;
  PolicyChanges out_;
};

}  // namespace

PolicyChanges compare(const Policy& in_force, const Policy& next) { return Comparison(in_force, next).run(); }

}  // namespace weir
