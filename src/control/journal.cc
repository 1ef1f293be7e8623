// Appends to, reads and shortens the journal. See journal.h.
#include "control/journal.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <string_view>
#include <thread>

#include "base/file.h"
#include "control/overlay.h"

namespace weir::control {
namespace {

constexpr std::chrono::milliseconds kLockNap{10};
constexpr int kLockTries = 200;  // two seconds
constexpr int kNameTries = 10;   // other processes do not replace the file this often in a row
// Extra bytes of a line in the fleet's list, where it gets a link and perhaps a longer id.
constexpr std::size_t kLinkBytes = 128;

tl::unexpected<Error> failed(const std::string& path, const std::string& what) {
  return fail(ErrorCode::unavailable, path + ": " + what + ": " + std::strerror(errno));
}

// Changes to one thing form layers, visited from the newest. A change that a newer one covers for its whole duration
// takes effect again only through an undo.
class Layers {
 public:
  bool is_worth_keeping(const Change& change) {
    if (change.kind == ChangeKind::undo || change.kind == ChangeKind::reset) return false;
    if (change.kind == ChangeKind::ban) return true;
    Thing& thing = things_[{change.kind, change.kind == ChangeKind::mode ? change.rule : std::string()}];
    const Micros until = change.until.value_or(Micros::max());
    if (until <= thing.covered_until) return ++thing.covered <= Journal::kLayersKept;
    thing.covered_until = until;
    return true;
  }

 private:
  struct Thing {
    Micros covered_until{0};
    std::size_t covered = 0;
  };
  std::map<std::pair<ChangeKind, std::string>, Thing> things_;
};

}  // namespace

Journal::Lock::~Lock() {
  if (file_ >= 0) flock(file_, LOCK_UN);
}

// The wait is bounded: otherwise a stopped process that has the lock would stop all others.
Result<Journal::Lock> Journal::Lock::take(int file, const std::string& path) {
  for (int tries = 0; flock(file, LOCK_EX | LOCK_NB) != 0; ++tries) {
    if (errno != EWOULDBLOCK && errno != EINTR) return failed(path, "cannot be locked");
    if (tries >= kLockTries) {
      return fail(ErrorCode::unavailable, path + ": has been locked by another process for 2 s; " +
                                              "find the process with fuser, then try again");
    }
    std::this_thread::sleep_for(kLockNap);
  }
  return Lock(file);
}

Result<void> Journal::open(std::string path, SharedChanges* shared) {
  path_ = std::move(path);
  shared_ = shared;
  if (!path_.empty()) {
    if (auto opened = reopen(); !opened) return opened;
  }
  auto locked = lock();
  if (!locked) return fail(std::move(locked.error()));
  return {};
}

// A symbolic link is refused, not followed: a user who may write to the folder could redirect it to any of our files.
Result<void> Journal::reopen() {
  constexpr int kFlags = O_RDWR | O_APPEND | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW;
  base::Descriptor file(::open(path_.c_str(), kFlags));
  if (!file && errno == ENOENT) {
    file = base::Descriptor(::open(path_.c_str(), kFlags | O_CREAT, 0600));
    if (file) base::sync_folder_of(path_);
  }
  if (!file && errno == ELOOP) {
    return fail(ErrorCode::unavailable, path_ + ": is a symbolic link; give --changes the path of the file itself");
  }
  if (!file) return failed(path_, "cannot be opened for reading and writing");
  struct stat about {};
  if (fstat(file.get(), &about) != 0 || !S_ISREG(about.st_mode)) {
    return fail(ErrorCode::unavailable, path_ + ": is not a regular file; give --changes another path");
  }
  file_ = std::move(file);
  size_ = -1;
  return {};
}

// Call it with the lock. Text after the last newline is a half-written line of a process that has ended.
Result<void> Journal::read_all() {
  struct stat about {};
  if (fstat(file_.get(), &about) != 0) return failed(path_, "cannot be read");
  if (static_cast<std::size_t>(about.st_size) > kFileMax) {
    return fail(ErrorCode::out_of_range,
                path_ + ": is longer than 128 MiB, so it is not a changes file; give --changes another path");
  }
  std::string text(static_cast<std::size_t>(about.st_size), '\0');
  for (std::size_t at = 0; at < text.size();) {
    const ssize_t got = pread(file_.get(), text.data() + at, text.size() - at, static_cast<off_t>(at));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return failed(path_, "cannot be read");
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
    if (end + 1 == text.size()) break;  // the last line counts as half-written, if the file is ours
    return fail(ErrorCode::invalid_argument,
                path_ + ':' + std::to_string(number) + ": the line is damaged: " +
                    (change ? "its id is not above the previous one" : change.error().message) +
                    "; remove the line to undo this change, or the file to undo all changes");
  }
  if (begin < text.size()) {
    if (changes.empty() && !may_begin_line(std::string_view(text).substr(begin))) {
      return fail(ErrorCode::invalid_argument,
                  path_ + ": is not a changes file, so it is left unchanged; give --changes a new file");
    }
    if (ftruncate(file_.get(), static_cast<off_t>(begin)) != 0)
      return failed(path_, "its half-written last line cannot be dropped");
    dropped_ = path_ + ':' + std::to_string(std::max<std::size_t>(number, 1)) +
               ": the last line is damaged or half-written, and was dropped";
  }
  size_ = static_cast<off_t>(begin);
  changes_ = std::move(changes);
  ++readings_;
  return {};
}

Journal::Name Journal::name_is() const {
  struct stat mine {
  }, named{};
  if (lstat(path_.c_str(), &named) != 0) return Name::gone;
  const bool is_ours = fstat(file_.get(), &mine) == 0 && mine.st_ino == named.st_ino && mine.st_dev == named.st_dev;
  return is_ours ? Name::ours : Name::another;
}

bool Journal::has_grown() const {
  struct stat about {};
  return fstat(file_.get(), &about) != 0 || about.st_size != size_;
}

// Ensures that the open file is the one under our name: another process may have shortened it, or a user removed it.
Result<void> Journal::open_current() {
  const Name name = name_is();
  if (name == Name::another) return reopen();
  return name == Name::gone ? recreate() : Result<void>{};
}

// Of all processes that have the file open, only one recreates it; the others find it.
Result<void> Journal::recreate() {
  auto locked = Lock::take(file_.get(), path_);
  if (!locked) return fail(std::move(locked.error()));
  if (name_is() != Name::gone) return {};
  if (has_grown()) {
    if (auto read = read_all(); !read) return read;
  }
  return replace(*locked, whole(changes_));
}

Result<Journal::Lock> Journal::lock() {
  auto locked = lock_file();
  if (locked && shared_ != nullptr) (void)sync_with_list(*locked);  // if it is unavailable, catch_up() reports it
  return locked;
}

Result<Journal::Lock> Journal::lock_file() {
  if (!file_) return Lock();
  for (int tries = 0; tries < kNameTries; ++tries) {
    if (auto right = open_current(); !right) return fail(std::move(right.error()));
    auto locked = Lock::take(file_.get(), path_);
    if (!locked) return locked;
    if (name_is() != Name::ours) continue;
    if (has_grown()) {
      if (auto read = read_all(); !read) return fail(std::move(read.error()));
    }
    return locked;
  }
  return fail(ErrorCode::unavailable, path_ + ": other processes keep replacing the file; try again");
}

Result<bool> Journal::catch_up() {
  return catch_up(shared_ == nullptr ? Result<SharedChanges::Lines>() : shared_->since(agreed()));
}

Result<bool> Journal::catch_up(const Result<SharedChanges::Lines>& seen) {
  const bool has_shared_news = shared_ != nullptr && seen && has_news(*seen);
  const bool has_file_news = file_ && (name_is() != Name::ours || has_grown());
  if (!has_file_news && !has_shared_news) return seen ? Result<bool>(false) : fail(seen.error());
  const std::uint64_t before = readings_;
  auto locked = lock_file();
  if (!locked) return fail(std::move(locked.error()));
  if (has_shared_news) {
    if (auto synced = sync_with_list(*locked); !synced) return fail(std::move(synced.error()));
  }
  return readings_ != before;
}

// Writes all of it to disk, or nothing.
Result<void> Journal::write_line(const std::string& line) {
  const bool is_written = !file_ || (base::write_all(file_.get(), line) && fdatasync(file_.get()) == 0);
  if (!is_written) {
    const auto error = failed(path_, "the change cannot be stored, so it is not made");
    if (ftruncate(file_.get(), size_) != 0) size_ = -1;  // re-read and drop the half line before the next one
    return error;
  }
  size_ += static_cast<off_t>(line.size());
  return {};
}

Result<std::uint64_t> Journal::append(Change change) {
  auto locked = lock();
  if (!locked) return fail(std::move(locked.error()));
  return append(*std::move(locked), std::move(change));
}

Result<std::uint64_t> Journal::append(Lock lock, Change change) {
  followed_ = change.id = next_id();
  const std::string line = to_line(change);
  if (line.size() + kLinkBytes > SharedChanges::kLineMax) {
    return fail(ErrorCode::out_of_range,
                "the change is too long to be stored, so it is not made: its line would have " +
                    std::to_string(line.size()) + " bytes; at most " +
                    std::to_string(SharedChanges::kLineMax - kLinkBytes) + " are allowed");
  }
  if (auto written = write_line(line); !written) return fail(std::move(written.error()));
  changes_.push_back(std::move(change));
  if (shared_ != nullptr && is_reached_) (void)sync_with_list(lock);  // if it is unavailable, the list gets it later
  shorten(lock);
  return followed_;
}

// As of the newest change's time, so that servers with the same changes keep the same lines.
void Journal::shorten(Lock& lock) {
  if (changes_.size() <= kLinesMax && size_ <= static_cast<off_t>(kBytesMax)) return;
  Kept kept = worth_keeping(changes_.back().at);
  if (shared_ != nullptr && is_reached_) drop_shared(kept);
  (void)replace(lock, std::move(kept));  // if it fails, the next change retries it
}

Journal::Kept Journal::whole(std::vector<Change> changes) {
  Kept all{.changes = std::move(changes)};
  for (const Change& change : all.changes) all.text += to_line(change);
  return all;
}

// The last changes; those in effect, even if others cover them; and those that a kept undo would restore.
Journal::Kept Journal::worth_keeping(Micros now) const {
  std::size_t first = changes_.size(), bytes = 0;
  while (first > 0 && changes_.size() - first < kLinesKept) {
    bytes += to_line(changes_[first - 1]).size();
    if (bytes > kBytesKept && first < changes_.size()) break;
    --first;
  }
  const auto standing = standings(changes_, now);
  std::vector<bool> is_kept(changes_.size());
  Layers layers;
  for (std::size_t i = changes_.size(); i-- > 0;) {
    const Change& change = changes_[i];
    const bool holds = standing[i].active && layers.is_worth_keeping(change);
    is_kept[i] = is_kept[i] || holds || i >= first;
    if (!is_kept[i] || change.kind != ChangeKind::undo) continue;
    const auto target = std::ranges::lower_bound(changes_, change.undoes, {}, &Change::id);
    if (target != changes_.end() && target->id == change.undoes) {
      is_kept[static_cast<std::size_t>(target - changes_.begin())] = true;
    }
  }
  std::vector<Change> kept;
  for (std::size_t i = 0; i < changes_.size(); ++i) {
    if (is_kept[i]) kept.push_back(changes_[i]);
  }
  return whole(std::move(kept));
}

// The lock reserves `.new`.
Result<void> Journal::replace(Lock& lock, Kept kept) {
  if (!file_) {
    changes_ = std::move(kept.changes);
    size_ = static_cast<off_t>(kept.text.size());
    return {};
  }
  auto file = base::replace_file(path_, kept.text, ".new", base::FileLock::exclusive);
  if (!file) return fail(std::move(file.error()));
  lock = Lock(file->get());  // releases the old lock before its file is closed
  file_ = *std::move(file);
  size_ = static_cast<off_t>(kept.text.size());
  changes_ = std::move(kept.changes);
  return {};
}

}  // namespace weir::control
