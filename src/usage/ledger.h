// What every subject uses, by rule and day. Each thread gathers its own lines, which then enter the day's accounts.
//
// Nothing is sampled. A thread adds to its own lines, under a lock that only readers also take. It enters them when
// there are many or the day changes. Accounts of past days are kept as text. The number of accounts per day and of
// days is bounded; sheet.h describes the resulting error. Days are UTC, and time is an argument. Any thread. Tested
// by tests/client_usage_test.cc.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "base/stripe.h"
#include "usage/accounts.h"
#include "usage/sheet.h"
#include "weir/clock.h"
#include "weir/usage.h"

namespace weir::usage {

class Ledger {
 public:
  // The change of one account by one request.
  struct Line {
    std::uint32_t rule = 0;  // its number in the tally
    std::string_view subject{};
    Sums sums{};
  };

  Ledger(const UsageOptions& options, bool hides_subjects);
  ~Ledger();
  Ledger(const Ledger&) = delete;
  Ledger& operator=(const Ledger&) = delete;

  bool is_on() const { return options_.subjects > 0; }
  // The form in which an id is stored: the subject, or its hash.
  std::string kept_id(std::string id) const;
  // Converts loaded accounts in the same way. Returns whether any id changed.
  bool hide(DayAccounts& accounts) const;

  // Assigns the number to this rule from now on.
  void learn(std::uint32_t number, std::string_view rule);
  // If memory runs out, the lines are lost.
  void add(std::span<const Line> lines, Micros now) noexcept;

  // enter_all()
  //
  // Enters all lines that threads have gathered. Closes past days, and deletes days beyond the retention.
  void enter_all(Micros now);

  // Call after enter_all(). Both days are included.
  std::vector<DayAccounts> days(std::int64_t from, std::int64_t to) const;
  // Loads accounts that were saved as text. Fails if the day has data already.
  Result<void> take(std::string text, Micros now);

  // unsaved(), saved()
  //
  // The days that changed since they were last marked as saved, with their versions. Enters all lines first.
  std::vector<SavedUsage> unsaved(Micros now);
  void saved(std::int64_t day, std::uint64_t version);

  UsageStats stats() const;

 private:
  static constexpr std::size_t kSlots = 1'024;  // lines of a thread; a power of two
  static constexpr std::size_t kUsedMax = 768;  // slots in use
  static constexpr std::size_t kIdBytes = 91;   // a longer id is entered at once

  struct alignas(64) Slot {  // most of them touch only one cache line
    std::uint64_t mark = 0;  // 0: empty
    Sums sums;
    std::uint32_t rule;
    std::uint8_t size;
    std::array<char, kIdBytes> id;
  };
  struct Slots {
    std::array<std::uint16_t, kUsedMax> used;  // indexes in order of insertion
    std::array<Slot, kSlots> slots;
  };
  // Half the price of a mutex without contention. Only readers, or a seventeenth thread, contend for it.
  class CAPABILITY("mutex") Turn {
   public:
    void lock() ACQUIRE() {
      while (is_taken_.exchange(true, std::memory_order_acquire)) std::this_thread::yield();
    }
    void unlock() RELEASE() { is_taken_.store(false, std::memory_order_release); }

   private:
    std::atomic<bool> is_taken_{false};
  };
  struct SCOPED_CAPABILITY TurnLock : std::unique_lock<Turn> {
    explicit TurnLock(Turn& turn) ACQUIRE(turn) : unique_lock(turn) {}
    ~TurnLock() RELEASE() = default;
  };
  struct alignas(64) Stripe {
    Turn writing;  // locked before books_
    std::int64_t day GUARDED_BY(writing) = 0;
    std::size_t used GUARDED_BY(writing) = 0;
    std::unique_ptr<Slots> slots GUARDED_BY(writing){};
  };
  struct Day {
    std::unique_ptr<Sheet> sheet{};             // null: the day is closed
    std::shared_ptr<const Sheet> closing{};     // of a day being closed, until its text exists
    std::shared_ptr<const std::string> text{};  // of a closed day
    std::vector<std::uint32_t> rules{};         // the number in the sheet, by number in the tally
    std::uint64_t version = 0, saved = 0;
  };

  void put(Stripe& stripe, const Line& line) REQUIRES(stripe.writing) EXCLUDES(books_);
  void enter(Stripe& stripe) REQUIRES(stripe.writing) EXCLUDES(books_);
  void enter_line(Day& day, const Line& line) REQUIRES(books_);
  void enter_slots(Day& day, const Slots& slots, std::span<const std::uint16_t> used) REQUIRES(books_);
  std::uint32_t sheet_rule(Day& day, std::uint32_t rule) const REQUIRES(books_);
  Day& open(std::int64_t day) REQUIRES(books_);
  void close_before(std::int64_t day) EXCLUDES(books_);
  void forget(std::int64_t day) REQUIRES(books_);

  const UsageOptions options_;
  const bool hides_subjects_;
  const std::uint64_t secret_;
  std::unique_ptr<std::array<Stripe, base::kStripes>> stripes_;

  mutable base::Mutex books_;
  std::vector<std::string> names_ GUARDED_BY(books_);  // of rules, by number
  std::map<std::int64_t, Day> days_ GUARDED_BY(books_);
  std::uint64_t evicted_before_ GUARDED_BY(books_) = 0;  // of deleted sheets
  std::uint64_t lost_ GUARDED_BY(books_) = 0;

  std::atomic<std::int64_t> close_before_{0};  // days before this one to close; 0: none
};

}  // namespace weir::usage
