// Participants' records, for the threads of this process: who changes several words at once sits down at one first.
//
// A record is claimed for the process by a lock on the file, and then handed from thread to thread by a word in it,
// which also says since when its thread is at work (recycle.h). A process keeps the first half of the records that it
// has claimed; one of the second half goes back when its thread stands up, so that any number of idle processes leave
// half of the records to those at work. It is never waited for: if all are taken, that is an error. Getting the lock of
// a record proves that whoever had it is dead, or has returned it; what it left is brought to an end then. A child
// after fork() starts without records: what they are known by lies on a page that the system wipes there. Any thread.
// Tested by seats_test.cc and process_test.cc.
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

  // A thread's place while it lives.
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

  // Records that a process keeps when nobody sits there; those above are returned.
  static constexpr std::uint64_t kKept = kParticipants / 2;

  Result<Seat> sit_down();

  // False in a child that has not used the table since fork(): its locks are its parent's.
  bool is_born() const { return is_own() && flags_->life.load() == kAlive; }

  // Ends what the dead left; for the sweep.
  void recover_dead();

  // Only one thread of the process sweeps at a time: the lock on the file does not tell threads apart.
  bool try_sweep() { return flags_->sweeping.exchange(1, std::memory_order_acquire) == 0; }
  void end_sweep() { flags_->sweeping.store(0, std::memory_order_release); }

 private:
  static constexpr std::uint32_t kForeign = 0, kBeingClaimed = ~std::uint32_t{0};
  enum Life : std::uint32_t { kUnborn = 0, kBeingBorn = 1, kAlive = 2 };
  struct Flags {
    std::atomic<std::uint32_t> life;  // kUnborn on a wiped page
    std::atomic<std::uint32_t> sweeping;
    std::atomic<std::uint32_t> claims[kParticipants];  // of this process; kForeign: it has none there
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
  bool is_wiped_on_fork_;       // else this process must notice by itself
  std::atomic<pid_t> process_;  // that the flags are of
};

}  // namespace weir::table
