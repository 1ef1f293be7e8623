// See seats.h. A thread remembers its last seat, which is free most of the time.

#include "table/seats.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
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
    if (flags_->claims[who].load() != kForeign) unlock_participant(mapping_.fd(), who);
  }
  ::munmap(flags_, sizeof(Flags));
}

// Wipes the flags after fork(), where the system cannot (MADV_WIPEONFORK). If several threads of the child call this at
// once, one of them does it.
void Seats::wipe_after_fork() {
  const pid_t wiping = -::getpid();
  for (pid_t seen = process_.load(); seen != ::getpid(); seen = process_.load()) {
    if (seen == wiping || !process_.compare_exchange_strong(seen, wiping)) continue;
    for (auto& claim : flags_->claims) claim.store(kForeign);
    flags_->sweeping.store(0);
    flags_->life.store(kUnborn);
    process_.store(::getpid());
  }
}

bool Seats::is_own() const { return is_wiped_on_fork_ || process_.load() == ::getpid(); }

// After fork(): makes the child a user of the table, beside its parent. If the table is in memory, the child has a copy
// of it. Operations that threads of the parent had begun there are completed as those of dead threads are. If several
// threads of the child call this at once, one of them does it.
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

// The caller has the record's lock.
void Seats::recover(std::uint64_t who) {
  Actor actor(mapping_.region(), who);
  actor.recover();
  give_all_blocks(actor);
  if (actor.has_met_damage()) mapping_.note_damage();
  registry_.recover(who);
}

// Marks the record as being claimed, and gets its lock. False if another thread or process has it.
bool Seats::try_claim(std::uint64_t who) {
  std::uint32_t claim = kForeign;
  if (!flags_->claims[who].compare_exchange_strong(claim, kBeingClaimed, std::memory_order_acquire)) return false;
  if (try_lock_participant(mapping_.fd(), who)) return true;
  flags_->claims[who].store(kForeign, std::memory_order_release);
  return false;
}

// A thread gets a record by exchanging the record's word. A late thread, with a claim that its process has released,
// fails there.
Result<Seats::Seat> Seats::sit_down() {
  if (!is_wiped_on_fork_) wipe_after_fork();
  if (flags_->life.load(std::memory_order_acquire) != kAlive) {
    if (auto born = be_born(); !born) return fail(born.error());
  }
  const Region& region = mapping_.region();
  const std::uint64_t first = last_seat % kParticipants;
  for (const bool is_foreign : {false, true}) {
    for (std::uint64_t i = 0; i < kParticipants; ++i) {
      const std::uint64_t who = (first + i) % kParticipants, epoch = load(region.header().limits_epoch);
      std::uint64_t& active = region.participant(who).active;
      std::uint64_t claim = flags_->claims[who].load(std::memory_order_acquire);
      if (!is_foreign) {
        if (claim == kForeign || claim == kBeingClaimed) continue;
        if (!exchange(active, idle_word(claim), active_word(claim, epoch))) continue;
      } else {
        if (!try_claim(who)) continue;
        recover(who);
        claim = std::max<std::uint64_t>(1, (claim_of(load(active)) + 1) & kClaimMask);
        exchange(active, load(active), active_word(claim, epoch));
        flags_->claims[who].store(static_cast<std::uint32_t>(claim), std::memory_order_release);
      }
      last_seat = who;
      registry_.catch_up();
      return Seat(*this, who, claim);
    }
  }
  return fail(ErrorCode::exhausted, "more than " + std::to_string(kParticipants) +
                                        " threads are changing this table at once: use fewer threads or processes");
}

void Seats::stand_up(std::uint64_t who, std::uint64_t claim) {
  std::uint64_t& active = mapping_.region().participant(who).active;
  if (is_kept(who)) return store(active, idle_word(claim));
  flags_->claims[who].store(kBeingClaimed, std::memory_order_release);
  store(active, idle_word((claim + 1) & kClaimMask));
  unlock_participant(mapping_.fd(), who);
  flags_->claims[who].store(kForeign, std::memory_order_release);
}

void Seats::recover_dead() {
  for (std::uint64_t who = 0; who < kParticipants; ++who) {
    if (!try_claim(who)) continue;
    recover(who);
    std::uint64_t& active = mapping_.region().participant(who).active;
    if (is_at_work(load(active))) store(active, idle_word((claim_of(load(active)) + 1) & kClaimMask));
    unlock_participant(mapping_.fd(), who);
    flags_->claims[who].store(kForeign, std::memory_order_release);
  }
}

}  // namespace weir::table
