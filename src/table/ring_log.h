// A sliding log in a block: a ring of events behind the block's head, read in place and changed entry by entry.
//
// An event is its time and the cumulative total of costs, as in algorithm/sliding_log.h, whose functions work on this
// class. Up to 30 minutes and 2^31 permits, an event takes 8 bytes: both numbers are stored modulo 2^31, and times
// are relative to the newest. Otherwise an event takes 12 bytes: four events in three words. The head says where the
// ring begins, how many events it has, and what the total was before the first. Here totals count from there.
//
// apply() changes only the view. patches() returns the changed words, and copy() fills another block. A refund
// changes the totals of all later events. The view is then a separate log, which only copy() can store. What is read
// counts only if the key's slot still contains what it did before. One thread. Tested by ring_log_test.cc and the
// differential tests.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "algorithm/sliding_log.h"
#include "table/operation.h"
#include "table/pack.h"

namespace weir::table {

enum class LogFormat : std::uint8_t { narrow, wide };

LogFormat log_format(const Limit& limit);
// The capacity, in events, of a block of 2^block_class lines; the class with at least this capacity.
std::int64_t log_capacity(unsigned block_class, LogFormat format);
unsigned log_class(std::int64_t events, LogFormat format);

// The change of an event in a word that it shares with other events.
struct Patch {
  Word keep, set;
  Unit* unit = nullptr;  // where the word is
  Word operator()(const Word& word) const {
    return {(word.tag & keep.tag) | set.tag, (word.state & keep.state) | set.state};
  }
};

class RingLog {
 public:
  RingLog() = default;  // no events, in no block

  // Nothing if the head cannot be right, because it changed while it was read.
  static std::optional<RingLog> read(Actor& actor, Line& block, const Word& state, unsigned block_class,
                                     LogFormat format);

  std::int64_t size() const { return rewritten_ ? rewritten_->size() : size_; }
  std::int64_t base() const { return rewritten_ ? rewritten_->base() : 0; }
  std::int64_t time(std::int64_t i) const;
  std::int64_t total(std::int64_t i) const;
  void apply(const algorithm::LogEdit& edit);
  void apply(const algorithm::LogRefund& refund);

  // Whether patches() can store the log.
  bool fits() const { return !rewritten_ && size_ <= capacity_; }
  LogFormat format() const { return format_; }
  std::int64_t capacity() const { return capacity_; }

  // patches()
  //
  // Each word of the ring that has to change, in the order of the events.
  struct Patches;
  Patches patches() const;
  Word state() const;  // of the head

  // copy()
  //
  // Copies all events into a block that belongs to the actor and has capacity for them. Returns the head's state.
  Word copy(Actor& actor, Line& block, LogFormat format) const;

 private:
  struct Event {
    std::int64_t time_us;
    std::uint64_t total;  // as stored; for a change in full, as it may belong to a limit of the other format
  };
  static constexpr std::size_t kChangesMax = 4;  // correcting, converting and charging make one change each
  struct Change {
    std::int64_t position;
    Event event;
  };

  std::uint64_t total_mask() const;
  const Change* change_of(std::int64_t i) const;
  Event stored(std::int64_t position) const;
  std::int64_t too_old(LogFormat format) const;

  Actor* actor_ = nullptr;
  Line* block_ = nullptr;
  LogFormat format_ = LogFormat::wide;
  std::int64_t capacity_ = 0;
  std::int64_t first_ = 0;  // the position of the first event; at most one lap ahead of the ring
  std::int64_t size_ = 0;
  std::uint64_t base_ = 0;      // in full, as far as this view needs
  std::int64_t newest_us_ = 0;  // from the head: narrow times are relative to it
  Change changes_[kChangesMax]{};
  std::size_t changed_ = 0;
  std::optional<algorithm::SlidingLog> rewritten_{};  // replaces the whole log
};

struct RingLog::Patches {
  std::array<Patch, 3 * kChangesMax> all;
  std::size_t count = 0;
  const Patch* begin() const { return all.data(); }
  const Patch* end() const { return all.data() + count; }
};

}  // namespace weir::table
