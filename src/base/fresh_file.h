// Opens a new file of Weir's own, to be written and then renamed over an older one.
//
// It first removes whatever has that name, whether a leftover of a killed process or a link. It removes a link
// instead of following it, so the link's target does not change. Only the owner may read the new file. Any thread.
// Tested by control/journal_test.cc, fleet/keepsake_test.cc and plans/plan_memory_test.cc.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <string>
#include <string_view>

namespace weir {

// Returns the descriptor; -1, with errno set, if the file cannot be created.
inline int open_fresh_file(const std::string& path) {
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) return -1;
  return ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600);
}

// Returns false, with errno set, if it could not write everything.
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
