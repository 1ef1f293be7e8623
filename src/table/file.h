// Where a table lies: in memory of this process, or in a state file that several processes map.
//
// A file appears under its name complete or not at all, with all its space allocated: a full disk is an error here, and
// never a signal later. What is not a sound state file of this layout is refused with a message that says what to do,
// and no byte of it is changed. Opening, share() and mark_clean() are for one thread, the rest for any. Tested by
// file_test.cc, tests/server/state.sh and fuzz/state_open.cc.
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
  std::uint64_t keys = 0;         // 0: what the file holds; a million for a new one
  std::uint64_t arena_bytes = 0;  // 0: what the file holds; 32 for each key for a new one
};

class Mapping {
 public:
  Mapping() = default;
  // Takes over what was mapped, and the descriptor; -1 is memory.
  Mapping(void* base, const Geometry& geometry, int fd)
      : region_(base, geometry.pages, geometry.base_pages, geometry.arena_lines), fd_(fd) {}
  Mapping(Mapping&& other) noexcept { swap(other); }
  Mapping& operator=(Mapping&& other) noexcept;
  ~Mapping();

  const Region& region() const { return region_; }
  int fd() const { return fd_; }

  bool is_new() const { return is_new_; }        // made just now
  bool is_torn() const { return is_torn_; }      // the machine was started since it was used last, or repaired it last
  bool was_clean() const { return was_clean_; }  // the last user closed it, in this boot: nothing to repair

  // is_sole(), share()
  //
  // While a table is sole, nobody else can open it: time to repair. Always, in memory.
  bool is_sole() const { return is_sole_; }
  void share();

  // try_alone(), mark_clean()
  //
  // Whether nobody else is there, and nobody else comes until mark_clean() has noted that the table was left in good
  // order. The last thing before the end.
  bool try_alone();
  void mark_clean();

  // note_damage()
  //
  // The next who has the table alone shall repair it, whoever closes it until then.
  void note_damage() { exchange(region_.header().clean, kInUse, kDamaged); }

  // reopen_after_fork()
  //
  // In a child: lets go of what it shares with its parent and becomes a user of its own. Other locks must be taken
  // anew, on the new fd().
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
// A fresh table that ends with this process. Memory is taken as it is used.
Result<Mapping> map_memory(std::uint64_t keys, std::uint64_t arena_bytes, const ClockReading& reading = read_clocks());

// open_file()
//
// Opens a state file, or makes one. Whoever is first finds it sole.
Result<Mapping> open_file(const FileOptions& options, const ClockReading& reading = read_clocks());

// open_copy()
//
// The file as it is, to be looked at: what is changed in the mapping never reaches it. To replace it, one must be its
// only user, and stays that while the mapping lives.
// A copy may be of an older layout. Who takes it over waits for another process that is doing the same; the copy is
// then of the new layout.
enum class CopyTo : std::uint8_t { look, replace, take_over };
Result<Mapping> open_copy(const std::string& path, CopyTo purpose);

// Whether a state file of an older layout, from kVersionOldest on, lies at this path.
bool is_of_older_layout(const std::string& path);

// A fresh state file, complete, that has not got its name yet. Unless it gets it, it is removed.
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
  // The first gives it a name that nobody has: false if somebody was first. The second takes the name, the owner and
  // the mode of the file that has the name now.
  Result<bool> publish();
  Result<void> replace();

 private:
  Draft(std::string path, std::string name) : path_(std::move(path)), name_(std::move(name)) {}
  Result<void> sync();

  std::string path_, name_;  // what it shall be called, and what it is called now
  Mapping mapping_;
};

// A secret that no two tables share.
Result<Identity> new_identity(const ClockReading& reading);

}  // namespace weir::table
