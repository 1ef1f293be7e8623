// The file that changes are kept in: a line each, appended, on the disk before the change is in force.
//
// A process that is killed while it writes leaves half a line, which is dropped when the file is opened again; any
// other damage is refused, with its place, because a change that somebody relies on would be gone in silence. Several
// processes may have the file open, as while one takes over from another: who appends holds a lock from the reading of
// what others have written on. Nobody waits for that lock for longer than two seconds or so. Without a path all is kept
// in memory. Servers of a fleet have one list, and the file is a server's copy of it: what was made while the list was
// out of reach, or was lost there, is added to it later, under new ids if theirs are taken (journal_shared.cc). A
// change waits for a list that does not answer once, about half a second, and has the lock so long. One thread at a
// time. Tested by journal_test.cc and journal_shared_test.cc.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "admin/change.h"
#include "admin/shared_changes.h"
#include "weir/result.h"

namespace weir {

class Journal {
 public:
  static constexpr std::size_t kLinesMax = 10'000;  // then it is written anew, without what is long over
  static constexpr std::size_t kLinesKept = 1'000;  // of those that are over
  static constexpr std::size_t kBytesMax = std::size_t{32} << 20;
  static constexpr std::size_t kBytesKept = std::size_t{8} << 20;
  static constexpr std::size_t kFileMax = std::size_t{128} << 20;  // more is no file of ours
  static constexpr std::size_t kLayersKept = 16;  // of one thing, below what rules it: as many can be brought back

  // The file, for this process alone, until its end.
  class Lock;

  Journal() = default;
  ~Journal();
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  // Makes the file if it is not there. Empty: in memory. `shared` is the list of a fleet, which outlives this; that it
  // cannot be reached is no error.
  Result<void> open(std::string path, SharedChanges* shared = nullptr);

  // Reads what others have appended. True if there was anything. `seen`: what the list has told, when asked for what is
  // behind agreed(), so that nobody else has to wait for it; it need not be of now.
  Result<bool> catch_up();
  Result<bool> catch_up(const Result<SharedChanges::Lines>& seen);
  std::uint64_t agreed() const { return agreed_.value_or(0); }

  // lock()
  //
  // Keeps other processes from appending, and reads what they have appended: what changes() and next_id() tell then
  // stays true until append() takes the lock back, or it ends.
  Result<Lock> lock();

  // append()
  //
  // Gives the change its id, and keeps it. After an error nothing has changed. If readings() has risen meanwhile,
  // others have made changes, too.
  Result<std::uint64_t> append(Lock lock, Change change);
  Result<std::uint64_t> append(Change change);

  // What changes() would be with one more: so they are until its end. Nothing else is asked of the journal meanwhile.
  class Proposal {
   public:
    Proposal(Journal& journal, Change change) : changes_(journal.changes_) { changes_.push_back(std::move(change)); }
    ~Proposal() { changes_.pop_back(); }
    Proposal(const Proposal&) = delete;
    Proposal& operator=(const Proposal&) = delete;

   private:
    std::vector<Change>& changes_;
  };

  // Ids rise.
  const std::vector<Change>& changes() const { return changes_; }
  std::uint64_t next_id() const { return changes_.empty() ? 1 : changes_.back().id + 1; }
  // Of the file, whoever asked for them: if it has risen, changes() may be others.
  std::uint64_t readings() const { return readings_; }
  const std::string& path() const { return path_; }
  const std::string& dropped() const { return dropped_; }  // what was said about half a line; empty: there was none
  // What has become of changes of this server in the fleet's list, for people; each is told once.
  std::vector<std::string> take_notes() { return std::exchange(notes_, {}); }

 private:
  struct Kept {
    std::vector<Change> changes{};
    std::string text{};
  };

  // Both lists in one, and what that does to ours: new ids by the old ones, and what the fleet has done away with.
  struct Merged {
    std::vector<Change> changes{};
    std::map<std::uint64_t, std::uint64_t> renumbered{};
    std::vector<Change> gone{};
  };

  enum class Name : std::uint8_t { ours, another, gone };

  Result<void> reopen();
  Result<void> read_all();
  Result<void> take_lines(const std::string& text);
  Result<void> write_line(const std::string& line);
  Name name_is() const;
  bool has_grown() const;
  Result<void> put_right();
  Result<void> make_anew();
  static Kept whole(std::vector<Change> changes);
  Kept worth_keeping(Micros now) const;
  void shorten(Lock& lock);
  Result<void> replace(Lock& lock, Kept kept);
  Result<Lock> lock_file();
  // Both lists become one, and the file its copy. The lock is given back where nothing has to be done under it.
  Result<void> meet(Lock& lock);
  Result<void> try_to_meet(Lock& lock);
  bool is_one_with(const SharedChanges::Lines& found) const;
  bool has_news(const SharedChanges::Lines& found) const;
  Result<Merged> merge(const SharedChanges::Lines& found, std::uint64_t from) const;
  Result<void> take_over(Lock& lock, Merged merged);
  std::vector<std::string> notes_on(const Merged& merged) const;
  Result<bool> hand_on(Lock& lock);
  void drop_shared(const Kept& kept);

  std::string path_;
  int file_ = -1;
  off_t size_ = 0;  // of the file, as far as it was read; in memory, of the lines that it would have
  std::vector<Change> changes_;
  std::uint64_t readings_ = 0;
  std::string dropped_;
  std::vector<std::string> notes_;
  SharedChanges* shared_ = nullptr;
  std::optional<std::uint64_t> agreed_;  // up to here the lists are one; nothing: they never met
  bool is_reached_ = false;              // when they were last to be made one
  std::uint64_t followed_ = 0;           // the id of the change that is being made, which may be taken by others
};

class Journal::Lock {
 public:
  Lock() = default;  // of nothing, as in memory
  ~Lock();
  Lock(Lock&& other) noexcept : file_(std::exchange(other.file_, -1)) {}
  Lock& operator=(Lock&& other) noexcept {
    std::swap(file_, other.file_);
    return *this;
  }

  // An error if another process does not let go of it.
  static Result<Lock> take(int file, const std::string& path);

 private:
  friend class Journal;
  explicit Lock(int file) : file_(file) {}
  int file_ = -1;
};

}  // namespace weir
