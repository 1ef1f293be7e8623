// The file of runtime changes: one appended line each, flushed to disk before the change takes effect.
//
// A process that is killed while it writes leaves half a line, which the next open() drops. Any other damage is an
// error with its place, because otherwise a change could vanish silently. Several processes may have the file open,
// as during an upgrade. A writer holds a lock from reading the others' lines until it has written. A process waits
// for that lock about two seconds at most. Without a path, everything is in memory.
//
// The servers of a fleet share one list, and the file is a server's copy of it. Changes made while the list was
// unavailable, or lost there, are added later, under new ids if theirs are taken (journal_shared.cc). A change waits
// for an unresponsive list once, about half a second, and keeps the lock meanwhile. One thread at a time. Tested by
// journal_test.cc and journal_shared_test.cc.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/descriptor.h"
#include "control/change.h"
#include "control/shared_changes.h"
#include "weir/result.h"

namespace weir::control {

class Journal {
 public:
  static constexpr std::size_t kLinesMax = 10'000;  // at this size it is rewritten without obsolete changes
  static constexpr std::size_t kLinesKept = 1'000;  // of the obsolete ones
  static constexpr std::size_t kBytesMax = std::size_t{32} << 20;
  static constexpr std::size_t kBytesKept = std::size_t{8} << 20;
  static constexpr std::size_t kFileMax = std::size_t{128} << 20;  // a larger file is not a journal
  static constexpr std::size_t kLayersKept = 16;  // of one thing, below the one in effect: as many undos work

  // Exclusive access to the file, until its end.
  class Lock;

  // Creates the file if it does not exist. Empty: in memory. `shared` is the fleet's list and must outlive this; an
  // unavailable list is not an error.
  Result<void> open(std::string path, SharedChanges* shared = nullptr);

  // Reads what others have appended; true if there was anything. `seen` is the list's answer to since(agreed()): the
  // caller can fetch it without a lock, so that no other thread waits for it. It may be out of date.
  Result<bool> catch_up();
  Result<bool> catch_up(const Result<SharedChanges::Lines>& seen);
  std::uint64_t agreed() const { return agreed_.value_or(0); }

  // lock()
  //
  // Keeps other processes from appending, and reads what they have appended. changes() and next_id() then stay valid
  // until append() takes the lock back, or the lock is destroyed.
  Result<Lock> lock();

  // append()
  //
  // Gives the change its id, and stores it. On an error nothing has changed. If readings() has grown meanwhile,
  // others have made changes, too.
  Result<std::uint64_t> append(Lock lock, Change change);
  Result<std::uint64_t> append(Change change);

  // While it exists, changes() has one more change. Do not call anything else on the journal meanwhile.
  class Proposal {
   public:
    Proposal(Journal& journal, Change change) : changes_(journal.changes_) { changes_.push_back(std::move(change)); }
    ~Proposal() { changes_.pop_back(); }
    Proposal(const Proposal&) = delete;
    Proposal& operator=(const Proposal&) = delete;

   private:
    std::vector<Change>& changes_;
  };

  // Ids increase.
  const std::vector<Change>& changes() const { return changes_; }
  std::uint64_t next_id() const { return changes_.empty() ? 1 : changes_.back().id + 1; }
  // Number of times the file's changes were read or merged, by any caller: if it has grown, changes() may differ.
  std::uint64_t readings() const { return readings_; }
  const std::string& path() const { return path_; }
  const std::string& dropped() const { return dropped_; }  // the message about a dropped half line; empty: none
  // What happened to changes of this server in the fleet's list, as text; each note is returned once.
  std::vector<std::string> take_notes() { return std::exchange(notes_, {}); }

 private:
  struct Kept {
    std::vector<Change> changes{};
    std::string text{};
  };

  // Both lists merged, and the effect on our changes: old id to new id, and those that the fleet has dropped.
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
  Result<void> open_current();
  Result<void> recreate();
  static Kept whole(std::vector<Change> changes);
  Kept worth_keeping(Micros now) const;
  void shorten(Lock& lock);
  Result<void> replace(Lock& lock, Kept kept);
  Result<Lock> lock_file();
  // Merges our changes with the fleet's list, and makes the file a copy of the result.
  Result<void> sync_with_list(Lock& lock);
  Result<void> try_to_sync(Lock& lock);
  bool agrees_with(const SharedChanges::Lines& found) const;
  bool has_news(const SharedChanges::Lines& found) const;
  Result<Merged> merge(const SharedChanges::Lines& found, std::uint64_t from) const;
  Result<void> take_over(Lock& lock, Merged merged);
  std::vector<std::string> notes_on(const Merged& merged) const;
  Result<bool> append_own(Lock& lock);
  void drop_shared(const Kept& kept);

  std::string path_;
  base::Descriptor file_;
  off_t size_ = 0;  // bytes of the file that were read; in memory, bytes of its lines
  std::vector<Change> changes_;
  std::uint64_t readings_ = 0;
  std::string dropped_;
  std::vector<std::string> notes_;
  SharedChanges* shared_ = nullptr;
  std::optional<std::uint64_t> agreed_;  // the lists are equal up to this id; nothing: not compared yet
  bool is_reached_ = false;              // at the last attempt to merge
  std::uint64_t followed_ = 0;           // the id of the change in progress, which may get another id
};

class Journal::Lock {
 public:
  Lock() = default;  // of no file, as in memory
  ~Lock();
  Lock(Lock&& other) noexcept : file_(std::exchange(other.file_, -1)) {}
  Lock& operator=(Lock&& other) noexcept {
    std::swap(file_, other.file_);
    return *this;
  }

  // An error if another process keeps it locked.
  static Result<Lock> take(int file, const std::string& path);

 private:
  friend class Journal;
  explicit Lock(int file) : file_(file) {}
  int file_ = -1;
};

}  // namespace weir::control
