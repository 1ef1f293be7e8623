// Reports the rules in effect and the changes. See control.h.
//
// Nothing here changes anything. Tested by control_test.cc.
#include <map>
#include <string_view>

#include "control/control.h"
#include "control/file_watch.h"

namespace weir::control {
namespace {

std::string mode_text(const Rule& rule) {
  if (rule.mode == Mode::enforce && rule.percent != 100) return std::to_string(rule.percent) + '%';
  return std::string(to_string(rule.mode));
}

}  // namespace

ControlStatus Control::status() const {
  const base::MutexLock status_lock(status_mutex_);
  return status_;
}

std::set<std::string> Control::folders() const {
  std::set<std::string> out;
  if (!options_.file.empty()) out = FileWatch::folders_of(options_.file);
  if (const std::string envoy = status().envoy; !envoy.empty()) out.merge(envoy_folders(envoy));
  return out;
}

std::string Control::policy_text() const { return has_rules() ? to_yaml(gate_.policy()) : std::string(); }

// Counts the changes that affect something now; undos and resets do not count.
std::size_t Control::active_changes() const {
  const std::vector<Change>& changes = journal_.changes();
  const auto standing = standings(changes, limiter_.now());
  const RuleNames names = names_of(gate_.policy());
  std::size_t active = 0;
  for (std::size_t i = 0; i < changes.size(); ++i) {
    const bool rules = changes[i].kind != ChangeKind::undo && changes[i].kind != ChangeKind::reset;
    if (rules && standing[i].active && has_rule_of(names, changes[i])) ++active;
  }
  return active;
}

std::vector<ListedChange> Control::changes(std::size_t n) const {
  const base::MutexLock lock(changing_);
  const std::vector<Change>& changes = journal_.changes();
  const auto standing = standings(changes, limiter_.now());
  const RuleNames names = names_of(gate_.policy());
  std::vector<ListedChange> out;
  for (std::size_t i = changes.size(); i-- > 0 && out.size() < n;) {
    ListedChange& one = out.emplace_back(ListedChange{changes[i], standing[i], has_rule_of(names, changes[i])});
    one.standing.active = one.standing.active && one.has_rule;
  }
  return out;
}

bool Control::is_shared(std::uint64_t id) const {
  if (options_.shared == nullptr) return true;
  const base::MutexLock lock(changing_);
  return journal_.agreed() >= id;
}

// The policy without the changes to single rules.
Policy Control::base() const {
  const Overlay overlay = overlay_of(journal_.changes(), limiter_.now());
  if (overlay.policy != nullptr) {
    if (auto parsed = parse_policy(overlay.policy->text, "config")) return *std::move(parsed);
  }
  return file_.value_or(Policy{});
}

std::vector<RuleView> Control::rules() const {
  const base::MutexLock lock(changing_);
  const Policy before = base();
  std::map<std::string_view, const Rule*> known;
  for (const Rule& rule : before.rules) known.emplace(rule.name, &rule);
  Policy policy = gate_.policy();
  std::vector<RuleView> out;
  for (Rule& rule : policy.rules) {
    const auto same = known.find(rule.name);
    std::string configured = same != known.end() ? mode_text(*same->second) : std::string(to_string(Mode::enforce));
    std::string mode = mode_text(rule);
    out.push_back({std::move(rule), std::move(mode), std::move(configured)});
  }
  return out;
}

// Tries the text together with the changes to single rules on top of it, as make() does.
Result<void> Control::try_applying(std::string_view text) const {
  std::vector<Change> changes = journal_.changes();
  changes.push_back({.id = journal_.next_id(), .kind = ChangeKind::policy, .text = std::string(text)});
  const auto next = next_of(changes, file_);
  if (!next) return fail(next.error());
  return try_out(next->policy);
}

Validation Control::validate(std::string_view text) const {
  Validation out;
  const base::MutexLock lock(changing_);
  const auto policy = parse_applicable(text);
  const auto tried = policy ? try_applying(text) : Result<void>(fail(policy.error()));
  if (!tried) {
    out.error = tried.error().message;
    return out;
  }
  out.ok = true;
  out.warnings = review(*policy, "config", limiter_.now());
  PolicyChanges changes = compare(base(), *policy);
  out.changes = std::move(changes.lines);
  out.refused = std::move(changes.refused);
  return out;
}

}  // namespace weir::control
