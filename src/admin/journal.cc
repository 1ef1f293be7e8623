// Appending, reading and shortening the journal. See journal.h.
#include "admin/journal.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <map>
#include <string_view>
#include <thread>
#include <utility>

#include "admin/overlay.h"
#include "fresh_file.h"

namespace weir {
namespace {

constexpr std::chrono::milliseconds kLockNap{10};
constexpr int kLockTries = 200;  // two seconds
constexpr int kNameTries = 10;   // so often in a row nobody shortens it
// More that a line may have in the fleet's list, where it gets a link and perhaps a longer id.
constexpr std::size_t kLinkRoom = 128;

tl::unexpected<Error> failed(const std::string& path, const std::string& what) {
  return fail(ErrorCode::unavailable, path + ": " + what + ": " + std::strerror(errno));
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

// The changes to one thing lie over each other, and are asked for from the top. Those that another covers for as long
// as they last come back only by undoing.
class Layers {
 public:
  bool is_worth_keeping(const Change& change) {
    switch (change.kind) {
      case ChangeKind::undo:
      case ChangeKind::reset:
        return false;
      case ChangeKind::ban:
        return true;
      default:
        break;
    }
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

// The wait has an end: a process that was stopped with the lock in its hands would stop all others.
Result<Journal::Lock> Journal::Lock::take(int file, const std::string& path) {
  for (int tries = 0; flock(file, LOCK_EX | LOCK_NB) != 0; ++tries) {
    if (errno != EWOULDBLOCK && errno != EINTR) return failed(path, "cannot be locked");
    if (tries >= kLockTries) {
      return fail(ErrorCode::unavailable, path + ": another process has it locked and does not let go of it; " +
                                              "find it with fuser, and try again");
    }
    std::this_thread::sleep_for(kLockNap);
  }
  return Lock(file);
}

Journal::~Journal() {
  if (file_ >= 0) close(file_);
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

// A link is refused and not followed: a user who may write the folder could lead us to any file of ours.
Result<void> Journal::reopen() {
  constexpr int kFlags = O_RDWR | O_APPEND | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW;
  int file = ::open(path_.c_str(), kFlags);
  if (file < 0 && errno == ENOENT) {
    file = ::open(path_.c_str(), kFlags | O_CREAT, 0600);
    if (file >= 0) sync_folder_of(path_);
  }
  if (file < 0 && errno == ELOOP) {
    return fail(ErrorCode::unavailable, path_ + ": is a symbolic link; name the file itself by --changes");
  }
  if (file < 0) return failed(path_, "cannot be opened to keep changes in");
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
  if (fstat(file_, &about) != 0) return failed(path_, "cannot be looked at");
  if (static_cast<std::size_t>(about.st_size) > kFileMax) {
    return fail(ErrorCode::out_of_range, path_ + ": is longer than 128 MiB, so it is no file of changes; name another");
  }
  std::string text(static_cast<std::size_t>(about.st_size), '\0');
  for (std::size_t at = 0; at < text.size();) {
    const ssize_t got = pread(file_, text.data() + at, text.size() - at, static_cast<off_t>(at));
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
    if (end + 1 == text.size()) break;  // the last one: as good as half written, if it is ours
    return fail(ErrorCode::invalid_argument,
                path_ + ':' + std::to_string(number) +
                    ": the line is damaged: " + (change ? "its id does not rise" : change.error().message) +
                    "; remove the line, and the change is undone, or the file, and all changes are");
  }
  if (begin < text.size()) {
    if (changes.empty() && !may_begin_line(std::string_view(text).substr(begin))) {
      return fail(ErrorCode::invalid_argument,
                  path_ + ": is not a file of changes, and stays as it is; name a new file by --changes");
    }
    if (ftruncate(file_, static_cast<off_t>(begin)) != 0) return failed(path_, "half a line cannot be dropped");
    dropped_ = path_ + ':' + std::to_string(std::max<std::size_t>(number, 1)) +
               ": the last line is damaged or half written, and was dropped";
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
      return make_anew();
  }
  return {};
}

// Of those that have the file open only one makes it anew; the others find it.
Result<void> Journal::make_anew() {
  auto locked = Lock::take(file_, path_);
  if (!locked) return fail(std::move(locked.error()));
  if (name_is() != Name::gone) return {};
  if (has_grown()) {
    if (auto read = read_all(); !read) return read;
  }
  return replace(*locked, whole(changes_));
}

Result<Journal::Lock> Journal::lock() {
  auto locked = lock_file();
  if (locked && shared_ != nullptr) (void)meet(*locked);  // if it is out of reach, catch_up() says so
  return locked;
}

Result<Journal::Lock> Journal::lock_file() {
  if (file_ < 0) return Lock();
  for (int tries = 0; tries < kNameTries; ++tries) {
    if (auto right = put_right(); !right) return fail(std::move(right.error()));
    auto locked = Lock::take(file_, path_);
    if (!locked) return locked;
    if (name_is() != Name::ours) continue;
    if (has_grown()) {
      if (auto read = read_all(); !read) return fail(std::move(read.error()));
    }
    return locked;
  }
  return fail(ErrorCode::unavailable, path_ + ": is replaced again and again; try again");
}

Result<bool> Journal::catch_up() {
  return catch_up(shared_ == nullptr ? Result<SharedChanges::Lines>() : shared_->since(agreed()));
}

Result<bool> Journal::catch_up(const Result<SharedChanges::Lines>& seen) {
  const bool has_shared_news = shared_ != nullptr && seen && has_news(*seen);
  const bool has_file_news = file_ >= 0 && (name_is() != Name::ours || has_grown());
  if (!has_file_news && !has_shared_news) return seen ? Result<bool>(false) : fail(seen.error());
  const std::uint64_t before = readings_;
  auto locked = lock_file();
  if (!locked) return fail(std::move(locked.error()));
  if (has_shared_news) {
    if (auto met = meet(*locked); !met) return fail(std::move(met.error()));
  }
  return readings_ != before;
}

// All of it and on the disk, or none.
Result<void> Journal::write_line(const std::string& line) {
  const bool is_written = file_ < 0 || (write_all(file_, line) && fdatasync(file_) == 0);
  if (!is_written) {
    const auto error = failed(path_, "the change cannot be kept, so it is not made");
    if (ftruncate(file_, size_) != 0) size_ = -1;  // read anew, and drop the half line, before the next one
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
  if (line.size() + kLinkRoom > SharedChanges::kLineMax) {
    return fail(ErrorCode::out_of_range, "the change is too long to be kept, so it is not made: its line would have " +
                                             std::to_string(line.size()) + " bytes, and may have " +
                                             std::to_string(SharedChanges::kLineMax - kLinkRoom) + "; make it shorter");
  }
  if (auto written = write_line(line); !written) return fail(std::move(written.error()));
  changes_.push_back(std::move(change));
  if (shared_ != nullptr && is_reached_) (void)meet(lock);  // out of reach, it is told later
  shorten(lock);
  return followed_;
}

// As of the newest change, so that servers with the same changes keep the same.
void Journal::shorten(Lock& lock) {
  if (changes_.size() <= kLinesMax && size_ <= static_cast<off_t>(kBytesMax)) return;
  Kept kept = worth_keeping(changes_.back().at);
  if (shared_ != nullptr && is_reached_) drop_shared(kept);
  (void)replace(lock, std::move(kept));  // it can be done at the next change as well
}

Journal::Kept Journal::whole(std::vector<Change> changes) {
  Kept all{.changes = std::move(changes)};
  for (const Change& change : all.changes) all.text += to_line(change);
  return all;
}

// The last ones; what holds, whatever lies over it now; and what an undoing that is kept would bring back.
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
  Kept kept;
  for (std::size_t i = 0; i < changes_.size(); ++i) {
    if (!is_kept[i]) continue;
    kept.changes.push_back(changes_[i]);
    kept.text += to_line(changes_[i]);
  }
  return kept;
}

// A whole new file, then its name: at any moment there is one or the other. The lock keeps `.new` for us alone.
Result<void> Journal::replace(Lock& lock, Kept kept) {
  if (file_ < 0) {
    changes_ = std::move(kept.changes);
    size_ = static_cast<off_t>(kept.text.size());
    return {};
  }
  const std::string beside = path_ + ".new";
  const int file = open_fresh_file(beside);
  if (file < 0) return failed(beside, "cannot be made");
  const bool is_written = write_all(file, kept.text) && fsync(file) == 0 && flock(file, LOCK_EX | LOCK_NB) == 0;
  if (!is_written || std::rename(beside.c_str(), path_.c_str()) != 0) {
    const auto error = failed(beside, "cannot be written");
    close(file);
    unlink(beside.c_str());
    return error;
  }
  sync_folder_of(path_);
  lock = Lock(file);  // the old one ends before its file is closed
  close(std::exchange(file_, file));
  size_ = static_cast<off_t>(kept.text.size());
  changes_ = std::move(kept.changes);
  return {};
}

}  // namespace weir
