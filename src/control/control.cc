// Puts rules into effect: the file, its reloads, and the runtime changes. See control.h.
//
// control_changes.cc has the changes that operators request, control_view.cc everything that only reports.
#include "control/control.h"

#include <algorithm>
#include <utility>

#include "base/sha256.h"
#include "base/text.h"
#include "control/config_file.h"
#include "control/file_watch.h"

namespace weir::control {
namespace {

// A log has one line per event.
std::string on_one_line(std::string text) {
  for (std::size_t at = 0; (at = text.find('\n', at)) != text.npos;) text.replace(at, 1, "; ");
  return text;
}

std::string folder_of(const std::string& file) {
  const std::size_t slash = file.rfind('/');
  return slash == file.npos ? "" : file.substr(0, slash);
}

std::string first_of(const std::vector<std::string>& lines) {
  constexpr std::size_t kMost = 20;
  std::string text;
  for (std::size_t i = 0; i < std::min(kMost, lines.size()); ++i) text.append(i > 0 ? "; " : "").append(lines[i]);
  if (lines.size() > kMost) text += "; and " + std::to_string(lines.size() - kMost) + " more";
  return text;
}

Result<EnvoyLoaded> load_envoy_of(const std::vector<envoy::EnvoyFile>& files, const EnvoyImport& import) {
  if (import.path.empty()) return EnvoyLoaded{};
  return load_envoy(files, import.algorithm);
}

}  // namespace

Control::Control(Limiter& limiter, Gate& gate, ControlOptions options)
    : limiter_(limiter),
      gate_(gate),
      options_(std::move(options)),
      plans_(gate, folder_of(options_.file), options_.plans) {
  status_.file = options_.file;
  status_.log_level = options_.log_level;
  status_.changes_file = options_.changes;
}

Result<void> Control::start() {
  const base::MutexLock lock(changing_);
  if (auto opened = journal_.open(options_.changes, options_.shared); !opened) return opened;
  if (!journal_.dropped().empty())
    log::log(log::LogLevel::warn, "dropped the damaged last line of the changes file", {{"error", journal_.dropped()}});
  log_notes();
  count_own_changes();
  if (has_rules()) {
    Found found = find_files();
    if (!found.policy) return fail(std::move(found.policy.error()));
    auto loaded = load_envoy_of(found.files, found.envoy);
    if (!loaded) return fail(std::move(loaded.error()));
    seen_ = found.mark;
    put_envoy(found, *std::move(loaded));
    file_ = *std::move(found.policy);
  }
  auto done = refresh();
  if (!done) return fail(std::move(done.error()));
  const base::MutexLock status_lock(status_mutex_);
  status_.last_reload.at = status_.last_ok_at = limiter_.now();
  return {};
}

Result<Control::Next> Control::next_of(const std::vector<Change>& changes, const std::optional<Policy>& file) const {
  const Overlay overlay = overlay_of(changes, limiter_.now());
  Next next{.log_level = options_.log_level,
            .kill_switch = overlay.kills(),
            .file_waits_for = overlay.policy != nullptr ? overlay.policy->id : 0,
            .end = overlay.next_end};
  if (overlay.log_level != nullptr)
    next.log_level = log::log_level_of(overlay.log_level->value).value_or(next.log_level);
  if (!has_rules()) return next;
  Policy base;
  if (overlay.policy != nullptr) {
    auto parsed = parse_policy(overlay.policy->text, "change " + std::to_string(overlay.policy->id));
    if (!parsed) return fail(std::move(parsed.error()));
    base = *std::move(parsed);
    // Uses the file's source: the text may come from an older version or another server, or be older than the file.
    const PlanPolicy plans = file && !base.plans.tiers.empty() ? file->plans : PlanPolicy{};
    base.plans.source = plans.source;
    base.plans.query = plans.query;
  } else if (file) {
    base = *file;
  }
  auto composed = compose(std::move(base), overlay);
  if (!composed) return fail(std::move(composed.error()));
  next.policy = *std::move(composed);
  return next;
}

// Validates the policy with a gate that serves no requests.
Result<void> Control::try_out(const Policy& policy) const {
  Gate trial(limiter_);
  auto applied = trial.apply(policy, Force::yes);
  if (!applied) return fail(std::move(applied.error()));
  return PlanControl::check(policy.plans, folder_of(options_.file));
}

Result<std::vector<std::string>> Control::install(const Next& next) {
  std::vector<std::string> lines;
  bool is_changed = false;
  if (has_rules()) {
    is_changed = gate_.rules() == nullptr || !(gate_.policy() == next.policy);
    if (is_changed) {
      auto applied = plans_.put(next.policy);  // the max_change guard was checked before, for the policy alone
      if (!applied) return fail(std::move(applied.error()));
      lines = std::move(applied->lines);
    }
  }
  envoy_.lift(next.kill_switch);
  next_end_ = next.end;
  in_force_reading_ = journal_.readings();
  update_status(next, is_changed);
  return lines;
}

Result<std::vector<std::string>> Control::refresh() {
  auto next = next_of(journal_.changes(), file_);
  if (!next) return fail(std::move(next.error()));
  return install(*next);
}

// Each text is parsed only once, even an invalid one, because this is called again and again.
Control::Found Control::find_files() {
  Found out;
  if (!options_.file.empty()) {
    auto text = read_config(options_.file);
    out.mark = text ? base::hex(base::sha256(*text)) : text.error().message;
    if (!text) {
      out.policy = fail(std::move(text.error()));
      return out;
    }
    if (parsed_mark_ != out.mark) {
      parsed_ = parse_policy(*text, options_.file);
      parsed_mark_ = out.mark;
    }
    out.policy = parsed_;
    if (!out.policy) return out;
  }
  out.envoy = out.policy->envoy;
  out.envoy.path = envoy_path(out.envoy, options_.file);
  if (!options_.envoy.path.empty()) {
    if (!out.envoy.path.empty()) {
      out.mark += " twice";
      out.policy =
          fail(ErrorCode::invalid_argument, options_.file + ": both `import` and --envoy " + options_.envoy.path +
                                                " name Envoy config files; remove one of them");
      return out;
    }
    out.envoy = options_.envoy;
    if (options_.file.empty()) out.policy->envoy = options_.envoy;  // as if a config contained only the import
  }
  if (out.envoy.path.empty()) return out;
  auto files = read_envoy_files(out.envoy.path);
  if (!files) {
    out.mark += ' ' + files.error().message;
    out.policy = fail(std::move(files.error()));
    return out;
  }
  std::string all = std::string(weir::to_string(out.envoy.algorithm)) + (out.envoy.count_denied ? " all " : " ");
  for (const envoy::EnvoyFile& file : *files) {
    base::append_sized(all, file.name);
    base::append_sized(all, file.text);
  }
  out.mark += ' ' + base::hex(base::sha256(all));
  out.files = *std::move(files);
  return out;
}

void Control::put_envoy(const Found& found, EnvoyLoaded loaded) {
  for (const std::string& warning : loaded.warnings)
    log::log(log::LogLevel::warn, "Envoy setting without effect", {{"where", warning}});
  {
    const base::MutexLock status_lock(status_mutex_);
    status_.envoy = found.envoy.path;
    status_.envoy_domains = loaded.rules == nullptr ? 0 : loaded.rules->domains();
    status_.envoy_limits = loaded.rules == nullptr ? 0 : loaded.rules->rules().size();
  }
  envoy_.put(std::move(loaded.rules), found.envoy.count_denied);
}

Result<std::vector<std::string>> Control::take_files(Found found) {
  Result<Policy>& policy = found.policy;
  if (!policy) return fail(std::move(policy.error()));
  auto loaded = load_envoy_of(found.files, found.envoy);
  if (!loaded) return fail(std::move(loaded.error()));
  const PolicyChanges changes = compare(*file_, *policy);
  if (!changes.refused.empty() && options_.force == Force::no) {
    std::string message =
        "the change exceeds max_change; to make it anyway, load `max_change: off` first, or restart the server:";
    for (const std::string& line : changes.refused) message += "\n  " + line;
    return fail(ErrorCode::out_of_range, std::move(message));
  }
  if (auto tried = try_out(*policy); !tried) return fail(std::move(tried.error()));
  auto next = next_of(journal_.changes(), *policy);
  if (!next) return fail(std::move(next.error()));
  if (auto tried = try_out(next->policy); !tried) return fail(std::move(tried.error()));
  auto installed = install(*next);
  if (!installed) return installed;
  put_envoy(found, *std::move(loaded));
  if (const ControlStatus now = status(); !now.envoy.empty()) {
    installed->push_back("from " + now.envoy + ": " + base::counted(now.envoy_limits, "limit") + " of " +
                         base::counted(now.envoy_domains, "domain"));
  }
  if (policy->store != file_->store) installed->push_back("store: takes effect when the server restarts");
  file_ = *std::move(policy);
  return installed;
}

Result<std::vector<std::string>> Control::reload(ReloadWhen when) {
  const base::MutexLock lock(changing_);
  if (auto refused = refuse_without_rules(); !refused) return fail(std::move(refused.error()));
  Found found = find_files();
  if (when == ReloadWhen::if_changed && found.mark == seen_) return std::vector<std::string>{};
  seen_ = found.mark;
  auto result = take_files(std::move(found));
  log_reload(result, limiter_.now());
  return result;
}

// Asks without the lock, so that no caller waits for a fleet that does not answer.
Result<SharedChanges::Lines> Control::look_at_shared() const {
  if (options_.shared == nullptr) return SharedChanges::Lines{};
  base::MutexLock lock(changing_);
  const std::uint64_t agreed = journal_.agreed();
  lock.unlock();
  return options_.shared->since(agreed);
}

void Control::log_notes() {
  for (const std::string& note : journal_.take_notes()) {
    log::log(log::LogLevel::warn, "runtime changes dropped or renumbered by the fleet", {{"changes", note}});
  }
}

void Control::count_own_changes() {
  const std::vector<Change>& changes = journal_.changes();
  const auto is_own = [agreed = journal_.agreed()](const Change& change) { return change.id > agreed; };
  const auto own = options_.shared == nullptr ? 0 : std::ranges::count_if(changes, is_own);
  const base::MutexLock status_lock(status_mutex_);
  status_.own_changes = static_cast<std::size_t>(own);
}

void Control::tick() {
  const auto seen = look_at_shared();
  const base::MutexLock lock(changing_);
  const auto caught = journal_.catch_up(seen);
  log_notes();
  // An outage causes varying messages, so only another kind of failure is logged again.
  const std::optional<ErrorCode> failure = caught ? std::nullopt : std::optional(caught.error().code);
  if (const auto before = std::exchange(journal_failure_, failure); failure != before) {
    failure ? log::log(log::LogLevel::error, "cannot sync runtime changes", {{"error", caught.error().message}})
            : log::log(log::LogLevel::info, "runtime changes are in sync again");
  }
  count_own_changes();
  // Another call may have read new changes from the journal, and then failed to apply them.
  const bool is_behind = journal_.readings() != in_force_reading_;
  const bool is_over = next_end_ && *next_end_ <= limiter_.now();
  if (!is_over && !is_behind) return;
  const auto done = refresh();  // a failure is retried at the next tick, and logged once
  const std::string failed = done ? "" : on_one_line(done.error().message);
  const bool is_logged = failed == std::exchange(refresh_error_, failed);
  if (!done) {
    if (!is_logged)
      log::log(log::LogLevel::error, "cannot apply runtime changes, keeping the previous rules", {{"error", failed}});
    return;
  }
  log::log(log::LogLevel::info, is_over ? "runtime change expired" : "runtime changes by another process applied",
           {{"changes", first_of(*done)}});
}

void Control::update_status(const Next& next, bool is_changed) {
  log::set_log_level(next.log_level);
  const std::size_t active = active_changes();
  const std::string hash = is_changed ? base::hex(base::sha256(to_yaml(next.policy))) : std::string();
  const base::MutexLock status_lock(status_mutex_);
  if (is_changed) {
    status_.hash = hash;
    status_.rules = next.policy.rules.size();
    status_.in_force_since = limiter_.now();
  }
  status_.log_level = next.log_level;
  status_.kill_switch = next.kill_switch;
  status_.changes_active = active;
  status_.last_change = journal_.changes().empty() ? 0 : journal_.changes().back().id;
  status_.file_waits_for = next.file_waits_for;
}

void Control::log_reload(const Result<std::vector<std::string>>& result, Micros now) {
  std::uint64_t waits_for = 0;
  {
    const base::MutexLock status_lock(status_mutex_);
    status_.last_reload = {static_cast<bool>(result), now, result ? "" : result.error().message};
    if (result) status_.last_ok_at = now;
    ++(result ? status_.reloads_ok : status_.reloads_failed);
    waits_for = status_.file_waits_for;
  }
  if (!result) {
    log::log(log::LogLevel::error, "config reload failed, keeping the previous rules",
             {{"file", file_name()}, {"error", on_one_line(result.error().message)}});
  } else if (waits_for > 0) {
    log::log(log::LogLevel::warn, "config reloaded, but a config applied at runtime overrides it",
             {{"file", file_name()}, {"change", std::to_string(waits_for)}});
  } else {
    log::log(log::LogLevel::info, "config reloaded", {{"file", file_name()}, {"changes", first_of(*result)}});
  }
}

}  // namespace weir::control
