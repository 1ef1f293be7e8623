// The rules in effect: the policy of the config file and Envoy's files, with the runtime changes on top.
//
//   weir::control::Control control(limiter, gate, {.file = "weir.yaml", .changes = "weir.state.changes"});
//   if (auto started = control.start(); !started) return report(started.error().message);
//   auto made = control.set_mode("login", "off", weir::Micros{600'000'000}, {.who = "alice", .reason = "incident 12"});
//   control.undo(made->id, {.who = "alice"});
//
// A change is first tried out, then written to the journal, then put into effect. If a step fails, everything stays
// as it was. The config files are never written. The kill switch also lifts Envoy's limits; other changes concern
// rules only. Any thread may call any member at any time. A change to many rules takes a while, but status() never
// waits for one. Tested by control_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "control/change.h"
#include "control/envoy_files.h"
#include "control/journal.h"
#include "control/overlay.h"
#include "control/plan_control.h"
#include "envoy/envoy_in_force.h"
#include "log/log.h"
#include "weir/gate.h"
#include "weir/limiter.h"
#include "weir/policy.h"
#include "weir/request.h"
#include "weir/result.h"

namespace weir::control {

inline constexpr std::size_t kBansMax = 1'000;  // in effect at once

struct ControlOptions {
  std::string file{};                             // the config; empty: none, so there are no rules to change
  EnvoyImport envoy{};                            // Envoy's files; if they are named here, the config must not name any
  Force force = Force::no;                        // whether a reload may exceed max_change
  std::string changes{};                          // the journal; empty: changes end with the process
  SharedChanges* shared = nullptr;                // the fleet's changes; must outlive this; null: no fleet
  std::string plans{};                            // a file that caches who is on which plan; empty: none
  log::LogLevel log_level = log::LogLevel::info;  // the initial level
};

// A change, and its effect on the rules.
struct Made {
  std::uint64_t id = 0;
  std::vector<std::string> changes{};
};

struct Reloaded {
  bool ok = true;
  Micros at{0};
  std::string error{};  // empty if ok
};

struct ControlStatus {
  std::string file{};
  std::string hash{};  // SHA-256 of the text in effect
  std::size_t rules = 0;
  Micros in_force_since{0};
  Reloaded last_reload{};
  std::uint64_t reloads_ok = 0, reloads_failed = 0;  // not counting the first load
  Micros last_ok_at{0};                              // when the file was last valid
  bool kill_switch = false;
  std::size_t changes_active = 0;
  std::uint64_t last_change = 0;     // id of the newest change; 0: there is none
  std::size_t own_changes = 0;       // changes that are not yet in the fleet's list
  std::uint64_t file_waits_for = 0;  // the policy change that overrides the file; 0: none
  log::LogLevel log_level = log::LogLevel::info;
  std::string changes_file{};
  std::string envoy{};  // the path of Envoy's files; empty: none
  std::size_t envoy_domains = 0, envoy_limits = 0;
};

struct Validation {
  bool ok = false;
  std::string error{};                 // all errors, one per line, with their place
  std::vector<std::string> changes{};  // what it would change
  std::vector<std::string> refused{};  // what exceeds max_change
  std::vector<std::string> warnings{};
};

struct ListedChange {
  Change change{};
  Standing standing{};
  bool has_rule = true;  // false: its rule does not exist now
};

struct RuleView {
  Rule rule{};                    // as it is in effect
  std::string mode{};             // enforce, shadow, off, 30%
  std::string configured_mode{};  // its mode without changes
};

enum class ReloadWhen : std::uint8_t { always, if_changed };

class Control {
 public:
  Control(Limiter& limiter, Gate& gate, ControlOptions options);  // limiter and gate must outlive it
  Control(const Control&) = delete;
  Control& operator=(const Control&) = delete;

  // Reads the journal and the file, and puts them into effect. Call it once.
  Result<void> start();

  // reload()
  //
  // Reads all files again and returns one line for each difference. If a file is invalid or the difference is too
  // large, everything stays as it is.
  Result<std::vector<std::string>> reload(ReloadWhen when = ReloadWhen::always);
  // Ends changes whose time is over, and applies changes of other processes. Call it about once a second.
  void tick();

  // What apply_policy() would do, without an effect. If apply_policy() refuses the text even with force, `ok` is
  // false. If it refuses only without force, `ok` is true and `refused` says why.
  Validation validate(std::string_view text) const;
  Result<Made> apply_policy(std::string_view text, Force force, const Author& by);
  // `lasts`: how long it is in effect; nothing: until it is undone.
  Result<Made> set_mode(std::string_view rule, std::string_view mode, std::optional<Micros> lasts, const Author& by);
  Result<Made> set_kill_switch(bool on, std::optional<Micros> lasts, const Author& by);
  Result<Made> change_log_level(std::string_view level, std::optional<Micros> lasts, const Author& by);
  // Its rule is called `ban-ID`, or gets a suffix if the policy has a rule of that name. A ban that matches more than
  // about one client requires force.
  Result<Change> ban(const Request& request, Micros lasts, const Author& by, Force force = Force::no);
  // Writes the reset to the journal, then calls Gate::reset(). If that fails, the journal records it. Refused if the
  // fleet's store is unavailable.
  Result<bool> reset(std::string_view rule, const Request& request, const std::string& what, const Author& by);
  // Undoes the change with this id, or the last one listed as active. Sets `undoes` to the undone id.
  Result<Made> undo(std::optional<std::uint64_t> id, const Author& by, std::uint64_t& undoes);

  ControlStatus status() const;
  std::vector<ListedChange> changes(std::size_t n) const;  // newest first
  // Whether other servers can read the change in the fleet's list; true without a fleet.
  bool is_shared(std::uint64_t id) const;
  std::vector<RuleView> rules() const;
  bool has_rules() const { return !options_.file.empty() || !options_.envoy.path.empty(); }
  // The folders to watch for changes of the files.
  std::set<std::string> folders() const;
  std::string policy_text() const;
  Gate& gate() { return gate_; }
  PlanControl& plans() { return plans_; }
  envoy::EnvoyInForce& envoy() { return envoy_; }

 private:
  // Everything that is to be in effect, as of one moment.
  struct Next {
    Policy policy{};
    log::LogLevel log_level = log::LogLevel::info;
    bool kill_switch = false;
    std::uint64_t file_waits_for = 0;
    std::optional<Micros> end{};  // when the first change ends by itself
  };

  // The files as they are now.
  struct Found {
    std::string mark{};  // differs if the files differ
    Result<Policy> policy{};
    EnvoyImport envoy{};  // the resolved path
    std::vector<envoy::EnvoyFile> files{};
  };

  Result<void> refuse_without_rules() const;
  Result<void> refuse_without_store() const;
  Result<Policy> parse_applicable(std::string_view text) const REQUIRES(changing_);
  Policy base() const REQUIRES(changing_);
  Result<Next> next_of(const std::vector<Change>& changes, const std::optional<Policy>& file) const;
  Result<void> try_out(const Policy& policy) const;
  Result<void> try_applying(std::string_view text) const REQUIRES(changing_);
  Result<Made> make(Journal::Lock lock, Change change) REQUIRES(changing_);
  Result<Made> make(Change change, std::optional<Micros> lasts = {}) REQUIRES(changing_);
  Result<std::vector<std::string>> install(const Next& next) REQUIRES(changing_);
  const std::string& file_name() const { return options_.file.empty() ? options_.envoy.path : options_.file; }
  Found find_files() REQUIRES(changing_);
  Result<std::vector<std::string>> take_files(Found found) REQUIRES(changing_);
  void put_envoy(const Found& found, EnvoyLoaded loaded) REQUIRES(changing_);
  Result<std::vector<std::string>> refresh() REQUIRES(changing_);
  void update_status(const Next& next, bool is_changed) REQUIRES(changing_);
  void log_notes() REQUIRES(changing_);
  void count_own_changes() REQUIRES(changing_);
  Result<SharedChanges::Lines> look_at_shared() const EXCLUDES(changing_);
  void log_reload(const Result<std::vector<std::string>>& result, Micros now);
  std::size_t active_changes() const REQUIRES(changing_);

  Limiter& limiter_;
  Gate& gate_;
  envoy::EnvoyInForce envoy_;
  const ControlOptions options_;
  PlanControl plans_;

  mutable base::Mutex changing_;  // serializes changes
  Journal journal_ GUARDED_BY(changing_);
  std::optional<Policy> file_ GUARDED_BY(changing_);  // the last valid one
  std::string seen_ GUARDED_BY(changing_);            // the mark of the files when they were last read
  std::string parsed_mark_ GUARDED_BY(changing_);     // of the text that was last parsed, valid or not
  Result<Policy> parsed_ GUARDED_BY(changing_){};
  std::optional<Micros> next_end_ GUARDED_BY(changing_);            // of the changes in effect
  std::uint64_t in_force_reading_ GUARDED_BY(changing_) = 0;        // the journal's readings() that are in effect
  std::optional<ErrorCode> journal_failure_ GUARDED_BY(changing_);  // the last logged failure
  std::string refresh_error_ GUARDED_BY(changing_);                 // the last logged error

  mutable base::Mutex status_mutex_;  // always locked last
  ControlStatus status_ GUARDED_BY(status_mutex_);
};

// Parses how long a change is in effect: `10min`, `1h`, `7 days`; up to ten years.
Result<Micros> parse_lasting(std::string_view text);

}  // namespace weir::control
