// Who is on which plan, known in advance: a bounded memory of what a database said, kept fresh by a thread of its own.
//
//   weir::PlanDirectory plans(*std::move(source), {.judge = judge});
//   const weir::PlanTerms terms = plans.find("user:42");        // at once, whatever the database does
//
// A subject that is new is looked up once however many ask, and has the default plan until the answer is there. When
// the database is away, what it last said holds; a row that makes no sense is refused alone, and its subject keeps what
// it had. Any thread. Tested by plan_directory_test.cc.
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

namespace weir {

// A row that was found sound.
struct JudgedRow {
  std::string plan{};     // empty: the default
  std::string instead{};  // quotas in their text; empty: the plan's
  Micros until{0};
};

// What is worth telling whoever runs the server.
struct PlanEvent {
  enum class Kind { away, back, refused_row, not_remembered };
  Kind kind = Kind::away;
  std::string subject{};  // of a refused row
  std::string message{};
};

struct PlanDirectoryOptions {
  std::size_t subjects_max = 100'000;
  Micros refresh{60'000'000};  // so often all are asked for again, whether a change was told or not
  Micros wait{5'000};          // the longest that a check waits
  std::string memory{};        // a file, for who starts while the database is away; empty: none
  std::string memory_of{};     // whose it is, on one line
  std::function<Result<JudgedRow>(const PlanRow&)> judge{};
  std::function<void(const PlanEvent&)> tell{};  // from the directory's thread
  Clock* clock = nullptr;                        // null: the system's
};

struct PlanStatus {
  bool is_up = false;
  std::string error{};  // the last one, if it is not
  Micros age{0};        // how long ago the database last answered; since the start if it never did
  std::size_t subjects = 0, pending = 0;
  std::uint64_t lookups = 0, changes = 0, evicted = 0, refused = 0, failures = 0, waits = 0, waits_in_vain = 0;
  std::vector<PlanEvent> refused_rows{};  // the last few, each subject once
};

class PlanDirectory final : public Plans {
 public:
  PlanDirectory(std::unique_ptr<PlanSource> source, PlanDirectoryOptions options);
  ~PlanDirectory() override;
  PlanDirectory(const PlanDirectory&) = delete;
  PlanDirectory& operator=(const PlanDirectory&) = delete;

  PlanTerms find(std::string_view subject) noexcept override;
  bool wait(std::string_view subject) noexcept override;

  // Other tiers: every row is judged anew.
  void judge_by(std::function<Result<JudgedRow>(const PlanRow&)> judge);
  // Until what the database knows was read for the first time, or so much time is over. For who starts.
  bool wait_until_read(Micros most);

  // Another directory takes its place, and its file: from now on this one writes nothing there.
  void retire();

  PlanStatus status() const;

  // write(), look(), list()
  //
  // Asked of the database itself, at most for the patience of the source. What write() has written, this directory
  // knows at once.
  Result<void> write(const PlanChange& change);
  Result<PlanRow> look(const std::string& subject);
  Result<std::vector<PlanRow>> list(std::string_view after, std::size_t most);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace weir
