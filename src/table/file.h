// The memory of a table: private memory of this process, or a state file that several processes map.
//
// A file appears under its name either complete or not at all, with all its space allocated. So a full disk is an
// error here, and never a signal later. A file that is not a sound state file of this layout is refused, and none of
// its bytes is changed. The message says what to do. Opening, share() and mark_clean() are for one thread, the rest
// for any. Tested by file_test.cc, tests/server/state.sh and fuzz/state_open.cc.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "table/format.h"
#include "table/layout.h"
#include "table/locks.h"
#include "weir/clock.h"
#include "weir/result.h"

namespace weir::table {

struct FileOptions {
  std::string path;
  std::uint64_t keys = 0;         // 0: what the file has; a million for a new one
  std::uint64_t arena_bytes = 0;  // 0: what the file has; 32 for each key for a new one
};

class Mapping {
 public:
  Mapping() = default;
  // Takes over a mapping and its descriptor; -1 is memory.
  Mapping(void* base, const Geometry& geometry, int fd)
      : region_(base, geometry.pages, geometry.base_pages, geometry.arena_lines), fd_(fd) {}
  Mapping(Mapping&& other) noexcept { swap(other); }
  Mapping& operator=(Mapping other) noexcept {
    swap(other);
    return *this;
  }
  ~Mapping();

  const Region& region() const { return region_; }
  int fd() const { return fd_; }

  bool is_new() const { return is_new_; }        // created by this call
  bool is_torn() const { return is_torn_; }      // the machine was restarted since it was last used, or repaired
  bool was_clean() const { return was_clean_; }  // the last user closed it, in this boot: nothing to repair

  // is_sole(), share()
  //
  // While a table is sole, no other process can open it: this is the time to repair. A table in memory is always
  // sole.
  bool is_sole() const { return is_sole_; }
  void share();

  // try_alone(), mark_clean()
  //
  // try_alone() returns whether there is no other user, and keeps new ones out until mark_clean(). mark_clean()
  // records that the table was closed cleanly. Call them last, before the end.
  bool try_alone();
  void mark_clean();

  // note_damage()
  //
  // Makes the next user that has the table exclusively repair it, no matter who closes it before that.
  void note_damage() { exchange(region_.header().clean, kInUse, kDamaged); }

  // reopen_after_fork()
  //
  // In a child: drops what it shares with its parent, and becomes a user of its own. Other locks must be taken again,
  // on the new fd().
  Result<void> reopen_after_fork();

 private:
  friend Result<Mapping> open_file(const FileOptions&, const ClockReading&);
  void swap(Mapping& other) noexcept;
  Result<void> enter(Use use, const ClockReading& reading);

  Region region_;
  int fd_ = -1;
  bool is_new_ = true, is_torn_ = false, was_clean_ = true, is_sole_ = true;
};

// map_memory()
//
// A fresh table that ends with this process. It takes memory as it is used.
Result<Mapping> map_memory(std::uint64_t keys, std::uint64_t arena_bytes, const ClockReading& reading = read_clocks());

// open_file()
//
// Opens a state file, or creates it. If no other process uses the file, the mapping is sole: see is_sole().
Result<Mapping> open_file(const FileOptions& options, const ClockReading& reading = read_clocks());

// open_copy()
//
// The file as it is, for reading: changes in the mapping never reach the file. To replace it, the caller must be its
// only user, and stays that while the mapping lives. A copy may have an older layout. take_over waits for another
// process that is taking the file over. The copy then has the new layout.
enum class CopyTo : std::uint8_t { look, replace, take_over };
Result<Mapping> open_copy(const std::string& path, CopyTo purpose);

// Whether there is a state file of an older layout, from kVersionOldest on, at this path.
bool is_of_older_layout(const std::string& path);

// A fresh, complete state file without its final name. It is removed unless it gets that name.
class Draft {
 public:
  static Result<Draft> make(const std::string& path, const Geometry& geometry, const Identity& identity,
                            const ClockReading& reading);
  Draft(Draft&& other) noexcept
      : path_(std::move(other.path_)), name_(std::exchange(other.name_, {})), mapping_(std::move(other.mapping_)) {}
  Draft& operator=(Draft&&) = delete;
  ~Draft();

  const Region& region() const { return mapping_.region(); }

  // publish(), replace()
  //
  // publish() gives it the name if no file has it; false if another process was first. replace() takes the name, the
  // owner and the mode of the file that has the name now.
  Result<bool> publish();
  Result<void> replace();

 private:
  Draft(std::string path, std::string name) : path_(std::move(path)), name_(std::move(name)) {}
  Result<void> sync();

  std::string path_, name_;  // its final name, and its current name
  Mapping mapping_;
};

// A time for people, in UTC. A damaged file may contain any number.
std::string time_text(std::int64_t us);

// A new secret, different in every table.
Result<Identity> new_identity(const ClockReading& reading);

}  // namespace weir::table
