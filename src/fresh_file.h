// Opens a new file of Weir's own, to be written and then renamed over an older one.
//
// Whatever has that name is removed first, be it left over from a process that was killed or a link that somebody made:
// the link is removed, not followed, so the file that it points to stays as it is. Only the owner may read the new
// file. Any thread. Tested by admin/journal_test.cc, fleet/keepsake_test.cc and plans/plan_memory_test.cc.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <string>
#include <string_view>

namespace weir {

// The descriptor; -1, with errno set, if the file cannot be created.
inline int open_fresh_file(const std::string& path) {
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) return -1;
  return ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600);
}

// False, with errno set, if not all of it could be written.
inline bool write_all(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t put = ::write(file, text.data(), text.size());
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(put));
  }
  return true;
}

}  // namespace weir
