// The plans of a running server: keeps the directory that the policy in force names, and is who is asked about it.
//
// Another source makes another directory, which is read before it is in force; other tiers only judge the rows anew.
// prepare() and put() are called by one thread at a time, all else by any. Tested by plan_desk_test.cc and
// tests/server/plans.sh.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "admin/change.h"
#include "plans/plan_directory.h"
#include "weir/gate.h"
#include "weir/policy.h"
#include "weir/result.h"

namespace weir {

// What is known of a subject.
struct PlanView {
  PlanRow row{};          // as the database has it
  std::string refused{};  // why that does not hold; empty if it does
  std::string plan{};     // that holds, the default's name if it has none
  std::string limits{};   // that hold: `10/second, 1000/minute`
  bool is_default = false;
};

class PlanDesk {
 public:
  // The folder that the name of a file is seen from; the file that keeps what was last known, empty: none does.
  PlanDesk(Gate& gate, std::string folder, std::string memory);
  PlanDesk(const PlanDesk&) = delete;
  PlanDesk& operator=(const PlanDesk&) = delete;

  // prepare(), put()
  //
  // Before a policy is in force: its source is looked at, and if it is another than before it is read, too; an error
  // leaves all as it is. Where there was none before, one that is away will do: it is asked until it is back. Then the
  // policy and its plans are put in force together.
  Result<void> prepare(const Policy& policy);
  Result<PolicyChanges> put(const Policy& policy);
  // Whether the source is one that could be asked at all.
  static Result<void> check(const PlanPolicy& plans, const std::string& folder);

  // What it is about; without a directory all of them are errors that say what to do.
  std::shared_ptr<PlanDirectory> directory() const;  // null: there is none
  PlanPolicy policy() const;
  Result<PlanView> show(std::string_view subject) const;
  Result<std::vector<PlanRow>> list(std::string_view after, std::size_t most) const;
  // Judged before it is written; `by` is for the log.
  Result<PlanView> write(PlanChange change, const Author& by);

 private:
  Result<std::shared_ptr<PlanDirectory>> needed() const;

  Gate& gate_;
  const std::string folder_, memory_;
  std::shared_ptr<PlanDirectory> next_;  // prepared, not in force
  std::shared_ptr<const Policy> next_by_;
  mutable std::mutex mutex_;  // guards what follows
  std::shared_ptr<PlanDirectory> directory_;
  std::shared_ptr<const Policy> judged_by_;
};

}  // namespace weir
