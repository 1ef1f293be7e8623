// Warnings about a valid policy: rules that can never match or never decide, expired rules, rules that deny every
// request or deny sooner than their limit says, and trust in too many addresses. See weir/policy.h. A warning that may
// be wrong is left out.
#include <algorithm>
#include <map>

#include "base/ip_address.h"
#include "base/nearest.h"
#include "policy/dimension.h"
#include "policy/path_pattern.h"
#include "weir/limit.h"
#include "weir/policy.h"

namespace weir {
namespace {

class Review {
 public:
  Review(const Policy& policy, std::string_view name, Micros now)
      : policy_(policy),
        name_(name),
        now_(now),
        case_(policy.path_case_matters ? policy::PathCase::kept : policy::PathCase::folded) {}

  std::vector<std::string> run() {
    check_trust();
    std::vector<const Rule*> unlimited;
    for (const Rule& rule : policy_.rules) {
      const bool always_applies = rule.mode == Mode::enforce && rule.percent == 100 && rule.per.empty();
      if (rule.unlimited && always_applies && !rule.expires_at) unlimited.push_back(&rule);
    }
    for (const Rule& rule : policy_.rules) {
      if (!check_alone(rule)) continue;
      check_limits(rule);
      const auto shadowing = std::ranges::find_if(unlimited, [&](const Rule* other) {
        return other != &rule && !is_ban(rule) && covers(other->match, rule.match);
      });
      if (shadowing != unlimited.end())
        warn(rule, "never applies: rule " + base::in_quotes((*shadowing)->name) + " is unlimited");
    }
    check_otherwise();
    check_looser();
    return std::move(lines_);
  }

 private:
  void warn(Position at, const std::string& message) {
    lines_.push_back(std::string(name_) + ':' + std::to_string(at.line) + ':' + std::to_string(at.column) + ": " +
                     message);
  }
  void warn(const Rule& rule, const std::string& message) {
    warn(rule.at, "rule " + base::in_quotes(rule.name) + ' ' + message);
  }

  bool is_expired(const Rule& rule) const { return rule.expires_at && *rule.expires_at <= now_; }
  static bool is_ban(const Rule& rule) {
    return !rule.limits.empty() &&
           std::ranges::all_of(rule.limits, [](const RuleLimit& limit) { return limit.quota.permits == 0; });
  }

  void check_trust() {
    if (policy_.trusted_proxies.empty() &&
        (policy_.trusted_hops > 0 || policy_.client_ip_header != Policy{}.client_ip_header)) {
      warn({1, 1}, "client_ip_header and trusted_hops have no effect without trusted_proxies: Weir trusts no header");
    }
    for (const std::string& text : policy_.trusted_proxies) {
      const auto range = base::parse_ip_range(text);
      if (!range) continue;
      const unsigned bits = range->is_v4() ? range->bits - 96U : range->bits;
      if (bits == 0) {
        warn({1, 1}, "trusted_proxies: " + text + " lets every client claim any address; list only your proxies");
      } else if (bits < (range->is_v4() ? 8U : 16U)) {
        warn({1, 1}, "trusted_proxies: " + text +
                         " is very wide: every host in it can claim any address; list only your proxies");
      }
    }
  }

  // Checks a rule by itself. Returns false if it will never apply.
  bool check_alone(const Rule& rule) {
    if (rule.mode == Mode::off) return false;
    if (is_expired(rule)) {
      warn(rule, "expired at " + policy::time_text(*rule.expires_at) + "; remove it");
      return false;
    }
    if (rule.mode == Mode::enforce && rule.percent == 0)
      warn(rule, "is enforced for 0% of its keys; write mode: shadow");
    for (const auto& set : rule.match.none_of) {
      if (!covers({.all = set}, rule.match)) continue;
      warn(rule, "can never match: its `not` excludes every request that it matches");
      return false;
    }
    const auto paths = std::ranges::find(rule.match.all, AttributeKind::path, &Condition::kind);
    if (paths != rule.match.all.end() && !policy_.skip.empty() &&
        covers_all(AttributeKind::path, policy_.skip, paths->any_of)) {
      warn(rule, "can never match: `skip` contains all its paths");
      return false;
    }
    return true;
  }

  void check_limits(const Rule& rule) {
    for (const RuleLimit& limit : rule.limits) check_limit(rule, "", limit);
    for (const PlanTier& tier : rule.tiers) {
      for (const RuleLimit& limit : tier.limits) check_limit(rule, " of plan " + base::in_quotes(tier.name), limit);
    }
  }

  // A limit of 0 denies everything on purpose.
  void check_limit(const Rule& rule, const std::string& whose, const RuleLimit& limit) {
    const std::int64_t cost = rule.cost.permits, permits = limit.quota.permits;
    const std::int64_t most = limit.quota.burst.value_or(permits), events = Limit{}.events_max;
    const std::string text = (limit.text.empty() ? to_string(limit.quota) : limit.text) + whose;
    if (permits > 0 && cost > most) {
      const std::string what =
          rule.cost.header.empty() ? "" : " without the header " + base::in_quotes(rule.cost.header);
      warn(rule, "denies every request" + what + ": each costs " + std::to_string(cost) + ", and " + text +
                     " admits at most " + std::to_string(most) + " at once; lower `cost`, or raise the limit");
    }
    // A request with a higher cost uses fewer of the log's entries.
    if (limit.quota.algorithm == Algorithm::sliding_log && permits / std::max<std::int64_t>(1, cost) > events) {
      warn(rule, "may deny sooner than " + text + " says: a sliding_log keeps at most " + std::to_string(events) +
                     " requests of a key; write algorithm: sliding_window, or lower the limit");
    }
  }

  // If a rule names every path, `otherwise` rules never see a request with a path.
  void check_otherwise() {
    const auto everywhere = std::ranges::find_if(policy_.rules, [&](const Rule& rule) {
      const auto& all = rule.match.all;
      const bool names_all = all.size() == 1 && all[0].kind == AttributeKind::path && rule.match.none_of.empty() &&
                             covers_all(AttributeKind::path, all[0].any_of, {"/**"});
      return names_all && rule.mode == Mode::enforce && rule.percent == 100 && rule.per.empty() && !rule.expires_at;
    });
    if (everywhere == policy_.rules.end()) return;
    for (const Rule& rule : policy_.rules) {
      if (!rule.match.otherwise || rule.mode == Mode::off) continue;
      warn(rule, "applies only to requests without a path: rule " + base::in_quotes(everywhere->name) +
                     " matches every path");
    }
  }

  // Of two rules that count alike, the one that always allows at least as much never decides.
  void check_looser() {
    constexpr std::size_t kRulesCompared = 2'000;  // compared pairwise
    const std::size_t count = std::min(policy_.rules.size(), kRulesCompared);
    for (std::size_t i = 0; i < count; ++i) {
      for (std::size_t k = 0; k < count; ++k) {
        const Rule &loose = policy_.rules[i], &tight = policy_.rules[k];
        if (i == k || !counts_alike(loose, tight) || !allows_more(loose, tight, i > k)) continue;
        warn(loose, "never decides: rule " + base::in_quotes(tight.name) +
                        " counts the same requests, and its limit is not higher");
        break;
      }
    }
  }

  bool counts_alike(const Rule& loose, const Rule& tight) const {
    return loose.mode == Mode::enforce && tight.mode == Mode::enforce && loose.percent == 100 && tight.percent == 100 &&
           loose.per == tight.per && loose.match.otherwise == tight.match.otherwise && loose.cost == tight.cost &&
           loose.count_denied == tight.count_denied && !loose.phase_by_key && !tight.phase_by_key &&
           !tight.expires_at && !loose.limits.empty() && loose.match.none_of == tight.match.none_of &&
           loose.match.entries == tight.match.entries && tight.match.all == loose.match.all;
  }

  // Whether each limit of `loose` is at least as large as a limit of `tight` with the same period and algorithm.
  static bool allows_more(const Rule& loose, const Rule& tight, bool also_equal) {
    bool is_larger = also_equal;
    for (const RuleLimit& large : loose.limits) {
      const bool has_smaller = std::ranges::any_of(tight.limits, [&](const RuleLimit& small) {
        const Quota &a = large.quota, &b = small.quota;
        if (a.algorithm != b.algorithm || a.period != b.period || a.calendar != b.calendar) return false;
        const std::int64_t a_burst = a.burst.value_or(a.permits), b_burst = b.burst.value_or(b.permits);
        if (a.permits < b.permits || a_burst < b_burst) return false;
        is_larger = is_larger || a.permits > b.permits || a_burst > b_burst;
        return true;
      });
      if (!has_smaller) return false;
    }
    return is_larger;
  }

  // Whether `wide` matches everything that `narrow` matches.
  bool covers(const Match& wide, const Match& narrow) {
    if (wide.otherwise || !wide.none_of.empty()) return false;
    if (!wide.entries.empty() && wide.entries != narrow.entries) return false;
    return std::ranges::all_of(wide.all, [&](const Condition& condition) {
      const auto same = std::ranges::find_if(narrow.all, [&](const Condition& other) {
        return other.kind == condition.kind && other.name == condition.name;
      });
      return same != narrow.all.end() && covers_all(condition.kind, condition.any_of, same->any_of);
    });
  }

  bool covers_all(AttributeKind kind, const std::vector<std::string>& wide, const std::vector<std::string>& narrow) {
    return std::ranges::all_of(narrow, [&](const std::string& value) {
      return std::ranges::any_of(wide, [&](const std::string& by) { return covers_value(kind, by, value); });
    });
  }

  // A large policy has too many pairs to compare, so the number of comparisons is bounded. Beyond it there are no
  // warnings.
  bool covers_value(AttributeKind kind, const std::string& wide, const std::string& narrow) {
    if (wide == narrow) return true;
    if (pairs_left_ == 0) return false;
    --pairs_left_;
    if (kind == AttributeKind::path) return pattern(wide).covers(pattern(narrow));
    if (kind == AttributeKind::ip) {
      const auto a = base::parse_ip_range(wide), b = base::parse_ip_range(narrow);
      return a && b && a->bits <= b->bits && a->contains(b->base);
    }
    return wide == "*" || (narrow.find('*') == narrow.npos && policy::glob_matches(wide, narrow));
  }

  const policy::PathPattern& pattern(const std::string& text) {
    const auto known = patterns_.find(text);
    if (known != patterns_.end()) return known->second;
    return patterns_.emplace(text, policy::PathPattern::parse(text, case_).value()).first->second;
  }

  std::map<std::string, policy::PathPattern> patterns_;
  std::size_t pairs_left_ = 1'000'000;
  const Policy& policy_;
  const std::string_view name_;
  const Micros now_;
  const policy::PathCase case_;
  std::vector<std::string> lines_;
};

}  // namespace

std::vector<std::string> review(const Policy& policy, std::string_view name, Micros now) {
  return Review(policy, name, now).run();
}

}  // namespace weir
