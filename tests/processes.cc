// See processes.h. A child never returns from here.

#include "processes.h"

#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <stdexcept>
#include <thread>

#include "table/arena.h"
#include "table/slot.h"

namespace weir::test {

void Gate::pass(int count) {
  ++there_;
  while (there_.load() < count) std::this_thread::yield();
}

// Process -------------------------------------------------------------------------------------------------------------

Process::Process(const std::function<bool()>& work) {
  std::fflush(nullptr);
  pid_ = ::fork();
  if (pid_ < 0) throw std::runtime_error("no more processes");
  if (pid_ > 0) return;
  bool well = false;
  try {
    well = work();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "a child has thrown: %s\n", error.what());
  }
  std::fflush(nullptr);
  ::_exit(well ? 0 : 1);
}

Process::~Process() {
  if (pid_ == 0) return;
  kill();
  join();
}

void Process::note(int status) {
  stopped_ = WIFSTOPPED(status);
  if (stopped_) return;
  pid_ = 0;
  // A killed child has not failed. Another signal is its own failure.
  failed_ = WIFEXITED(status) ? WEXITSTATUS(status) != 0 : WTERMSIG(status) != SIGKILL;
}

void Process::kill() {
  if (pid_ > 0) ::kill(pid_, SIGKILL);
}

bool Process::stop() {
  if (pid_ <= 0) return false;
  ::kill(pid_, SIGSTOP);
  int status = 0;
  if (::waitpid(pid_, &status, WUNTRACED) == pid_) note(status);
  return pid_ > 0;
}

void Process::go_on() {
  stopped_ = false;
  if (pid_ > 0) ::kill(pid_, SIGCONT);
}

Process::State Process::look() {
  int status = 0;
  if (pid_ > 0 && ::waitpid(pid_, &status, WNOHANG | WUNTRACED) == pid_) note(status);
  if (pid_ == 0) return State::ended;
  return stopped_ ? State::stopped : State::running;
}

bool Process::join() {
  int status = 0;
  while (pid_ > 0 && ::waitpid(pid_, &status, 0) == pid_) note(status);
  return !failed_;
}

bool wait_until(const std::function<bool()>& is_so) {
  for (int naps = 0; naps < 60'000; ++naps) {
    if (is_so()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
  }
  return is_so();
}

// Faults --------------------------------------------------------------------------------------------------------------

namespace {

using table::Block;
using table::Unit;
using table::Word;

class Inspection {
 public:
  explicit Inspection(const table::Region& region)
      : region_(region), registry_(region, {}), actor_(region, 0), reader_(actor_, registry_) {}

  std::string run(Rest rest) {
    for (std::uint64_t i = 0; i < region_.pages(); ++i) look_at(region_.page(i), i);
    for (std::uint64_t who = 0; who < table::kParticipants; ++who) {
      table::Participant& participant = region_.participant(who);
      expect_plain(participant.tally, "a tally");
      for (Unit& unit : participant.pending) look_at_pending(unit, who, rest);
    }
    for (unsigned block_class = 0; block_class < table::kClasses; ++block_class) look_at_map(block_class);
    if (!faults_.empty()) return faults_;
    std::uint64_t owned = 0;
    for (std::uint64_t line = 0; line < region_.arena_lines();) {
      const auto block = blocks_.find(line);
      if (block == blocks_.end()) return "line " + std::to_string(line) + " of the arena belongs to nobody";
      line += block->second.lines;
      ++owned;
      if (const auto next = blocks_.upper_bound(block->first); next != blocks_.end() && next->first < line) {
        return block->second.owner + " and " + next->second.owner + " share line " + std::to_string(next->first);
      }
    }
    return owned == blocks_.size() ? "" : "a block lies beyond the arena";
  }

 private:
  struct Owned {
    std::uint64_t lines;
    std::string owner;
  };

  void fault(const std::string& what) {
    if (faults_.size() < 2'000) faults_ += what + "\n";
  }

  void expect_plain(const Unit& unit, const std::string& what) {
    const Word word = table::load(unit);
    if (table::mark_of(word) == table::kPlain) return;
    fault(what + " is marked: participant " + std::to_string(table::who_of(word.state)));
  }

  void own(const Block& block, const std::string& owner) {
    const auto [place, added] = blocks_.insert({block.line, {std::uint64_t{1} << block.block_class, owner}});
    if (!added) fault(owner + " and " + place->second.owner + " have block " + std::to_string(block.line));
  }

  void look_at(table::Page& page, std::uint64_t number) {
    const std::string name = "page " + std::to_string(number);
    expect_plain(page.version, "the version of " + name);
    for (Unit& unit : page.floors) expect_plain(unit, "a floor of " + name);
    std::map<std::uint64_t, int> names;
    const std::uint64_t passed = table::load(page.version).state;
    for (std::uint32_t line = 0; line < table::kLines; ++line) {
      for (Unit& unit : page.slots[line]) {
        expect_plain(unit, "a slot of " + name);
        const Word word = table::load(unit);
        if (word.tag == 0 || table::mark_of(word) != table::kPlain) continue;
        const table::Known* const known = reader_.known(table::limit_of(word.tag));
        const bool is_floor = known != nullptr && table::is_floor(word, *known);  // a family has one for each number
        if (++names[is_floor ? word.tag : table::name_of(word.tag)] == 2) fault("a key stands twice in " + name);
        const bool is_told = (table::load(page.version).tag & table::kFloorInSlot) != 0;
        if (is_floor && !is_told) fault("a floor cannot be found in " + name);
        const std::uint64_t between = table::lines_between(table::home_line(table::name_of(word.tag)), line);
        if ((between & ~passed) != 0) fault("a key cannot be found in " + name);
        if (const auto block = reader_.block_of(word)) own(*block, "a slot of " + name);
        if (!table::is_ticket(table::limit_of(word.tag)) && !reader_.read(word)) fault("an unreadable slot of " + name);
      }
    }
  }

  void look_at_pending(Unit& unit, std::uint64_t who, Rest rest) {
    const std::string owner = "participant " + std::to_string(who);
    expect_plain(unit, "a pending unit of " + owner);
    const Word word = table::load(unit);
    if (word.state == 0) return;
    if (rest == Rest::all_recovered) fault(owner + " still has a block");
    own({word.state - 1, static_cast<unsigned>((word.tag >> 2) - 1)}, owner);
  }

  void look_at_map(unsigned block_class) {
    const std::string owner = "map " + std::to_string(block_class);
    const Unit& count = region_.header().free_counts[block_class];
    expect_plain(count, "the count of " + owner);
    std::uint64_t free = 0;
    for (std::uint64_t i = 0; i < region_.free_map_units(block_class); ++i) {
      expect_plain(region_.free_map(block_class, i), owner);
      for (std::uint64_t k = 0; k < table::kBlocksInUnit; ++k) {
        if ((table::load(region_.free_map(block_class, i)).state >> k & 1) == 0) continue;
        own({(i * table::kBlocksInUnit + k) << block_class, block_class}, owner);
        ++free;
      }
    }
    if (table::load(count).state != free) fault(owner + " is counted wrongly");
  }

  const table::Region& region_;
  table::Registry registry_;
  table::Actor actor_;
  table::SlotReader reader_;
  std::map<std::uint64_t, Owned> blocks_;
  std::string faults_;
};

}  // namespace

std::string faults_of(const table::Region& region, Rest rest) { return Inspection(region).run(rest); }

}  // namespace weir::test
