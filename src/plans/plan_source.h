// A database of plans, as one thread reads it. What it returns is not trusted yet.
//
//   auto source = weir::plans::make_plan_source({.url = "sqlite:plans.db"});
//   if (!source) return report(source.error().message);        // the address is malformed
//   (*source)->connect();                                      // and again whenever a call has failed
//
// Each access is bounded by PlanSourceOptions::timeout, so no call hangs, whatever the database does. One thread at
// a time may use a source; any thread may call wake(). Tested by sqlite_source_test.cc and postgres_source_test.cc,
// against real databases.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weir/clock.h"
#include "weir/result.h"

namespace weir::plans {

// Bounds on what a database may return: no plan needs a name as long as a page.
inline constexpr std::size_t kPlanSubjectMax = 1024;
inline constexpr std::size_t kPlanTextMax = 1024;

// user:42 has the kind `user` and the value `42`. For api_key:sha256:… the value is the hash.
struct SubjectParts {
  std::string_view kind, value;
};
SubjectParts parts_of_subject(std::string_view subject);

// What the database says about a subject: a plan, limits that override the plan's, or both. Numbers are given as
// text, NULL as nothing.
struct PlanRow {
  std::string subject{};  // user:42
  bool has_plan = false;  // there is a plan row
  std::optional<std::string> plan{};
  bool has_override = false;
  std::optional<std::string> limits{};  // 5000/minute
  std::optional<std::string> until{};   // 2026-12-31, an RFC 3339 time, or seconds since the epoch; nothing: no end
  std::string error{};                  // why the row is invalid as a whole, such as two rows for one subject
};

// A change to write for a subject.
struct PlanChange {
  enum class Kind { set_plan, remove_plan, set_override, remove_override };
  Kind kind = Kind::set_plan;
  std::string subject{};
  std::string plan{};
  std::string limits{};
  std::optional<std::string> until{};
};

inline bool is_override(const PlanChange& change) {
  return change.kind == PlanChange::Kind::set_override || change.kind == PlanChange::Kind::remove_override;
}

// The error for changing a plan that a query reads from the user's own tables.
inline Error not_ours() {
  return {ErrorCode::invalid_argument,
          "`plans.query` reads plans from your own tables: change them there. Here you can set overrides"};
}

struct PlanSourceOptions {
  std::string url{};    // sqlite:FILE or postgresql://…
  std::string query{};  // over the user's own tables: $1 is the subject's value, $2 its kind; empty: use our own tables
  Micros timeout{1'000'000};
};

class PlanSource {
 public:
  struct Changes {
    bool all = false;                     // anything may have changed
    std::vector<std::string> subjects{};  // or just these
  };

  virtual ~PlanSource() = default;

  // connect()
  //
  // Opens or reopens the database. Creates our own tables if they are missing.
  virtual Result<void> connect() = 0;

  // find(), all()
  //
  // find() returns a row for each subject that the database knows, in any order. all() returns the first `most` rows
  // after the given subject, sorted by subject. With a query it fails with not_found, since a query reads subjects
  // only one by one.
  virtual Result<std::vector<PlanRow>> find(std::span<const std::string> subjects) = 0;
  virtual Result<std::vector<PlanRow>> all(std::string_view after, std::size_t most) = 0;

  // wait()
  //
  // Waits until something has changed, wake() is called, or `most` is over. Fails if the database is unavailable.
  virtual Result<Changes> wait(Micros most) = 0;
  virtual void wake() noexcept = 0;  // from any thread

  virtual Result<void> write(const PlanChange& change) = 0;
};

// Merges plans and overrides, each sorted by subject, and returns the first `most` rows. Each list must have its first
// `most` rows, or all it has. Not done by a JOIN: two short index scans are several times as fast.
std::vector<PlanRow> merged_rows(std::vector<PlanRow> plans, std::vector<PlanRow> overrides, std::size_t most);

// Fails with invalid_argument if the address or the query is malformed. Only connect() finds out whether the database
// exists.
Result<std::unique_ptr<PlanSource>> make_plan_source(const PlanSourceOptions& options);

// The two kinds that make_plan_source() chooses from.
std::unique_ptr<PlanSource> make_sqlite_source(std::string file, const PlanSourceOptions& options);
Result<std::unique_ptr<PlanSource>> make_postgres_source(const PlanSourceOptions& options);

// What the database says about a subject, as one short text; empty if it says nothing. Two such texts are equal if and
// only if nothing changed. Most are short enough for a string's inline buffer, so 100,000 of them can be kept.
std::string row_text(const PlanRow& row);

// Returns nothing for a text that row_text() cannot have written.
std::optional<PlanRow> row_of_text(std::string_view subject, std::string_view text);

}  // namespace weir::plans
