// What every subject spends, by rule and day: gathered by each thread for itself, then entered into the day's accounts.
//
// Nothing is sampled. A thread adds to lines of its own, under a lock that nobody else wants but who reads; when they
// are many, or the day is another, they are entered. Accounts of days that are over are kept as text. How many accounts
// a day has, and how many days there are, is bounded; see sheet.h for what that costs in exactness. Days are those of
// UTC, and time comes as an argument. Any thread. Tested by tests/spending_test.cc.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "gate/accounts.h"
#include "gate/sheet.h"
#include "gate/stripe.h"
#include "weir/clock.h"
#include "weir/spending.h"

namespace weir {

class Ledger {
 public:
  // What a request changed of one account.
  struct Line {
    std::uint32_t rule = 0;  // its number in the tally
    std::string_view subject{};
    Sums sums{};
  };

  Ledger(const SpendingOptions& options, bool hides_subjects);
  ~Ledger();
  Ledger(const Ledger&) = delete;
  Ledger& operator=(const Ledger&) = delete;

  bool is_on() const { return options_.subjects > 0; }
  const SpendingOptions& options() const { return options_; }
  // An id as it is kept: the subject, or its hash.
  std::string kept_id(std::string id) const;
  // The same of accounts that somebody kept before. Whether any of them was another.
  bool hide(DayAccounts& accounts) const;

  // Whose number this is from now on.
  void learn(std::uint32_t number, std::string_view rule);
  // Without memory it is lost.
  void add(std::span<const Line> lines, Micros now) noexcept;

  // enter_all()
  //
  // All that threads have gathered. Days that are over are closed, those that are long over forgotten.
  void enter_all(Micros now);

  // After enter_all(), of the days from one to the other, both included.
  std::vector<DayAccounts> days(std::int64_t from, std::int64_t to) const;
  // Accounts that were kept before, as text, of a day of which nothing is known yet.
  Result<void> take(std::string text, Micros now);

  // unsaved(), saved()
  //
  // The days that have changed since they were last called saved, and their versions. Enters all first.
  std::vector<SavedSpending> unsaved(Micros now);
  void saved(std::int64_t day, std::uint64_t version);

  SpendingStats stats() const;

 private:
  static constexpr std::size_t kSlots = 1'024;  // lines of a thread; a power of two
  static constexpr std::size_t kUsedMax = 768;  // of them
  static constexpr std::size_t kIdBytes = 91;   // a longer id is entered at once

  struct alignas(64) Slot {  // of most of them one line of the cache is all that is touched
    std::uint64_t mark = 0;  // 0: empty
    Sums sums;
    std::uint32_t rule;
    std::uint8_t size;
    std::array<char, kIdBytes> id;
  };
  struct Slots {
    std::array<std::uint16_t, kUsedMax> used;  // which, in the order of their coming
    std::array<Slot, kSlots> slots;
  };
  // Half the price of a mutex where nobody else wants it, as here: who reads, or a seventeenth thread.
  class Turn {
   public:
    void lock() {
      while (is_taken_.exchange(true, std::memory_order_acquire)) std::this_thread::yield();
    }
    void unlock() { is_taken_.store(false, std::memory_order_release); }

   private:
    std::atomic<bool> is_taken_{false};
  };
  struct alignas(64) Stripe {
    Turn writing;  // of the rest; locked before books_
    std::int64_t day = 0;
    std::size_t used = 0;
    std::unique_ptr<Slots> slots{};
  };
  struct Day {
    std::unique_ptr<Sheet> sheet{};             // null: it is closed
    std::shared_ptr<const Sheet> closing{};     // of one that is being closed, until its text is there
    std::shared_ptr<const std::string> text{};  // of a closed one
    std::vector<std::uint32_t> rules{};         // of each number, its number in the sheet
    std::uint64_t version = 0, saved = 0;
  };

  void put(Stripe& stripe, const Line& line);
  void enter(Stripe& stripe);
  void enter_line(Day& day, const Line& line);
  void enter_slots(Day& day, const Slots& slots, std::span<const std::uint16_t> used);
  std::uint32_t sheet_rule(Day& day, std::uint32_t rule) const;
  Day& open(std::int64_t day);
  void close_before(std::int64_t day);  // without any lock
  void forget(std::int64_t day);

  const SpendingOptions options_;
  const bool hides_subjects_;
  const std::uint64_t secret_;
  std::unique_ptr<std::array<Stripe, kStripes>> stripes_;

  mutable std::mutex books_;        // guards what follows
  std::vector<std::string> names_;  // of rules, by number
  std::map<std::int64_t, Day> days_;
  std::uint64_t evicted_before_ = 0;  // from sheets that are gone
  std::uint64_t lost_ = 0;

  std::atomic<std::int64_t> close_before_{0};  // days that nobody has closed by then; 0: there are none
};

}  // namespace weir
