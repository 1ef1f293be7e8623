// See seats.h. A thread remembers where it sat last: most of the time that place is free.

#include "table/seats.h"

#include <sys/mman.h>
#include <unistd.h>

#include <new>

#include "table/arena.h"

namespace weir::table {
namespace {

thread_local std::uint64_t last_seat = 0;

}  // namespace

Seats::Seats(Mapping& mapping, Registry& registry) : mapping_(mapping), registry_(registry), process_(::getpid()) {
  void* page = ::mmap(nullptr, sizeof(Flags), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) throw std::bad_alloc();
  is_wiped_on_fork_ = ::madvise(page, sizeof(Flags), MADV_WIPEONFORK) == 0;
  flags_ = static_cast<Flags*>(page);
  flags_->life.store(kAlive);
}

Seats::~Seats() {
  for (std::uint64_t who = 0; who < kParticipants && is_own(); ++who) {
    if (flags_->state[who].load() != kForeign) unlock_participant(mapping_.fd(), who);
  }
  ::munmap(flags_, sizeof(Flags));
}

// Where the system does not do it. If several threads of the child come at once, one does it.
void Seats::wipe_after_fork() {
  const pid_t wiping = -::getpid();
  for (pid_t seen = process_.load(); seen != ::getpid(); seen = process_.load()) {
    if (seen == wiping || !process_.compare_exchange_strong(seen, wiping)) continue;
    for (auto& state : flags_->state) state.store(kForeign);
    flags_->life.store(kUnborn);
    process_.store(::getpid());
  }
}

bool Seats::is_own() const { return is_wiped_on_fork_ || process_.load() == ::getpid(); }

// In a child of the process that made this table: it becomes a user of its own. A table in memory is its own copy then,
// with operations in it that nobody will go on with. If several threads of the child come at once, one does it.
Result<void> Seats::be_born() {
  for (;;) {
    std::uint32_t life = kUnborn;
    if (flags_->life.compare_exchange_strong(life, kBeingBorn)) break;
    if (life == kAlive) return {};
    flags_->life.wait(kBeingBorn);
  }
  auto reopened = mapping_.reopen_after_fork();
  flags_->life.store(reopened ? kAlive : kUnborn);
  flags_->life.notify_all();
  return reopened;
}

bool Seats::claim(std::uint64_t who, bool has_writers) {
  if (!try_lock_participant(mapping_.fd(), who)) return false;
  Actor actor(mapping_.region(), who);
  actor.recover();
  give_all_blocks(actor);
  if (actor.has_met_damage()) mapping_.note_damage();
  if (has_writers) registry_.recover(who);
  return true;
}

Result<Seats::Seat> Seats::sit_down() {
  if (!is_wiped_on_fork_) wipe_after_fork();
  if (flags_->life.load(std::memory_order_acquire) != kAlive) {
    if (auto born = be_born(); !born) return fail(born.error());
  }
  const std::uint64_t first = last_seat % kParticipants;
  for (const std::uint8_t wanted : {kIdle, kForeign}) {
    for (std::uint64_t i = 0; i < kParticipants; ++i) {
      const std::uint64_t who = (first + i) % kParticipants;
      std::uint8_t state = wanted;
      if (!flags_->state[who].compare_exchange_strong(state, kTaken, std::memory_order_acquire)) continue;
      if (wanted == kForeign && !claim(who, true)) {
        flags_->state[who].store(kForeign, std::memory_order_release);
        continue;
      }
      last_seat = who;
      return Seat(*this, who);
    }
  }
  return fail(ErrorCode::exhausted, "more than " + std::to_string(kParticipants) +
                                        " threads are changing this table at once: use fewer threads or processes");
}

void Seats::recover_dead() {
  const bool has_writers = registry_.has_writers();
  for (std::uint64_t who = 0; who < kParticipants; ++who) {
    std::uint8_t state = kForeign;
    if (!flags_->state[who].compare_exchange_strong(state, kTaken, std::memory_order_acquire)) continue;
    const bool claimed = claim(who, has_writers);
    if (claimed) unlock_participant(mapping_.fd(), who);
    flags_->state[who].store(kForeign, std::memory_order_release);
  }
}

}  // namespace weir::table
