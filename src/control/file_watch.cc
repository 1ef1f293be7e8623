// Watches folders with inotify. See file_watch.h.
#include "control/file_watch.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

namespace weir::control {
namespace {

namespace fs = std::filesystem;

constexpr int kQuietMs = 60;     // programs save a file in several steps
constexpr int kQuietTries = 20;  // at most this many pauses
constexpr int kLinksMax = 40;

std::vector<std::string> parts_of(const fs::path& path) {
  std::vector<std::string> parts;
  for (const fs::path& part : path.relative_path()) {
    if (!part.empty() && part != ".") parts.push_back(part.string());
  }
  return parts;
}

}  // namespace

std::set<std::string> FileWatch::folders_of(const std::string& path) {
  std::set<std::string> folders;
  std::error_code error;
  const fs::path whole = fs::absolute(path, error);
  if (error) return folders;
  std::vector<std::string> rest = parts_of(whole);
  std::reverse(rest.begin(), rest.end());
  fs::path at = "/";
  for (int links = 0; !rest.empty();) {
    const std::string part = std::move(rest.back());
    rest.pop_back();
    if (part == "..") {
      at = at.parent_path();
      continue;
    }
    const fs::path next = at / part;
    if (!fs::is_symlink(next, error) || ++links > kLinksMax) {
      if (rest.empty()) folders.insert(at.string());
      at = next;
      continue;
    }
    folders.insert(at.string());
    const fs::path target = fs::read_symlink(next, error);
    if (target.is_absolute()) at = "/";
    const std::vector<std::string> parts = parts_of(target);
    rest.insert(rest.end(), parts.rbegin(), parts.rend());
  }
  return folders;
}

FileWatch::FileWatch(const std::string& path) : FileWatch([path] { return folders_of(path); }) {}

FileWatch::FileWatch(Folders wanted) : wanted_(std::move(wanted)), wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  follow();
}

// Returns whether the path now goes through other folders. A new set of watches is simpler than an updated one.
bool FileWatch::follow() {
  if (!wanted_) return false;
  std::set<std::string> folders = wanted_();
  if (events_ && folders == folders_) return false;
  base::Descriptor events(inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  if (!events) return false;
  for (const std::string& folder : folders) {
    inotify_add_watch(events.get(), folder.c_str(),
                      IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_CREATE | IN_DELETE | IN_DELETE_SELF);
  }
  events_ = std::move(events);
  folders_ = std::move(folders);
  return true;
}

// Whether there were any events.
bool FileWatch::drain() const {
  alignas(inotify_event) std::array<char, 4096> buffer{};
  bool any = false;
  while (events_ && read(events_.get(), buffer.data(), buffer.size()) > 0) any = true;
  return any;
}

bool FileWatch::wait(int timeout_ms) {
  const bool leads_elsewhere = follow();
  std::array<pollfd, 2> wanted = {{{wake_.get(), POLLIN, 0}, {events_.get(), POLLIN, 0}}};
  if (!leads_elsewhere) {
    if (poll(wanted.data(), wanted.size(), timeout_ms) <= 0) return false;
    std::uint64_t times = 0;
    if ((wanted[0].revents & POLLIN) != 0 && read(wake_.get(), &times, sizeof times) < 0) return false;
    if (!drain()) return false;
  }
  for (int i = 0; i < kQuietTries; ++i) {
    wanted[1].revents = 0;
    if (poll(&wanted[1], 1, kQuietMs) <= 0) break;
    drain();
  }
  follow();  // before the caller reads the file, so that later changes are seen
  return true;
}

void FileWatch::wake() const {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t put = write(wake_.get(), &one, sizeof one);
}

}  // namespace weir::control
