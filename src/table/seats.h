// The participants' records, for the threads of this process. A thread takes a seat before it changes several words
// at once.
//
// A process claims a record by a lock on the file, and then passes it from thread to thread by a word in it. That
// word also says since when the thread is at work (recycle.h). A process keeps the claimed records of the first half.
// It returns a record of the second half when its thread leaves the seat. So any number of idle processes leave half
// of the records to active ones. No thread waits for a record: if all are taken, that is an error. Getting the lock of
// a record proves that its previous owner is dead, or has returned it; then what it left is completed. A child after
// fork() starts without records, because its list of claims lies on a page that the system wipes there. Any thread.
// Tested by seats_test.cc and tests/process_test.cc.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>

#include "table/file.h"
#include "table/operation.h"
#include "table/registry.h"

namespace weir::table {

class Seats {
 public:
  Seats(Mapping& mapping, Registry& registry);
  ~Seats();
  Seats(const Seats&) = delete;
  Seats& operator=(const Seats&) = delete;

  // A thread's seat at a record, for the lifetime of this object.
  class Seat {
   public:
    Seat(Seats& seats, std::uint64_t who, std::uint64_t claim)
        : seats_(&seats), claim_(claim), actor_(seats.mapping_.region(), who) {}
    Seat(Seat&& other) noexcept : seats_(other.seats_), claim_(other.claim_), actor_(other.actor_) {
      other.seats_ = nullptr;
    }
    Seat& operator=(Seat&&) = delete;
    ~Seat() {
      if (seats_ != nullptr) seats_->stand_up(who(), claim_);
    }
    Actor& actor() { return actor_; }
    std::uint64_t who() const { return actor_.who(); }

   private:
    Seats* seats_;
    std::uint64_t claim_;
    Actor actor_;
  };

  // Records below this number stay with the process when no thread uses them; those above are returned.
  static constexpr std::uint64_t kKept = kParticipants / 2;

  Result<Seat> sit_down();

  // False in a child that has not used the table since fork(): its locks are still its parent's.
  bool is_born() const { return is_own() && flags_->life.load() == kAlive; }

  // Completes what dead participants left; for the sweep.
  void recover_dead();

  // Only one thread of the process sweeps at a time, since the lock on the file does not distinguish threads.
  bool try_sweep() { return flags_->sweeping.exchange(1, std::memory_order_acquire) == 0; }
  void end_sweep() { flags_->sweeping.store(0, std::memory_order_release); }

 private:
  static constexpr std::uint32_t kForeign = 0, kBeingClaimed = ~std::uint32_t{0};
  enum Life : std::uint32_t { kUnborn = 0, kBeingBorn = 1, kAlive = 2 };
  struct Flags {
    std::atomic<std::uint32_t> life;  // kUnborn on a wiped page
    std::atomic<std::uint32_t> sweeping;
    std::atomic<std::uint32_t> claims[kParticipants];  // of this process; kForeign: no claim
  };

  bool try_claim(std::uint64_t who);
  void recover(std::uint64_t who);
  bool is_kept(std::uint64_t who) const { return who < kKept || mapping_.fd() < 0; }
  void wipe_after_fork();
  bool is_own() const;
  void stand_up(std::uint64_t who, std::uint64_t claim);
  Result<void> be_born();

  Mapping& mapping_;
  Registry& registry_;
  Flags* flags_;
  bool is_wiped_on_fork_;       // else this process must detect the fork itself
  std::atomic<pid_t> process_;  // the process that the flags belong to
};

}  // namespace weir::table
