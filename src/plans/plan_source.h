// A database that knows who is on which plan, as one thread asks it. What it says is not yet trusted.
//
//   auto source = weir::make_plan_source({.url = "sqlite:plans.db"});
//   if (!source) return report(source.error().message);        // the text of the address is wrong
//   (*source)->connect();                                      // and again whenever a call has failed
//
// Every call returns within Options::patience, whatever the database does. All but wake() belong to one thread at a
// time. Tested by sqlite_source_test.cc and postgres_source_test.cc, against real databases.
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

namespace weir {

// What the database says of a subject: a plan, limits instead of the plan's, or both. Numbers are their text, NULL is
// nothing.
struct PlanRow {
  std::string subject{};  // user:42
  bool has_plan = false;  // there is a row
  std::optional<std::string> plan{};
  bool has_override = false;
  std::optional<std::string> limits{};  // 5000/minute
  std::optional<std::string> until{};   // 2026-12-31, a time of RFC 3339, or seconds since the epoch; nothing: no end
  std::string error{};  // why nothing of this can be right: two rows for one subject, a text without end
};

// What is to be written of a subject.
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

// With a query, the plans are in tables that are not ours.
inline Error not_ours() {
  return {ErrorCode::invalid_argument,
          "plans are read by a query from tables that are not ours: change them there. Overrides can be set"};
}

struct PlanSourceOptions {
  std::string url{};    // sqlite:FILE or postgresql://…
  std::string query{};  // over the user's own tables: $1 is the subject's value, $2 its kind; empty: our own tables
  Micros patience{1'000'000};
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
  // Opens it, or opens it anew. Our own tables are made if they are not there.
  virtual Result<void> connect() = 0;

  // find(), all()
  //
  // A row for each subject of whom something is known, in any order. all() are the first so many in the order of their
  // names, after the given one; not_found with a query, which knows subjects only one by one.
  virtual Result<std::vector<PlanRow>> find(std::span<const std::string> subjects) = 0;
  virtual Result<std::vector<PlanRow>> all(std::string_view after, std::size_t most) = 0;

  // wait()
  //
  // Until something has changed, wake() was called or so much time is over. An error if the database is gone.
  virtual Result<Changes> wait(Micros most) = 0;
  virtual void wake() noexcept = 0;  // from any thread

  virtual Result<void> write(const PlanChange& change) = 0;
};

// invalid_argument if the text of the address or of the query cannot be right; whether there is such a database is told
// by connect().
Result<std::unique_ptr<PlanSource>> make_plan_source(const PlanSourceOptions& options);

}  // namespace weir
