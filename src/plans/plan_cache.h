// What is known of each subject: a bounded map in parts, each behind a lock that is held for less than a microsecond.
//
// When it is full, the subjects that were not asked about of late go first (CLOCK), and before those with a row of
// their own those without one, as long as they are more than an eighth: who makes up subjects pushes out little but
// others' made-up ones. Hashed under a secret, since subjects come from outside. Any thread, but for what says
// otherwise. Tested by plan_cache_test.cc.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "weir/clock.h"
#include "weir/plans.h"

namespace weir {

// What a subject is entitled to, as it is kept.
struct KeptTerms {
  std::string plan{}, instead{};
  Micros until{0};
};

class PlanCache {
 public:
  explicit PlanCache(std::size_t subjects_max);
  ~PlanCache();
  PlanCache(const PlanCache&) = delete;
  PlanCache& operator=(const PlanCache&) = delete;

  // find()
  //
  // What is known now. A subject that is not known is pending from now on; wants_lookup says that the caller is the one
  // who has to see to it, and must say so with not_queued() if nobody will.
  PlanTerms find(std::string_view subject, bool& wants_lookup);
  void not_queued(std::string_view subject);

  // Until the subject is no longer pending, or so much time is over. Nobody waits for what nobody looks up.
  enum class Waited { known, in_vain, not_at_all };
  Waited wait(std::string_view subject, Micros most);

  // The row that the database has now, as row_text() writes it: whether it is the one that was judged already, in this
  // era of tiers. If so, nothing is left to do.
  struct Mark {
    std::uint32_t era = 0;      // of the tiers
    std::uint32_t reading = 0;  // of the whole table; the last in which it was found
  };
  bool is_same(std::string_view subject, std::string_view text, Mark mark);

  // keep()
  //
  // What a row was judged to mean; null: it was refused, and the subject keeps what it had. A subject that is not here
  // is taken in only if there is room, or if it may push out others. True if a subject that was known has changed.
  enum class Room { as_left, make };
  bool keep(std::string_view subject, std::string_view text, const KeptTerms* terms, Mark mark, Room room);

  // Walking over all subjects, some at a time, while others come and go. Each that was here from the beginning to the
  // end is seen. For one thread.
  struct Walk {
    std::size_t part = 0, ring = 0, left = SIZE_MAX;
  };
  struct Seen {
    std::string subject{}, text{};
    std::string accepted{};  // of the row that its terms came from: not the text above, if that was refused
    Mark mark{};
    std::uint32_t asked = 0;  // the tick in which it was last asked about
    bool is_pending = false;
  };
  // Adds at least one and about `most`; false when all were seen.
  bool next(Walk& walk, std::size_t most, std::vector<Seen>& seen) const;

  void set_tick(std::uint32_t tick) { tick_.store(tick, std::memory_order_relaxed); }
  std::size_t size() const { return size_.load(std::memory_order_relaxed); }
  std::size_t pending() const { return pending_.load(std::memory_order_relaxed); }
  std::uint64_t evicted() const { return evicted_.load(std::memory_order_relaxed); }
  std::uint64_t edits() const { return edits_.load(std::memory_order_relaxed); }  // of what was accepted

 private:
  struct Part;
  Part& part_of(std::string_view subject, std::uint64_t& hash) const;
  void push_one_out(Part& part);
  bool is_full() const { return size() >= subjects_max_; }

  const std::size_t subjects_max_;
  const std::uint64_t secret_[2];
  std::vector<std::unique_ptr<Part>> parts_;
  std::set<std::string, std::less<>> names_;  // of plans, which live as long as this; of the thread that keeps
  std::atomic<std::uint32_t> tick_{0};
  std::atomic<std::size_t> size_{0}, pending_{0};
  std::atomic<std::uint64_t> evicted_{0}, edits_{0};
};

}  // namespace weir
