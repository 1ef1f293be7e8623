// The system calls for a state file. Each failure is reported with what to do about it. See file.h.

#include "table/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <optional>
#include <thread>

#include "base/descriptor.h"
#include "base/file.h"

namespace weir::table {
namespace {

constexpr std::uint64_t kHugePagesFrom = std::uint64_t{8} << 20;
constexpr int kTriesMax = 10;
// Within this time, a file of some gigabytes is copied and on disk.
constexpr std::chrono::milliseconds kTakeOverNap{10};
constexpr int kTakeOverNaps = 12'000;
constexpr const char* kIsDirectory = "is a directory; name a file in it";

auto refuse(const std::string& path, const std::string& why) { return fail(ErrorCode::unavailable, path + ": " + why); }

std::string reason(int error) { return std::strerror(error); }

std::string mebibytes(std::uint64_t bytes) { return std::to_string((bytes + (1 << 20) - 1) >> 20) + " MiB"; }

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == path.npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

std::optional<std::uint64_t> random_number() {
  std::uint64_t number = 0;
  if (getrandom(&number, sizeof(number), 0) != sizeof(number)) return {};
  return number;
}

Result<Mapping> map(const std::string& path, base::Descriptor fd, const Geometry& geometry, int flags = MAP_SHARED) {
  const std::uint64_t bytes = layout_of(geometry.pages, geometry.arena_lines).bytes;
  void* base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, fd.get(), 0);
  if (base == MAP_FAILED) return refuse(path, "cannot be mapped (" + mebibytes(bytes) + "): " + reason(errno));
  return Mapping(base, geometry, fd.release());
}

// Creation ------------------------------------------------------------------------------------------------------------

// Writing beyond the process's file size limit would raise a signal, so check the limit first.
int allocate(int fd, std::uint64_t bytes) {
  rlimit limit{};
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < bytes) return EFBIG;
  int error = EINTR;
  while (error == EINTR) error = posix_fallocate(fd, 0, static_cast<off_t>(bytes));
  return error;
}

auto refuse_size(const std::string& path, std::uint64_t bytes, int error) {
  const std::string size = mebibytes(bytes);
  if (error == ENOSPC || error == EDQUOT) {
    return refuse(path, "the disk is full: " + size + " are needed; free some space, or use fewer keys");
  }
  if (error == EFBIG) {
    return refuse(path, "a file of " + size + " exceeds the file size limit; raise `ulimit -f`, or use fewer keys");
  }
  return refuse(path, "cannot allocate " + size + ": " + reason(error));
}

auto refuse_creation(const std::string& path, int error) {
  const std::string folder = folder_of(path);
  if (error == ENOENT) return refuse(path, "the folder " + folder + " does not exist; create it first");
  if (error == EACCES || error == EPERM || error == EROFS) {
    return refuse(path, "cannot be created: " + reason(error) + "; allow this user to write to " + folder);
  }
  return refuse(path, "cannot be created: " + reason(error));
}

// Creates the file. Returns false if another process creates it meanwhile.
Result<bool> make_file(const FileOptions& options, const ClockReading& reading) {
  const auto geometry = geometry_for(options.keys, options.arena_bytes);
  if (!geometry) return fail(geometry.error());
  const auto identity = new_identity(reading);
  if (!identity) return fail(identity.error());
  auto draft = Draft::make(options.path, *geometry, *identity, reading);
  if (!draft) return fail(draft.error());
  return draft->publish();
}

// Opening -------------------------------------------------------------------------------------------------------------

auto refuse_opening(const std::string& path, int error) {
  if (error == EISDIR) return refuse(path, kIsDirectory);
  if (error == ENXIO || error == ENODEV) return refuse(path, "is not a regular file; name another file");
  if (error != EACCES && error != EPERM && error != EROFS) return refuse(path, "cannot be opened: " + reason(error));
  const bool readable = base::Descriptor(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)).get() >= 0;
  if (readable)
    return refuse(path, "is read-only (" + reason(error) + "); allow this user to write it, or name another file");
  return refuse(path,
                "cannot be read (" + reason(error) + "); allow this user to read and write it, or name another file");
}

// Whether the header could be read. Bytes missing at the end of the file are 0.
bool read_header(int fd, Header& header) {
  std::size_t got = 0;
  while (got < sizeof(header)) {
    const ssize_t n = pread(fd, reinterpret_cast<char*>(&header) + got, sizeof(header) - got, static_cast<off_t>(got));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    if (n == 0) break;
    got += static_cast<std::size_t>(n);
  }
  return true;
}

Result<Geometry> read_geometry(const std::string& path, int fd, std::uint32_t oldest = kVersion) {
  struct stat info {};
  if (fstat(fd, &info) != 0) return refuse(path, "cannot be read: " + reason(errno));
  if (S_ISDIR(info.st_mode)) return refuse(path, kIsDirectory);
  if (!S_ISREG(info.st_mode)) return refuse(path, "is not a regular file; name another file");
  Header header{};
  if (!read_header(fd, header)) return refuse(path, "cannot be read: " + reason(errno));
  auto geometry = check_header(header, static_cast<std::uint64_t>(info.st_size), oldest);
  if (!geometry) return refuse(path, geometry.error().message);
  return geometry;
}

Result<void> check_wish(const FileOptions& options, const Geometry& found) {
  const auto wished = geometry_for(options.keys, options.arena_bytes);
  if (!wished) return fail(wished.error());
  const std::string resize = "leave the number out, or run `weir state resize " + options.path;
  if (options.keys != 0 && wished->pages != found.pages) {
    return refuse(options.path, "has capacity for " + std::to_string(keys_of(found.pages)) + " keys, not " +
                                    std::to_string(options.keys) + ": " + resize + " --keys " +
                                    std::to_string(options.keys) + "`");
  }
  if (options.arena_bytes != 0 && wished->arena_lines != found.arena_lines) {
    return refuse(options.path, "has " + std::to_string(found.arena_lines * sizeof(Line)) + " bytes for logs, not " +
                                    std::to_string(options.arena_bytes) + ": " + resize + " --memory " +
                                    std::to_string(layout_of(found.pages, wished->arena_lines).bytes) + "`");
  }
  return {};
}

// Whether the name still refers to the opened file: it may have been resized while we waited for its lock.
bool still_named(const std::string& path, int fd) {
  struct stat named {
  }, opened{};
  return stat(path.c_str(), &named) == 0 && fstat(fd, &opened) == 0 && named.st_dev == opened.st_dev &&
         named.st_ino == opened.st_ino;
}

bool has_older_layout(int fd) {
  Header header{};
  if (!read_header(fd, header)) return false;
  return header.magic == kMagic && header.version >= kVersionOldest && header.version < kVersion;
}

// Returns sole, or why not: shared if another process uses the file, none if another one has had it exclusively for
// too long.
Use lock_alone(const std::string& path, int fd) {
  int shared = 0;
  for (int naps = 0; naps < kTakeOverNaps && still_named(path, fd); ++naps) {
    if (try_sole_users(fd)) return Use::sole;
    shared = has_sole_user(fd) ? 0 : shared + 1;
    if (shared > 2) return Use::shared;  // and not just between two exclusive users
    std::this_thread::sleep_for(kTakeOverNap);
  }
  return Use::none;
}

}  // namespace

std::string time_text(std::int64_t us) {
  const std::time_t seconds = std::clamp<std::int64_t>(us, 0, kTimeEnd - 1) / 1'000'000;
  std::tm parts{};
  char text[64];
  if (gmtime_r(&seconds, &parts) == nullptr) return std::to_string(us) + " us";
  return {text, std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S UTC", &parts)};
}

// Mapping -------------------------------------------------------------------------------------------------------------

void Mapping::swap(Mapping& other) noexcept {
  std::swap(region_, other.region_);
  std::swap(fd_, other.fd_);
  std::swap(is_new_, other.is_new_);
  std::swap(is_torn_, other.is_torn_);
  std::swap(was_clean_, other.was_clean_);
  std::swap(is_sole_, other.is_sole_);
}

Mapping::~Mapping() {
  if (region_.base() != nullptr) munmap(region_.base(), region_.bytes());
  if (fd_ >= 0) close(fd_);
}

void Mapping::share() {
  if (fd_ < 0 || !is_sole_) return;
  store(region_.header().clean, kInUse);  // any torn page has been repaired
  share_users(fd_);
  is_sole_ = false;
}

bool Mapping::try_alone() {
  is_sole_ = fd_ >= 0 && (is_sole_ || try_sole_users(fd_));
  return is_sole_;
}

void Mapping::mark_clean() {
  if (!is_sole_) return;
  exchange(region_.header().clean, kInUse, kClean);
  share_users(fd_);  // a child that inherited this descriptor may still open the table, and would lock itself out
  is_sole_ = false;
}

Result<void> Mapping::reopen_after_fork() {
  if (fd_ < 0) return {};
  const auto again = reopen(fd_);
  if (!again) return fail(again.error());
  base::Descriptor fresh(*again);
  // Before the old one is closed: the parent may be dead, and another process may wait to repair.
  const auto use = lock_users(fresh.get());
  if (!use) return fail(use.error());
  if (*use == Use::none)
    return fail(ErrorCode::unavailable, "another process has exclusive access to the state file; try again");
  if (*use == Use::sole) share_users(fresh.get());
  close(std::exchange(fd_, fresh.release()));
  is_sole_ = false;
  exchange(region_.header().clean, kClean, kInUse);  // the parent may have closed it cleanly
  return {};
}

// The first of several users sets the clock. The others must use the same clock.
Result<void> Mapping::enter(Use use, const ClockReading& reading) {
  Header& header = region_.header();
  is_sole_ = use == Use::sole;
  if (!is_sole_) {
    was_clean_ = is_new_ = is_torn_ = false;
    if (keeps_time(header, reading) || reading.boot_id == decltype(reading.boot_id){}) return {};
    return fail(ErrorCode::unavailable,
                "is in use under another clock: the latest time in it is " + time_text(header.latest_us) +
                    ", but by the boot clock of this process it is " +
                    time_text(header.clock_offset_us + reading.boot_us) +
                    "; another machine uses it, or this container has its own boot clock; use a separate file "
                    "for each");
  }
  const bool is_new_boot = !keeps_time(header, reading);
  is_torn_ = is_new_boot || load(header.clean) == kTorn;
  was_clean_ = load(header.clean) == kClean && !is_torn_;
  store(header.clean, is_torn_ ? kTorn : kInUse);  // before the boot is recorded: the repairing process may be killed
  if (is_new_boot) set_clock(header, reading);
  return {};
}

Result<Mapping> map_memory(std::uint64_t keys, std::uint64_t arena_bytes, const ClockReading& reading) {
  const auto geometry = geometry_for(keys, arena_bytes);
  if (!geometry) return fail(geometry.error());
  const auto identity = new_identity(reading);
  if (!identity) return fail(identity.error());
  const Layout at = layout_of(geometry->pages, geometry->arena_lines);
  void* base = mmap(nullptr, at.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) {
    return fail(ErrorCode::exhausted,
                "cannot allocate a table of " + mebibytes(at.bytes) + ": " + reason(errno) + "; use fewer keys");
  }
  if (at.arena - at.pages >= kHugePagesFrom) {
    madvise(static_cast<char*>(base) + at.pages, at.arena - at.pages, MADV_HUGEPAGE);
  }
  Mapping mapping(base, *geometry, -1);
  format(mapping.region(), *geometry, *identity, reading);
  return mapping;
}

Result<Mapping> open_file(const FileOptions& options, const ClockReading& reading) {
  const std::string& path = options.path;
  bool is_new = false;
  for (int tries = 0; tries < kTriesMax; ++tries) {
    base::Descriptor fd(open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
    if (fd.get() < 0) {
      if (errno != ENOENT) return refuse_opening(path, errno);
      const auto made = make_file(options, reading);
      if (!made) return fail(made.error());
      is_new = *made;
      continue;
    }
    const auto geometry = read_geometry(path, fd.get());
    if (!geometry) return fail(geometry.error());
    if (auto fits = check_wish(options, *geometry); !fits) return fail(fits.error());
    const auto use = lock_users(fd.get());
    if (!use) return refuse(path, use.error().message);
    if (*use == Use::none) return refuse(path, "is being repaired or resized by another process; try again later");
    if (!still_named(path, fd.get())) continue;
    auto mapping = map(path, std::move(fd), *geometry);
    if (!mapping) return mapping;
    mapping->is_new_ = is_new;
    if (auto entered = mapping->enter(*use, reading); !entered) return refuse(path, entered.error().message);
    return mapping;
  }
  return refuse(path, "keeps being created and removed, or is a dangling link; name another file");
}

bool is_of_older_layout(const std::string& path) {
  const base::Descriptor fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  return fd.get() >= 0 && has_older_layout(fd.get());
}

Result<Mapping> open_copy(const std::string& path, CopyTo purpose) {
  const int access = purpose == CopyTo::look ? O_RDONLY : O_RDWR;
  for (int tries = 0; tries < kTriesMax; ++tries) {
    base::Descriptor fd(open(path.c_str(), access | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
    if (fd.get() < 0 && errno == ENOENT) return fail(ErrorCode::not_found, path + ": no such state file");
    if (fd.get() < 0) return refuse_opening(path, errno);
    const auto geometry = read_geometry(path, fd.get(), kVersionOldest);
    if (!geometry) return fail(geometry.error());
    if (purpose == CopyTo::replace && !(try_sole_users(fd.get()) && still_named(path, fd.get()))) {
      return refuse(path, "is in use; stop the processes that use it first");
    }
    // If another process was first, the file at this path is a new one, and other processes may use it.
    if (purpose == CopyTo::take_over && has_older_layout(fd.get())) {
      const Use use = lock_alone(path, fd.get());
      if (!still_named(path, fd.get())) continue;
      if (use == Use::none) return refuse(path, "is being converted by another process; try again later");
      if (use == Use::shared) {
        return refuse(path,
                      "is in use by an older Weir, which cannot share it with this version; stop the older one first");
      }
    }
    return map(path, std::move(fd), *geometry, MAP_PRIVATE | MAP_NORESERVE);
  }
  return refuse(path, "keeps being created and removed; name another file");
}

// Draft ---------------------------------------------------------------------------------------------------------------

Result<Draft> Draft::make(const std::string& path, const Geometry& geometry, const Identity& identity,
                          const ClockReading& reading) {
  const auto number = random_number();
  if (!number) return refuse(path, "cannot get random numbers from the system: " + reason(errno));
  char ending[32];
  std::snprintf(ending, sizeof(ending), ".%016" PRIx64 ".new", *number);
  const std::string name = path + ending;
  base::Descriptor fd(open(name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (fd.get() < 0) return refuse_creation(path, errno);
  Draft draft(path, name);
  const std::uint64_t bytes = layout_of(geometry.pages, geometry.arena_lines).bytes;
  if (const int error = allocate(fd.get(), bytes); error != 0) return refuse_size(path, bytes, error);
  auto mapping = map(path, std::move(fd), geometry);
  if (!mapping) return fail(mapping.error());
  draft.mapping_ = std::move(*mapping);
  format(draft.region(), geometry, identity, reading);
  return draft;
}

Draft::~Draft() {
  if (!name_.empty()) unlink(name_.c_str());
}

Result<void> Draft::sync() {
  if (fsync(mapping_.fd()) == 0) return {};
  return refuse(path_, "cannot be written: " + reason(errno));
}

Result<bool> Draft::publish() {
  if (auto synced = sync(); !synced) return fail(synced.error());
  const bool linked = link(name_.c_str(), path_.c_str()) == 0;
  if (!linked && errno != EEXIST) return refuse_creation(path_, errno);
  unlink(name_.c_str());
  name_.clear();
  base::sync_folder_of(path_);
  return linked;
}

Result<void> Draft::replace() {
  struct stat info {};
  if (stat(path_.c_str(), &info) == 0 &&
      (fchown(mapping_.fd(), info.st_uid, info.st_gid) != 0 || fchmod(mapping_.fd(), info.st_mode & 07777) != 0)) {
    return refuse(path_, "belongs to another user, who could not open the new file; run this as that user, or as root");
  }
  if (auto synced = sync(); !synced) return fail(synced.error());
  if (rename(name_.c_str(), path_.c_str()) != 0) return refuse_creation(path_, errno);
  name_.clear();
  base::sync_folder_of(path_);
  return {};
}

Result<Identity> new_identity(const ClockReading& reading) {
  const auto first = random_number(), second = random_number();
  if (!first || !second) {
    return fail(ErrorCode::unavailable, "cannot get random numbers from the system: " + reason(errno));
  }
  return Identity{{*first, *second}, reading.wall_us};
}

}  // namespace weir::table
