// Caches which subject is on which plan: a bounded copy of a database, kept up to date by its own thread.
//
//   weir::plans::PlanDirectory plans(*std::move(source), {.check = check});
//   const weir::PlanTerms terms = plans.find("user:42");        // never waits for the database
//
// The directory looks a new subject up once, even if many checks ask for it. Until the reply arrives, the subject has
// the default plan.
// While the database is unavailable, the last known plans apply. An invalid row is refused alone, and its subject
// keeps its previous plan. Any thread may call it. Tested by plan_directory_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "plans/plan_source.h"
#include "weir/clock.h"
#include "weir/plans.h"
#include "weir/result.h"

namespace weir::plans {

// A row that was found valid.
struct CheckedRow {
  std::string plan{};     // empty: the default plan
  std::string instead{};  // quotas as text; empty: those of the plan
  Micros until{0};
};

// An event for the operator's log.
struct PlanEvent {
  enum class Kind { unavailable, available, refused_row, not_remembered };
  Kind kind = Kind::unavailable;
  std::string subject{};  // if a row was refused
  std::string message{};
};

struct PlanDirectoryOptions {
  std::size_t subjects_max = 100'000;
  Micros refresh{60'000'000};  // each known subject is read again this often, even without a reported change
  Micros wait{5'000};          // the longest time that a check waits
  std::string memory{};        // file for a start while the database is unavailable; empty: none
  std::string memory_of{};     // identifies the database, on one line
  std::function<Result<CheckedRow>(const PlanRow&)> check{};
  std::function<void(const PlanEvent&)> report{};  // called on the directory's thread
  Clock* clock = nullptr;                          // null: the system clock
};

struct PlanStatus {
  bool is_up = false;
  std::string error{};  // the last error, if is_up is false
  Micros age{0};        // time since the database last replied; since the start if it never did
  std::size_t subjects = 0, pending = 0;
  std::uint64_t lookups = 0, changes = 0, evicted = 0, refused = 0, failures = 0, waits = 0, wait_timeouts = 0;
  std::vector<PlanEvent> refused_rows{};  // the most recent ones, each subject once
};

class PlanDirectory final : public Plans {
 public:
  PlanDirectory(std::unique_ptr<PlanSource> source, PlanDirectoryOptions options);
  ~PlanDirectory() override;
  PlanDirectory(const PlanDirectory&) = delete;
  PlanDirectory& operator=(const PlanDirectory&) = delete;

  PlanTerms find(std::string_view subject) noexcept override;
  bool wait(std::string_view subject) noexcept override;

  // Sets new tiers: every known row is checked again.
  void check_by(std::function<Result<CheckedRow>(const PlanRow&)> check);
  // Waits until the database was read for the first time, at most `most`. For startup.
  bool wait_until_read(Micros most);

  // Another directory takes over with the same file, so this one stops writing it.
  void retire();

  PlanStatus status() const;

  // write(), look(), list()
  //
  // These access the database itself, and take at most the source's time-out. The directory knows at once what
  // write() has written.
  Result<void> write(const PlanChange& change);
  Result<PlanRow> look(const std::string& subject);
  Result<std::vector<PlanRow>> list(std::string_view after, std::size_t most);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace weir::plans
