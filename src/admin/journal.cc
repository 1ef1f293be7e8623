// Appending, reading and shortening the journal. See journal.h.
#include "admin/journal.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <utility>

#include "admin/overlay.h"

namespace weir {
namespace {

tl::unexpected<Error> cannot(const std::string& path, const std::string& what) {
  return fail(ErrorCode::unavailable, path + ": " + what + ": " + std::strerror(errno));
}

bool write_all(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t put = write(file, text.data(), text.size());
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(put));
  }
  return true;
}

// So that a rename or a new file lasts.
void sync_folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  const std::string folder = slash == path.npos ? "." : path.substr(0, slash + 1);
  const int handle = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (handle < 0) return;
  fsync(handle);
  close(handle);
}

}  // namespace

class Journal::Lock {
 public:
  explicit Lock(int file) : file_(file) {
    while (file_ >= 0 && flock(file_, LOCK_EX) != 0 && errno == EINTR) {
    }
  }
  ~Lock() {
    if (file_ >= 0) flock(file_, LOCK_UN);
  }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  const int file_;
};

Journal::~Journal() {
  if (file_ >= 0) close(file_);
}

Result<void> Journal::open(std::string path) {
  path_ = std::move(path);
  if (path_.empty()) return {};
  if (auto opened = reopen(); !opened) return opened;
  const Lock lock(file_);
  return read_all();
}

Result<void> Journal::reopen() {
  const int file = ::open(path_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0600);
  if (file < 0) return cannot(path_, "cannot be opened to keep changes in");
  struct stat about {};
  if (fstat(file, &about) != 0 || !S_ISREG(about.st_mode)) {
    close(file);
    return fail(ErrorCode::unavailable, path_ + ": is no plain file; name another by --changes");
  }
  if (file_ >= 0) close(file_);
  file_ = file;
  size_ = -1;
  return {};
}

// With the lock. What stands behind the last newline is half a line; nobody writes it any more.
Result<void> Journal::read_all() {
  struct stat about {};
  if (fstat(file_, &about) != 0) return cannot(path_, "cannot be looked at");
  if (static_cast<std::size_t>(about.st_size) > kFileMax) {
    return fail(ErrorCode::out_of_range, path_ + ": is longer than 128 MiB, so it is no file of changes; name another");
  }
  std::string text(static_cast<std::size_t>(about.st_size), '\0');
  for (std::size_t at = 0; at < text.size();) {
    const ssize_t got = pread(file_, text.data() + at, text.size() - at, static_cast<off_t>(at));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return cannot(path_, "cannot be read");
    at += static_cast<std::size_t>(got);
  }
  return take_lines(text);
}

Result<void> Journal::take_lines(const std::string& text) {
  std::vector<Change> changes;
  std::size_t begin = 0, number = 0;
  for (std::size_t end = 0; (end = text.find('\n', begin)) != text.npos; begin = end + 1) {
    ++number;
    auto change = parse_line(std::string_view(text).substr(begin, end - begin));
    const bool rises = change && (changes.empty() || change->id > changes.back().id);
    if (rises) {
      changes.push_back(*std::move(change));
      continue;
    }
    if (end + 1 == text.size()) break;  // the last one: as good as half written
    return fail(ErrorCode::invalid_argument,
                path_ + ':' + std::to_string(number) +
                    ": the line is damaged: " + (change ? "its id does not rise" : change.error().message) +
                    "; remove the line, and the change is undone, or the file, and all changes are");
  }
  if (begin < text.size()) {
    if (ftruncate(file_, static_cast<off_t>(begin)) != 0) return cannot(path_, "half a line cannot be dropped");
    dropped_ = path_ + ':' + std::to_string(std::max<std::size_t>(number, 1)) +
               ": the last line is damaged or half written, and was dropped";
  }
  size_ = static_cast<off_t>(begin);
  changes_ = std::move(changes);
  return {};
}

Journal::Name Journal::name_is() const {
  struct stat mine {
  }, named{};
  if (stat(path_.c_str(), &named) != 0) return Name::gone;
  const bool is_ours = fstat(file_, &mine) == 0 && mine.st_ino == named.st_ino && mine.st_dev == named.st_dev;
  return is_ours ? Name::ours : Name::another;
}

bool Journal::has_grown() const {
  struct stat about {};
  return fstat(file_, &about) != 0 || about.st_size != size_;
}

// The file under our name is the one that we have open: another process may have shortened it, somebody removed it.
Result<void> Journal::put_right() {
  switch (name_is()) {
    case Name::ours:
      return {};
    case Name::another:
      return reopen();
    case Name::gone:
      break;
  }
  Kept all{.changes = changes_};
  for (const Change& change : changes_) all.text += to_line(change);
  return replace(std::move(all));
}

Result<bool> Journal::catch_up() {
  if (file_ < 0) return false;
  if (auto right = put_right(); !right) return fail(std::move(right.error()));
  if (!has_grown()) return false;
  const Lock lock(file_);
  if (auto read = read_all(); !read) return fail(std::move(read.error()));
  return true;
}

// All of it and on the disk, or none.
Result<void> Journal::write_line(const std::string& line) {
  if (file_ < 0) return {};
  if (!write_all(file_, line) || fdatasync(file_) != 0) {
    const auto error = cannot(path_, "the change cannot be kept, so it is not made");
    if (ftruncate(file_, size_) != 0) size_ = -1;  // read anew, and drop the half line, before the next one
    return error;
  }
  size_ += static_cast<off_t>(line.size());
  return {};
}

Result<void> Journal::append(Change change) {
  const Micros now = change.at;
  for (bool is_done = false; !is_done;) {
    if (file_ >= 0) {
      if (auto right = put_right(); !right) return right;
    }
    const Lock lock(file_);
    if (file_ >= 0 && name_is() != Name::ours) continue;
    if (file_ >= 0 && has_grown()) {
      if (auto read = read_all(); !read) return read;
    }
    change.id = next_id();
    if (auto written = write_line(to_line(change)); !written) return written;
    changes_.push_back(change);
    is_done = true;
  }
  if (changes_.size() > kLinesMax || size_ > static_cast<off_t>(kBytesMax)) {
    (void)replace(worth_keeping(now));  // it can be done at the next change as well
  }
  return {};
}

Journal::Kept Journal::worth_keeping(Micros now) const {
  const Overlay overlay = overlay_of(changes_, now);
  const auto rules = [&](const Change& change) {
    const auto mode = overlay.modes.find(change.rule);
    return &change == overlay.policy || &change == overlay.kill_switch || &change == overlay.log_level ||
           (mode != overlay.modes.end() && mode->second == &change) ||
           std::ranges::find(overlay.bans, &change) != overlay.bans.end();
  };
  std::size_t first = changes_.size(), bytes = 0;
  while (first > 0 && changes_.size() - first < kLinesKept) {
    bytes += to_line(changes_[first - 1]).size();
    if (bytes > kBytesKept && first < changes_.size()) break;
    --first;
  }
  Kept kept;
  for (std::size_t i = 0; i < changes_.size(); ++i) {
    if (i < first && !rules(changes_[i])) continue;
    kept.changes.push_back(changes_[i]);
    kept.text += to_line(changes_[i]);
  }
  return kept;
}

// A whole new file, then its name: at any moment there is one or the other.
Result<void> Journal::replace(Kept kept) {
  if (file_ < 0) {
    changes_ = std::move(kept.changes);
    return {};
  }
  const std::string beside = path_ + ".new";
  const int file = ::open(beside.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);
  if (file < 0) return cannot(beside, "cannot be made");
  {
    const Lock lock(file_);
    if (has_grown()) {  // by another process, just now: another time
      close(file);
      return fail(ErrorCode::unavailable, path_ + ": is being written to");
    }
    if (!write_all(file, kept.text) || fsync(file) != 0 || std::rename(beside.c_str(), path_.c_str()) != 0) {
      const auto error = cannot(beside, "cannot be written");
      close(file);
      unlink(beside.c_str());
      return error;
    }
  }
  sync_folder_of(path_);
  close(std::exchange(file_, file));
  size_ = static_cast<off_t>(kept.text.size());
  changes_ = std::move(kept.changes);
  return {};
}

}  // namespace weir
