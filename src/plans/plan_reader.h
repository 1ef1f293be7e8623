// The thread's part of a directory of plans: what is to be asked of the database next, and what an answer means.
//
// A turn serves, in this order: subjects that are new, subjects that are said to have changed, and a piece of whatever
// reads everything again. So a new subject waits for one such piece at most. When the database said that anything may
// have changed, our own tables are read page by page; with a query, or with more rows than are remembered, the known
// subjects are asked for one by one, those asked about most recently first. After that it rests as long as that took,
// up to a quarter of a second: a database that changes all the time is not read all the time. One thread. Tested by
// plan_directory_test.cc.
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

namespace weir {

class PlanReader {
 public:
  using Judge = std::function<Result<JudgedRow>(const PlanRow&)>;
  struct Bounds {
    std::size_t subjects_max = 0;
    Micros refresh{0};
  };

  PlanReader(PlanSource& source, PlanCache& cache, Refusals& refusals, Bounds bounds);

  void judge_by(Judge judge, Micros now);  // and judges anew what is kept
  void start_over();                       // with a connection that is new
  void read_all();                         // once more, if it is being read already
  void read(std::vector<std::string> subjects);

  // One piece of the work that is due. An error is the source's.
  Result<void> turn(Micros now);
  bool is_idle(Micros now) const { return changed_.empty() && work_ == Work::none && now < next_at(); }
  Micros next_at() const { return is_again_ ? std::min(rest_until_, refresh_at_) : refresh_at_; }
  // Rows that were known when there was a thread before; each until the database says otherwise.
  void recall(const std::vector<RememberedRow>& rows, Micros now);
  bool was_read() const { return was_read_; }  // all of it, once

  // look_up()
  //
  // At most at_once() subjects. A question that fails may have been too large: it is halved for the next time, and
  // grows again while the answers are quick.
  Result<void> look_up(std::span<const std::string> subjects, PlanCache::Room room, Micros now);

  std::size_t at_once() const { return at_once_; }

  std::uint64_t lookups() const { return lookups_; }
  std::uint64_t changes() const { return changes_; }

 private:
  enum class Work { none, pages, subjects };

  void take(const PlanRow& row, PlanCache::Room room, Micros now);
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
  Judge judge_;
  std::uint32_t era_ = 0, reading_ = 0;
  Work work_ = Work::none;
  bool is_again_ = false, was_read_ = false;
  bool has_pages_ = true;  // until the source or the number of rows says otherwise
  std::size_t at_once_, quick_ = 0;
  std::string after_;
  std::size_t rows_ = 0;
  std::vector<std::string> subjects_;  // from the last to the first
  std::deque<std::string> changed_;
  PlanCache::Walk refreshed_;
  Micros refresh_at_{0}, began_at_{0}, rest_until_{0};
  std::minstd_rand random_;
  std::uint64_t lookups_ = 0, changes_ = 0;
};

}  // namespace weir
