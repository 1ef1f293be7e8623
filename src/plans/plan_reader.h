// The reading part of the plan directory's thread: what to read from the database next, and what to do with a reply.
//
// A turn serves, in this order: new subjects, subjects reported as changed, and one piece of a full read. So a new
// subject waits for at most one such piece. If the database reports that anything may have changed, our own tables
// are read page by page. With a query, or with more rows than fit into the cache, the known subjects are read one by
// one, the most recently requested first. Then the reader rests for as long as the read took, at most 250 ms, so that
// a database that changes constantly is not read constantly. One thread may use it. Tested by plan_directory_test.cc.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "plans/plan_cache.h"
#include "plans/plan_directory.h"
#include "plans/plan_memory.h"
#include "plans/plan_source.h"
#include "plans/refusals.h"
#include "weir/clock.h"
#include "weir/result.h"

namespace weir::plans {

class PlanReader {
 public:
  using Check = std::function<Result<CheckedRow>(const PlanRow&)>;
  struct Bounds {
    std::size_t subjects_max = 0;
    Micros refresh{0};
  };

  PlanReader(PlanSource& source, PlanCache& cache, Refusals& refusals, Bounds bounds);

  void check_by(Check check, Micros now);  // and checks known rows again
  void start_over();                       // after a new connection
  void read_all();                         // once more, if a full read is running
  void read(std::vector<std::string> subjects);

  // Does one piece of the work that is due. An error comes from the source.
  Result<void> turn(Micros now);
  bool is_idle(Micros now) const { return changed_.empty() && work_ == Work::none && now < next_at(); }
  Micros next_at() const { return is_again_ ? std::min(rest_until_, refresh_at_) : refresh_at_; }
  // Loads rows from the saved file. Each is valid until the database says otherwise.
  void recall(const std::vector<RememberedRow>& rows, Micros now);
  bool was_read() const { return was_read_; }  // the whole database, at least once

  // look_up()
  //
  // Reads at most at_once() subjects. A failed request may have been too large, so the next one has half the size.
  // The size grows again while replies are fast.
  Result<void> look_up(std::span<const std::string> subjects, PlanCache::WhenFull then, Micros now);

  std::size_t at_once() const { return at_once_; }

  std::uint64_t lookups() const { return lookups_; }
  std::uint64_t changes() const { return changes_; }

 private:
  enum class Work { none, pages, subjects };

  void take(const PlanRow& row, PlanCache::WhenFull then, Micros now);
  PlanCache::Mark mark() const { return {era_, reading_}; }
  void begin(Micros now);
  void begin_subjects();
  void finish(Micros now);
  Result<void> read_page(Micros now);
  Result<void> read_subjects(Micros now);
  void plan_refresh(Micros now);
  Result<void> refresh_some(Micros now);

  PlanSource& source_;
  PlanCache& cache_;
  Refusals& refusals_;
  const Bounds bounds_;
  Check check_;
  std::uint32_t era_ = 0, reading_ = 0;
  Work work_ = Work::none;
  bool is_again_ = false, was_read_ = false;
  bool has_pages_ = true;  // until the source or the number of rows rules pages out
  std::size_t at_once_, quick_ = 0;
  std::string after_;
  std::size_t rows_ = 0;
  std::vector<std::string> subjects_;  // in reverse order
  std::deque<std::string> changed_;
  PlanCache::Walk refreshed_;
  Micros refresh_at_{0}, began_at_{0}, rest_until_{0};
  std::minstd_rand random_;
  std::uint64_t lookups_ = 0, changes_ = 0;
};

}  // namespace weir::plans
