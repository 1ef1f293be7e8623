// What is in force: the policy of the config file and the files of Envoy's beside it, and over them the changes that
// were made while the server ran.
//
//   weir::Control control(limiter, gate, {.file = "weir.yaml", .changes = "weir.state.changes"});
//   if (auto started = control.start(); !started) return report(started.error().message);
//   auto made = control.set_mode("login", "off", weir::Micros{600'000'000}, {.who = "alice", .reason = "incident 12"});
//   control.undo(made->id, {.who = "alice"});
//
// Every change is tried, then kept in the journal, then in force; whatever fails, what was in force stays. The files
// are never written to. The kill switch lifts Envoy's limits, too; other changes are about rules. All members may be
// called from any thread at once; a change to many rules takes a while, status() never waits for one. Tested by
// control_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "admin/change.h"
#include "admin/envoy_files.h"
#include "admin/journal.h"
#include "admin/overlay.h"
#include "admin/plan_desk.h"
#include "envoy/envoy_in_force.h"
#include "log.h"
#include "weir/gate.h"
#include "weir/limiter.h"
#include "weir/policy.h"
#include "weir/request.h"
#include "weir/result.h"

namespace weir {

inline constexpr std::size_t kBansMax = 1'000;  // that hold at once

struct ControlOptions {
  std::string file{};                   // the config; empty: there are no rules, but changes can be made if
  EnvoyImport envoy{};                  // there are files of Envoy's; if these are named here, the config names none
  Force force = Force::no;              // whether a reload may go beyond max_change
  std::string changes{};                // the journal; empty: changes end with the process
  SharedChanges* shared = nullptr;      // the changes of a fleet, which outlive this; null: it is alone
  std::string plans{};                  // a file that remembers who is on which plan; empty: none does
  LogLevel log_level = LogLevel::info;  // as it was started with
};

// A change that was made, and what it did to the rules.
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
  std::string hash{};  // SHA-256 of the text in force
  std::size_t rules = 0;
  Micros in_force_since{0};
  Reloaded last_reload{};
  std::uint64_t reloads_ok = 0, reloads_failed = 0;  // the first reading is none
  Micros last_ok_at{0};                              // when the file was last found good
  bool kill_switch = false;
  std::size_t changes_active = 0;
  std::uint64_t last_change = 0;     // the id of the newest; 0: there was none
  std::size_t own_changes = 0;       // that are not in the list of the fleet yet
  std::uint64_t file_waits_for = 0;  // the change of kind policy that lies over the file; 0: none
  LogLevel log_level = LogLevel::info;
  std::string changes_file{};
  std::string envoy{};  // where the files of Envoy's are; empty: there are none
  std::size_t envoy_domains = 0, envoy_limits = 0;
};

struct Validation {
  bool ok = false;
  std::string error{};                 // every one, a line each, with its place
  std::vector<std::string> changes{};  // what it would change
  std::vector<std::string> refused{};  // what of it goes beyond max_change
  std::vector<std::string> warnings{};
};

struct ListedChange {
  Change change{};
  Standing standing{};
  bool has_rule = true;  // false: it is about a rule that is not there now
};

struct RuleView {
  Rule rule{};                    // as it is in force
  std::string mode{};             // enforce, shadow, off, 30%
  std::string configured_mode{};  // what it would be without changes
};

enum class Reading : std::uint8_t { always, if_changed };

class Control {
 public:
  Control(Limiter& limiter, Gate& gate, ControlOptions options);  // which outlive it
  Control(const Control&) = delete;
  Control& operator=(const Control&) = delete;

  // Reads the journal and the file, and puts in force what they say. Once.
  Result<void> start();

  // reload()
  //
  // Reads all files again; the lines say what has changed. If one is bad, or if the change is too large, all stays as
  // it is.
  Result<std::vector<std::string>> reload(Reading reading = Reading::always);
  // Ends what is to end by itself, and takes up what another process has changed. Once a second or so.
  void tick();

  // What apply_policy() would do, without an effect: what that refuses is refused, and so not `ok`. What it refuses
  // unless it is forced is `ok`, and in `refused`.
  Validation validate(std::string_view text) const;
  Result<Made> apply_policy(std::string_view text, Force force, const Author& by);
  // `lasts`: until it ends by itself; nothing: it does not.
  Result<Made> set_mode(std::string_view rule, std::string_view mode, std::optional<Micros> lasts, const Author& by);
  Result<Made> set_kill_switch(bool on, std::optional<Micros> lasts, const Author& by);
  Result<Made> change_log_level(std::string_view level, std::optional<Micros> lasts, const Author& by);
  // Its rule is called `ban-ID`, or nearly so if the policy has one of that name.
  // Whoever means more than a client or so has to force it.
  Result<Change> ban(const Request& request, Micros lasts, const Author& by, Force force = Force::no);
  // Gate::reset(), after it was noted; if it cannot be done then, the list says so. Without the store of a fleet it is
  // refused.
  Result<bool> reset(std::string_view rule, const Request& request, const std::string& what, const Author& by);
  // Of this change, or of the last one that is listed as active. The id that was undone is in `undoes`.
  Result<Made> undo(std::optional<std::uint64_t> id, const Author& by, std::uint64_t& undoes);

  ControlStatus status() const;
  std::vector<ListedChange> changes(std::size_t n) const;  // the newest first
  // Whether the servers of the fleet can have a change, or there is no fleet: it is in the list that all of them read.
  bool is_shared(std::uint64_t id) const;
  std::vector<RuleView> rules() const;
  bool has_rules() const { return !options_.file.empty() || !options_.envoy.path.empty(); }
  // Where something happens when a file becomes another.
  std::set<std::string> folders() const;
  std::string policy_text() const;
  Gate& gate() { return gate_; }
  PlanDesk& plans() { return plans_; }
  EnvoyInForce& envoy() { return envoy_; }

 private:
  // What is to be in force, all of it as of one moment.
  struct Next {
    Policy policy{};
    LogLevel log_level = LogLevel::info;
    bool kill_switch = false;
    std::uint64_t file_waits_for = 0;
    std::optional<Micros> end{};  // when the first of the changes ends by itself
  };

  // The files as they lie there now.
  struct Found {
    std::string mark{};  // others have another one
    Result<Policy> policy{};
    EnvoyImport envoy{};  // where it lies
    std::vector<EnvoyFile> files{};
  };

  Result<void> refuse_without_rules() const;
  Result<void> refuse_without_store() const;
  Result<Policy> parse_applicable(std::string_view text) const;
  Policy base() const;
  Result<Next> next_of(const std::vector<Change>& changes, const std::optional<Policy>& file) const;
  Result<void> try_out(const Policy& policy) const;
  Result<void> try_applying(std::string_view text) const;
  Result<Made> make(Journal::Lock lock, Change change);
  Result<Made> make(Change change);
  Result<std::vector<std::string>> install(const Next& next);
  const std::string& file_name() const { return options_.file.empty() ? options_.envoy.path : options_.file; }
  Found find_files();
  Result<std::vector<std::string>> take_files(Found found);
  void put_envoy(const Found& found, EnvoyLoaded loaded);
  Result<std::vector<std::string>> refresh();
  void tell(const Next& next, bool is_changed);
  void tell_notes();
  void tell_own();
  Result<SharedChanges::Lines> look_at_shared() const;
  void tell_reload(const Result<std::vector<std::string>>& result, Micros now);
  std::size_t active_changes() const;

  Limiter& limiter_;
  Gate& gate_;
  EnvoyInForce envoy_;
  const ControlOptions options_;
  PlanDesk plans_;

  mutable std::mutex changing_;  // guards what follows: two changes come one after the other
  Journal journal_;
  std::optional<Policy> file_;  // the last good one
  std::string seen_;            // what the files were when they were last read
  std::string parsed_mark_;     // of the text that was last parsed, whatever came of it
  Result<Policy> parsed_{};
  std::optional<Micros> next_end_;            // of what is in force
  std::uint64_t in_force_reading_ = 0;        // of the journal
  std::optional<ErrorCode> journal_failure_;  // that was told
  std::string refresh_error_;                 // the same

  mutable std::mutex told_;  // guards status_; locked last
  ControlStatus status_;
};

// How long a change is to hold: `10min`, `1h`, `7 days`; up to ten years.
Result<Micros> parse_lasting(std::string_view text);

}  // namespace weir
