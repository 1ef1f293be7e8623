// The plans of known subjects: a bounded map in parts, each behind a lock that is held for less than a microsecond.
//
// When the map is full, it evicts subjects that were not requested lately (CLOCK). While more than an eighth of the
// subjects have no row in the database, only such subjects are evicted. So a client that invents subjects mostly evicts
// other invented ones. Subjects come from outside, so they are hashed under a secret. Any
// thread may call it, except where noted. Tested by plan_cache_test.cc.
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

namespace weir::plans {

// The stored plan of a subject.
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
  // Returns what is known now. An unknown subject becomes pending. If `wants_lookup` is set, the caller must look it
  // up, and must call not_queued() if it cannot.
  PlanTerms find(std::string_view subject, bool& wants_lookup);
  void not_queued(std::string_view subject);

  // Waits until the subject is no longer pending, at most `most`. Does not wait if no lookup of the subject is
  // queued.
  enum class Waited { known, timed_out, not_at_all };
  Waited wait(std::string_view subject, Micros most);

  // Whether the database's row, as row_text() encodes it, was checked already with the current tiers. If so, nothing
  // is left to do.
  struct Mark {
    std::uint32_t era = 0;      // of the tiers
    std::uint32_t reading = 0;  // of the whole table: the last one that found the row
  };
  bool is_same(std::string_view subject, std::string_view text, Mark mark);

  // keep()
  //
  // Stores the terms of a row. Null terms mean that the row was refused, so the subject keeps its previous terms. An
  // unknown subject is added only if there is free capacity, or if `then` allows eviction. Returns true if a known
  // subject changed.
  enum class WhenFull { skip, evict };
  bool keep(std::string_view subject, std::string_view text, const KeptTerms* terms, Mark mark, WhenFull then);

  // Iterates over all subjects in steps, while others are added and removed. Every subject that stays throughout is
  // seen. One thread may use a Walk.
  struct Walk {
    std::size_t part = 0, ring = 0, left = SIZE_MAX;
  };
  struct Seen {
    std::string subject{}, text{};
    std::string accepted{};  // the row that its terms come from; differs from `text` if that was refused
    Mark mark{};
    std::uint32_t asked = 0;  // the tick of the last find()
    bool is_pending = false;
  };
  // Appends at least one subject and about `most`. Returns false when all were seen.
  bool next(Walk& walk, std::size_t most, std::vector<Seen>& seen) const;
  // Calls `see` for every subject, in steps. It may change what it sees.
  template <class See>
  void each(See see) const {
    constexpr std::size_t kAtOnce = 256;
    Walk walk;
    std::vector<Seen> seen;
    for (bool is_more = true; is_more; seen.clear()) {
      is_more = next(walk, kAtOnce, seen);
      for (Seen& one : seen) see(one);
    }
  }

  void set_tick(std::uint32_t tick) { tick_.store(tick, std::memory_order_relaxed); }
  std::size_t size() const { return size_.load(std::memory_order_relaxed); }
  std::size_t pending() const { return pending_.load(std::memory_order_relaxed); }
  std::uint64_t evicted() const { return evicted_.load(std::memory_order_relaxed); }
  std::uint64_t edits() const { return edits_.load(std::memory_order_relaxed); }  // changes of accepted rows

 private:
  struct Part;
  struct Place {
    Part& part;
    std::uint64_t hash;  // finds the subject in the part's index
  };
  Place place_of(std::string_view subject) const;
  void push_one_out(Part& part);
  bool is_full() const { return size() >= subjects_max_; }

  const std::size_t subjects_max_;
  const std::uint64_t secret_[2];
  std::vector<std::unique_ptr<Part>> parts_;
  std::set<std::string, std::less<>> names_;  // names of plans, never removed; used by the thread that calls keep()
  std::atomic<std::uint32_t> tick_{0};
  std::atomic<std::size_t> size_{0}, pending_{0};
  std::atomic<std::uint64_t> evicted_{0}, edits_{0};
};

}  // namespace weir::plans
