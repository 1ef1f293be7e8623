// Who is at a state file: locks on bytes far behind its data, which the system drops when their holder dies.
//
// They belong to an open file, not to a process: a child that was forked shares its parent's until it opens the file
// again (reopen()), and two tables of one process that share a file hold each other out as two processes would. No
// lock is ever waited for, but by who opens the file. Without a file (-1) there is nobody else, and every lock is
// had. Any thread. Tested by locks_test.cc.
#pragma once

#include <cstdint>

#include "weir/result.h"

namespace weir::table {

enum class Use : std::uint8_t {
  none,    // somebody has it alone and does not let go
  shared,  // others have the file open, or may open it
  sole,    // nobody else has it open, and nobody can open it until share_users()
};

// lock_users()
//
// Sole if nobody else has the file open, else shared. Who has it alone is about to repair or to resize it: that is
// waited for, in naps of 5 ms.
inline constexpr int kNapsMax = 1'000;
Result<Use> lock_users(int fd, int naps_max = kNapsMax);

// From sole to shared: others may come now. And back: true if nobody else is there.
void share_users(int fd);
bool try_sole_users(int fd);

// Whether anybody else has it open, or is about to; and whether it is somebody who has it alone.
bool has_users(int fd);
bool has_sole_user(int fd);

// The one who sweeps.
bool try_lock_owner(int fd);
void unlock_owner(int fd);

// The one at a participant's record. Getting it proves that the last holder of the record is gone.
bool try_lock_participant(int fd, std::uint64_t i);
void unlock_participant(int fd, std::uint64_t i);

// reopen()
//
// The same file, opened again, without any locks: for a child after fork().
Result<int> reopen(int fd);

}  // namespace weir::table
