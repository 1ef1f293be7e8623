// The plans of a running server: owns the directory that the current policy names, and answers questions about it.
//
// A new source gets a new directory, which is read before it takes effect. Changed tiers only re-evaluate the rows.
// prepare() and put() are called by one thread at a time, all else by any. Tested by plan_control_test.cc and
// tests/server/plans.sh.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "control/change.h"
#include "plans/plan_directory.h"
#include "weir/gate.h"
#include "weir/policy.h"
#include "weir/result.h"

namespace weir::control {

// Validates a row of the plan database against a policy. A row is untrusted input: a blank field in one has taken down
// a worldwide service before. The error names the subject and the fix, and other rows are not affected. Fuzzed by
// fuzz/plan_row.cc.
Result<plans::CheckedRow> check_row(const Policy& policy, const plans::PlanRow& row);

// canonical_subject()
//
// The subject in the form that directories use: `user:42`, `api_key:sha256:…`, `ip:192.0.2.1`, `ip:2001:db8::/64`.
Result<std::string> canonical_subject(std::string_view text);

// What is known about a subject.
struct PlanView {
  plans::PlanRow row{};   // as the database has it
  std::string refused{};  // why the row is invalid; empty if it is valid
  std::string plan{};     // in effect; the default's name if it has none
  std::string limits{};   // in effect: `10/second, 1000/minute`
  bool is_default = false;
};

class PlanControl {
 public:
  // `folder`: the base of relative file names. `memory`: the file that caches the last known plans; empty: none.
  PlanControl(Gate& gate, std::string folder, std::string memory);
  PlanControl(const PlanControl&) = delete;
  PlanControl& operator=(const PlanControl&) = delete;

  // prepare(), put()
  //
  // prepare() is called before a policy takes effect. It checks the policy's source and, if it is a new one, reads
  // it. An error leaves everything as it is. If there was no source before, an unavailable one is accepted, and
  // retried until it is back. put() then puts the policy and its plans into effect together.
  Result<void> prepare(const Policy& policy);
  Result<PolicyChanges> put(const Policy& policy);
  // Whether the source is valid; does not connect to it.
  static Result<void> check(const PlanPolicy& plans, const std::string& folder);

  // Plan queries and changes. Without a directory all of them are errors that say what to do.
  std::shared_ptr<plans::PlanDirectory> directory() const;  // null: none
  PlanPolicy policy() const;
  Result<PlanView> show(std::string_view subject) const;
  Result<std::vector<plans::PlanRow>> list(std::string_view after, std::size_t most) const;
  // Validates the change before writing it; `by` is for the log.
  Result<PlanView> write(plans::PlanChange change, const Author& by);

 private:
  Result<std::shared_ptr<plans::PlanDirectory>> needed() const;
  std::shared_ptr<const Policy> checked_by() const;

  Gate& gate_;
  const std::string folder_, memory_;
  std::shared_ptr<plans::PlanDirectory> next_;  // prepared, not in effect
  std::shared_ptr<const Policy> next_by_;
  mutable base::Mutex mutex_;
  std::shared_ptr<plans::PlanDirectory> directory_ GUARDED_BY(mutex_);
  std::shared_ptr<const Policy> checked_by_ GUARDED_BY(mutex_);
};

}  // namespace weir::control
