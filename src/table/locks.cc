// Open file description locks (Linux 3.15), each on its own byte. See locks.h.

#include "table/locks.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <string>
#include <thread>

namespace weir::table {
namespace {

constexpr off_t kUsers = off_t{1} << 62;
constexpr off_t kOwner = kUsers + 1;
constexpr off_t kParticipant = kUsers + 4096;
constexpr std::chrono::milliseconds kNap{5};

struct flock lock_on(off_t byte, short type) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = byte;
  lock.l_len = 1;
  return lock;
}

// 0, or the system's error number.
int set_lock(int fd, off_t byte, short type) {
  if (fd < 0) return 0;
  struct flock lock = lock_on(byte, type);
  while (fcntl(fd, F_OFD_SETLK, &lock) != 0) {
    if (errno != EINTR) return errno;
  }
  return 0;
}

// Whether another file's lock on the users' byte conflicts with a lock of this type.
bool is_kept_out(int fd, short type) {
  struct flock lock = lock_on(kUsers, type);
  return fd >= 0 && fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

bool is_taken(int error) { return error == EAGAIN || error == EACCES; }

}  // namespace

Result<Use> lock_users(int fd, int naps_max) {
  for (int naps = 0;; ++naps) {
    int error = set_lock(fd, kUsers, F_WRLCK);
    if (error == 0) return Use::sole;
    if (is_taken(error)) error = set_lock(fd, kUsers, F_RDLCK);
    if (error == 0) return Use::shared;
    if (!is_taken(error)) {
      return fail(ErrorCode::unavailable,
                  std::string("cannot be locked: ") + std::strerror(error) + "; put it on a local disk");
    }
    if (naps == naps_max) return Use::none;
    std::this_thread::sleep_for(kNap);
  }
}

void share_users(int fd) { set_lock(fd, kUsers, F_RDLCK); }
bool try_sole_users(int fd) { return set_lock(fd, kUsers, F_WRLCK) == 0; }

bool has_users(int fd) { return is_kept_out(fd, F_WRLCK); }
bool has_sole_user(int fd) { return is_kept_out(fd, F_RDLCK); }

bool try_lock_owner(int fd) { return set_lock(fd, kOwner, F_WRLCK) == 0; }
void unlock_owner(int fd) { set_lock(fd, kOwner, F_UNLCK); }

bool try_lock_participant(int fd, std::uint64_t i) {
  return set_lock(fd, kParticipant + static_cast<off_t>(i), F_WRLCK) == 0;
}
void unlock_participant(int fd, std::uint64_t i) { set_lock(fd, kParticipant + static_cast<off_t>(i), F_UNLCK); }

Result<int> reopen(int fd) {
  const std::string name = "/proc/self/fd/" + std::to_string(fd);
  const int again = open(name.c_str(), O_RDWR | O_CLOEXEC);
  if (again >= 0) return again;
  return fail(ErrorCode::unavailable, "cannot open the state file again after fork(): " +
                                          std::string(std::strerror(errno)) + "; is /proc mounted?");
}

}  // namespace weir::table
