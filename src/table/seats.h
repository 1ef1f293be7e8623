// Participants' records, for the threads of this process: who changes several words at once sits down at one first.
//
// A record is claimed for the process by a lock on the file, once, and then handed from thread to thread by a flag. It
// is never waited for: if all are taken, that is an error. Getting the lock of a record proves that whoever had it is
// dead; what it left is brought to an end then. A child after fork() starts without records: the flags lie on a page
// that the system wipes there. Any thread. Tested by seats_test.cc.
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
    Seat(Seats& seats, std::uint64_t who) : seats_(&seats), who_(who), actor_(seats.mapping_.region(), who) {}
    Seat(Seat&& other) noexcept : seats_(other.seats_), who_(other.who_), actor_(other.actor_) {
      other.seats_ = nullptr;
    }
    Seat& operator=(Seat&&) = delete;
    ~Seat() {
      if (seats_ != nullptr) seats_->stand_up(who_);
    }
    Actor& actor() { return actor_; }
    std::uint64_t who() const { return who_; }

   private:
    Seats* seats_;
    std::uint64_t who_;
    Actor actor_;
  };

  Result<Seat> sit_down();

  // False in a child that has not used the table since fork(): its locks are its parent's.
  bool is_born() const { return is_own() && flags_->life.load() == kAlive; }

  // Ends what the dead left; for the sweep.
  void recover_dead();

 private:
  enum State : std::uint8_t { kForeign = 0, kIdle = 1, kTaken = 2 };
  enum Life : std::uint32_t { kUnborn = 0, kBeingBorn = 1, kAlive = 2 };
  struct Flags {
    std::atomic<std::uint32_t> life;  // kUnborn on a wiped page
    std::atomic<std::uint8_t> state[kParticipants];
  };

  bool claim(std::uint64_t who, bool has_writers);
  void wipe_after_fork();
  bool is_own() const;
  void stand_up(std::uint64_t who) { flags_->state[who].store(kIdle, std::memory_order_release); }
  Result<void> be_born();

  Mapping& mapping_;
  Registry& registry_;
  Flags* flags_;
  bool is_wiped_on_fork_;       // else this process must notice by itself
  std::atomic<pid_t> process_;  // that the flags are of
};

}  // namespace weir::table
