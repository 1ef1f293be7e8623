// The changes that operators request, one function each. See control.h.
//
// Each ends in make(), the only function that writes changes and puts them into effect. Tested by control_test.cc.
#include <algorithm>
#include <memory>
#include <utility>

#include "base/nearest.h"
#include "base/text.h"
#include "control/control.h"
#include "policy/key_name.h"

namespace weir::control {
namespace {

constexpr Micros kSecond{1'000'000};

// The precision of the journal.
Micros whole_seconds(Micros time) { return (time + kSecond - Micros{1}) / kSecond * kSecond; }

tl::unexpected<Error> conflict(std::string message) { return fail(ErrorCode::out_of_range, std::move(message)); }

std::string condition_text(const Condition& condition) {
  std::string values;
  for (const std::string& value : condition.any_of) {
    values += values.empty() ? "" : "|";
    values += condition.kind == AttributeKind::header ? short_hash(value) : value;  // may be a secret
  }
  return policy::attribute_text({.kind = condition.kind, .name = condition.name}, values);
}

std::string for_people(const Change& change) { return std::to_string(change.id) + ", " + change.what; }

}  // namespace

Result<Micros> parse_lasting(std::string_view text) {
  constexpr std::size_t kMost = 32;
  const auto wrong = [text] {
    return fail(ErrorCode::invalid_argument,
                base::in_quotes(text) + " is not a duration; write it like 10min, 1h or 7days");
  };
  if (text.empty() || text.size() > kMost) return wrong();
  const auto quota = parse_quota("1/" + std::string(text), Algorithm::fixed_window);
  if (!quota || quota->calendar || quota->burst) return wrong();
  return std::max(quota->period, kSecond);
}

Result<void> Control::refuse_without_rules() const {
  if (has_rules()) return {};
  return conflict("there are no rules; start the server with --config weir.yaml");
}

// In a fleet: whether the shared counts are available.
Result<void> Control::refuse_without_store() const {
  const auto any = compile("1/second");
  const auto seen = limiter_.preview("reset", *any, 0);
  if (!seen) return fail(seen.error());
  if (!is_fallback(seen->decided_by)) return {};
  return fail(ErrorCode::unavailable, "Redis is unavailable, so the key is not reset; try again");
}

Result<Made> Control::make(Change change, std::optional<Micros> lasts) {
  if (lasts) change.until = whole_seconds(limiter_.now() + *lasts);
  auto lock = journal_.lock();
  if (!lock) return fail(std::move(lock.error()));
  return make(*std::move(lock), std::move(change));
}

// Tries the change out, writes it and puts it into effect, in this order. The lock ensures that no other process
// makes a change in between.
Result<Made> Control::make(Journal::Lock lock, Change change) {
  change.at = limiter_.now() / kSecond * kSecond;
  change.id = journal_.next_id();
  auto next = [&]() REQUIRES(changing_) {
    const Journal::Proposal proposal(journal_, change);
    return next_of(journal_.changes(), file_);
  }();
  if (!next) return fail(std::move(next.error()));
  const bool has_effect = has_rules() && !(next->policy == gate_.policy());
  if (has_effect) {
    if (auto tried = try_out(next->policy); !tried) return fail(std::move(tried.error()));
    if (auto ready = plans_.prepare(next->policy); !ready) return fail(std::move(ready.error()));
  }
  const std::uint64_t before = journal_.readings();
  const auto id = journal_.append(std::move(lock), change);
  if (!id) return fail(id.error());
  auto installed = journal_.readings() == before ? install(*next) : refresh();
  if (!installed) return fail(std::move(installed.error()));
  log::log(log::LogLevel::info, "runtime change made",
           {{"id", std::to_string(*id)},
            {"what", change.what},
            {"who", change.by.who},
            {"from", change.by.from},
            {"reason", change.by.reason}});
  return Made{*id, *std::move(installed)};
}

// A text that may override the file. Only the config file may name files, servers and databases: a client that may
// change rules must not choose what this process opens, creates and connects to.
Result<Policy> Control::parse_applicable(std::string_view text) const {
  if (auto refused = refuse_without_rules(); !refused) return fail(std::move(refused.error()));
  auto policy = parse_policy(text, "config");
  if (!policy) return policy;
  const Policy file = file_.value_or(Policy{});
  if (!(policy->envoy == file.envoy)) {
    return conflict("`import` can be changed in the config file only; keep its value here");
  }
  if (policy->store != file.store) {
    return conflict("`store` can be changed in the config file only, and requires a restart; keep its value here");
  }
  if (policy->plans.source != file.plans.source) {
    return conflict("`source` of `plans` can be changed in the config file only; keep its value here");
  }
  if (policy->plans.query != file.plans.query) {
    return conflict("`query` of `plans` can be changed in the config file only; keep its value here");
  }
  return policy;
}

Result<Made> Control::apply_policy(std::string_view text, Force force, const Author& by) {
  const base::MutexLock lock(changing_);
  auto policy = parse_applicable(text);
  if (!policy) return fail(std::move(policy.error()));
  auto held = journal_.lock();
  if (!held) return fail(std::move(held.error()));
  const PolicyChanges changes = compare(base(), *policy);
  if (!changes.refused.empty() && force == Force::no) {
    std::string message = "the change exceeds max_change; to make it anyway, send \"force\":true (--force):";
    for (const std::string& line : changes.refused) message += "\n  " + line;
    return conflict(std::move(message));
  }
  const std::string what = "config with " + base::counted(policy->rules.size(), "rule") + ", instead of the file";
  return make(*std::move(held), {.by = by, .kind = ChangeKind::policy, .what = what, .text = std::string(text)});
}

Result<Made> Control::set_mode(std::string_view rule, std::string_view mode, std::optional<Micros> lasts,
                               const Author& by) {
  const base::MutexLock lock(changing_);
  if (auto refused = refuse_without_rules(); !refused) return fail(std::move(refused.error()));
  if (!parse_mode(mode)) {
    return fail(ErrorCode::invalid_argument, "unknown mode " + base::in_quotes(mode) + "; use enforce, shadow or off");
  }
  const Policy policy = gate_.policy();
  std::vector<std::string_view> names;
  for (const Rule& one : policy.rules) names.push_back(one.name);
  if (std::ranges::find(names, rule) == names.end()) {
    const std::string_view meant = base::nearest(rule, names);
    return fail(ErrorCode::not_found, "there is no rule " + base::in_quotes(rule, 64) +
                                          (meant.empty() ? "" : ", did you mean " + std::string(meant) + "?"));
  }
  Change change{.by = by, .kind = ChangeKind::mode, .rule = std::string(rule), .value = std::string(mode)};
  change.what = "rule " + change.rule + ": " + change.value;
  return make(std::move(change), lasts);
}

Result<Made> Control::set_kill_switch(bool on, std::optional<Micros> lasts, const Author& by) {
  const base::MutexLock lock(changing_);
  if (auto refused = refuse_without_rules(); !refused) return fail(std::move(refused.error()));
  return make({.by = by,
               .kind = ChangeKind::kill_switch,
               .what = on ? "kill switch on: all rules off" : "kill switch off",
               .value = on ? "on" : "off"},
              lasts);
}

Result<Made> Control::change_log_level(std::string_view level, std::optional<Micros> lasts, const Author& by) {
  const base::MutexLock lock(changing_);
  if (!log::log_level_of(level)) {
    return fail(ErrorCode::invalid_argument,
                "unknown level " + base::in_quotes(level) + "; use debug, info, warn or error");
  }
  const std::string value(level);
  return make({.by = by, .kind = ChangeKind::log_level, .what = "log level " + value, .value = value}, lasts);
}

Result<Change> Control::ban(const Request& request, Micros lasts, const Author& by, Force force) {
  const base::MutexLock lock(changing_);
  if (auto refused = refuse_without_rules(); !refused) return fail(std::move(refused.error()));
  auto held = journal_.lock();
  if (!held) return fail(std::move(held.error()));
  Change change{.by = by, .kind = ChangeKind::ban, .until = whole_seconds(limiter_.now() + lasts)};
  if (overlay_of(journal_.changes(), limiter_.now()).bans.size() >= kBansMax) {
    return fail(
        ErrorCode::out_of_range,
        std::to_string(kBansMax) + " bans are in effect, the maximum; undo some, or write them into the config");
  }
  const auto before = next_of(journal_.changes(), file_);
  if (!before) return fail(before.error());
  change.rule = free_name("ban-" + std::to_string(journal_.next_id()), names_of(before->policy));
  const auto alone = ban_policy(change.rule, request, by, *change.until);
  if (!alone) return fail(alone.error());
  change.text = to_yaml(*alone);  // as the journal stores it
  const Match& match = alone->rules.front().match;
  if (const std::string why = why_broad(match); !why.empty() && force == Force::no) {
    return conflict("the ban is too broad: " + why + "; to ban anyway, send \"force\":true (--force)");
  }
  for (const Condition& one : match.all) {
    change.what += (change.what.empty() ? "ban " : ", ") + condition_text(one);
  }
  auto made = make(*std::move(held), change);
  if (!made) return fail(std::move(made.error()));
  change.id = made->id;
  return change;
}

Result<bool> Control::reset(std::string_view rule, const Request& request, const std::string& what, const Author& by) {
  const base::MutexLock lock(changing_);
  if (auto refused = refuse_without_rules(); !refused) return fail(std::move(refused.error()));
  // First try it on an empty limiter to find errors, so that a reset in the journal is also carried out.
  Limiter nothing(LimiterOptions{std::make_shared<ManualClock>(limiter_.now()), 1});
  Gate trial(nothing);
  if (auto applied = trial.apply(gate_.policy(), Force::yes); !applied) return fail(std::move(applied.error()));
  if (auto tried = trial.reset(rule, request); !tried) return tried;
  if (auto refused = refuse_without_store(); !refused) return fail(std::move(refused.error()));
  auto noted = make({.by = by, .kind = ChangeKind::reset, .what = what, .rule = std::string(rule)});
  if (!noted) return fail(std::move(noted.error()));
  auto done = gate_.reset(rule, request);
  if (done) return done;
  // Records in the journal that the reset was not done.
  auto undone = make({.by = {by.who, by.from, done.error().message},
                      .kind = ChangeKind::undo,
                      .what = "not done: " + std::to_string(noted->id) + ", " + what,
                      .undoes = noted->id});
  if (!undone) log::log(log::LogLevel::error, "cannot record that a reset failed", {{"id", std::to_string(noted->id)}});
  return done;
}

Result<Made> Control::undo(std::optional<std::uint64_t> id, const Author& by, std::uint64_t& undoes) {
  const base::MutexLock lock(changing_);
  auto held = journal_.lock();
  if (!held) return fail(std::move(held.error()));
  const std::vector<Change>& changes = journal_.changes();
  const auto standing = standings(changes, limiter_.now());
  const RuleNames names = names_of(gate_.policy());
  const auto rules_now = [&](std::size_t i) {
    const ChangeKind kind = changes[i].kind;
    return standing[i].active && kind != ChangeKind::undo && kind != ChangeKind::reset &&
           has_rule_of(names, changes[i]);
  };
  std::size_t at = changes.size();
  while (at-- > 0) {
    if (id ? changes[at].id == *id : rules_now(at)) break;
  }
  if (at >= changes.size()) {
    return fail(ErrorCode::not_found, id ? "unknown change " + std::to_string(*id) + "; see weir rules changes"
                                         : "no runtime change is in effect, so there is nothing to undo");
  }
  const Change& target = changes[at];
  if (target.kind == ChangeKind::reset) return conflict("a reset cannot be undone: the counts are deleted");
  if (standing[at].undone_by > 0) {
    return conflict("change " + for_people(target) + ", was undone by change " +
                    std::to_string(standing[at].undone_by));
  }
  if (!standing[at].active) return conflict("change " + for_people(target) + ", has expired");
  undoes = target.id;
  return make(*std::move(held),
              {.by = by, .kind = ChangeKind::undo, .what = "undo " + for_people(target), .undoes = target.id});
}

}  // namespace weir::control
