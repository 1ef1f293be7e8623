// Which processes use a state file: locks on bytes far behind its data. The system drops a lock when its owner dies.
//
// A lock belongs to an open file, not to a process. A forked child shares its parent's locks until it opens the file
// again (reopen()). Two tables of one process that share a file exclude each other as two processes would. Only a
// process that opens the file ever waits for a lock. Without a file (-1) there are no other users, and every lock
// succeeds. Any thread. Tested by locks_test.cc.
#pragma once

#include <cstdint>

#include "weir/result.h"

namespace weir::table {

enum class Use : std::uint8_t {
  none,    // another user has it exclusively and does not release it
  shared,  // other users have the file open, or may open it
  sole,    // no other user has it open, and none can open it until share_users()
};

// lock_users()
//
// Returns sole if no other user has the file open, else shared. An exclusive user is about to repair or to resize the
// file: this waits for it, in naps of 5 ms.
inline constexpr int kNapsMax = 1'000;
Result<Use> lock_users(int fd, int naps_max = kNapsMax);

// share_users() goes from sole to shared: other users may come now. try_sole_users() goes back: true if there is no
// other user.
void share_users(int fd);
bool try_sole_users(int fd);

// Whether another user has the file open, or is about to; whether another user has it exclusively.
bool has_users(int fd);
bool has_sole_user(int fd);

// The lock of the process that sweeps.
bool try_lock_owner(int fd);
void unlock_owner(int fd);

// The lock of a participant's record. Getting it proves that the record's last owner is gone.
bool try_lock_participant(int fd, std::uint64_t i);
void unlock_participant(int fd, std::uint64_t i);

// reopen()
//
// The same file, opened again, without any locks: for a child after fork().
Result<int> reopen(int fd);

}  // namespace weir::table
