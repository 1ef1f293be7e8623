// See operation.h. The order of every access matters here; tests/mutants/table.txt lists what goes wrong without it.

#include "table/operation.h"

namespace weir::table {
namespace {

// In a sound table, no thread looks kSameMax times at one marked word that does not change, nor kLooksMax times in
// total.
constexpr unsigned kSameMax = 1'000, kLooksMax = 1'000'000;

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

std::uint64_t status_of(std::uint64_t ref, Status status) { return number_of(ref) << 2 | status; }

Word held_by(const Word& word, std::uint64_t ref) { return {(word.tag & ~kMarkBits) | kHeld, ref}; }
bool is_held_by(const Word& word, std::uint64_t ref) { return mark_of(word) == kHeld && word.state == ref; }

Entry load_entry(const Entry& entry) {
  return {
      load(entry.unit), {load(entry.old.tag), load(entry.old.state)}, {load(entry.next.tag), load(entry.next.state)}};
}

void store_entry(Entry& place, const Entry& entry) {
  store(place.unit, entry.unit);
  store(place.old.tag, entry.old.tag);
  store(place.old.state, entry.old.state);
  store(place.next.tag, entry.next.tag);
  store(place.next.state, entry.next.state);
}

// False only for a damaged record.
bool is_sound(const Region& region, const Entry& entry) {
  return region.is_shared(entry.unit) && mark_of(entry.old) == kPlain && mark_of(entry.next) == kPlain;
}

}  // namespace

bool Actor::may_look(Looks& looks, const Word& word) {
  looks.same = word == looks.before ? looks.same + 1 : 0;
  looks.before = word;
  if (looks.same == kSameMax || ++looks.all == kLooksMax) note_damage();
  return !damaged_;
}

Word Actor::read(Unit& unit) {
  for (Looks looks;;) {
    const Word word = load(unit);
    if (mark_of(word) == kPlain) return word;
    if (!may_look(looks, word)) return {};
    settle(unit, word);
  }
}

void Actor::put(Unit& unit, const Word& word) {
  Word seen = read(unit);
  while (!damaged_ && !exchange(unit, seen, word)) seen = read(unit);
}

// `seen` was read from the unit, and is marked.
void Actor::settle(Unit& unit, const Word& seen) {
  if (mark_of(seen) == kClaimed) return complete(unit, seen);
  for (unsigned i = 0; i < WEIR_TABLE_SPINS; ++i) {  // courtesy; nothing depends on it
    pause();
    if (!(load(unit) == seen)) return;
  }
  help(seen.state);
}

// Completes an operation: decided, and out of all its words.
void Actor::help(std::uint64_t ref) {
  Participant& owner = region_->participant(who_of(ref));
  const std::uint64_t status = load(owner.status);
  if (status >> 2 != number_of(ref)) return;  // over: the word that led here has changed
  if (status == status_of(ref, kSolo)) exchange(owner.status, status, status_of(ref, kFailed));
  if (status == status_of(ref, kHelp)) {
    if (depth_ == kParticipants) return note_damage();  // a cycle; in a sound table, words are held in ascending order
    ++depth_;
    drive(ref);
    --depth_;
  }
  const std::uint64_t decided = load(owner.status);
  if (decided == status_of(ref, kDone) || decided == status_of(ref, kFailed)) {
    release(ref, decided == status_of(ref, kDone));
  }
}

// Acquires all words in ascending order, for the owner or any helper; then the operation is done. If a word has
// changed or is damaged, the operation has failed.
void Actor::drive(std::uint64_t ref) {
  Participant& owner = region_->participant(who_of(ref));
  const std::uint64_t open = status_of(ref, kHelp);
  const std::uint64_t count = load(owner.count);
  for (std::uint64_t i = 0; i < count && i < kEntriesMax; ++i) {
    for (Looks looks;;) {
      const Entry entry = load_entry(owner.entries[i]);
      fence_after_read();
      if (load(owner.status) != open) return;  // what was read may be another operation's
      if (!is_sound(*region_, entry)) note_damage();
      const Word word = damaged_ ? Word{} : load(region_->unit(entry.unit));
      if (is_held_by(word, ref)) break;
      const bool is_marked = mark_of(word) != kPlain;
      if (damaged_ || (is_marked ? !may_look(looks, word) : !(word == entry.old))) {
        exchange(owner.status, open, status_of(ref, kFailed));
        return;
      }
      if (is_marked) {
        settle(region_->unit(entry.unit), word);
      } else {
        install(region_->unit(entry.unit), word, ref);
      }
    }
  }
  exchange(owner.status, open, status_of(ref, kDone));
}

// Makes the operation hold the word if it is still undecided, as one event. First it claims the word, then it reads
// the status, then it holds the word or restores the old one. Any thread may do the second half.
void Actor::install(Unit& unit, const Word& old, std::uint64_t ref) {
  Participant& own = record();
  const std::uint64_t number = (load(own.install_number) + 1) & kNumberMask;
  store(own.install_number, number);  // from here on, a reader of the previous install notices
  fence_before_rewrite();
  store(own.install_unit, region_->number_of(unit));
  store(own.install_old, old.state);
  store(own.install_held, ref);
  const Word claimed{old.tag | kClaimed, reference(who_, number)};
  if (replace(unit, old, claimed)) complete(unit, claimed);
}

void Actor::complete(Unit& unit, const Word& seen) {
  Participant& helper = region_->participant(who_of(seen.state));
  const std::uint64_t old = load(helper.install_old), ref = load(helper.install_held);
  fence_after_read();
  if (load(helper.install_number) != number_of(seen.state)) return;  // over: the word has changed
  const bool open = load(region_->participant(who_of(ref)).status) == status_of(ref, kHelp);
  const Word plain{seen.tag & ~kMarkBits, old};
  replace(unit, seen, open ? held_by(plain, ref) : plain);
}

// Requires that the operation is decided. In solo mode, its owner may still rewrite entries whose words do not refer
// to the operation yet. So this reads an entry only after it has seen that its word refers to the operation: then the
// entry is final, and if the record has been reused, the exchange fails. A thread that was stopped while the operation
// was undecided may have an install for it in flight. This finishes that install, too. Otherwise the install could
// make the word refer to the operation after the record has been reused.
void Actor::release(std::uint64_t ref, bool done) {
  Participant& owner = region_->participant(who_of(ref));
  const std::uint64_t count = load(owner.count);
  for (std::uint64_t i = 0; i < count && i < kEntriesMax; ++i) {
    const std::uint64_t number = load(owner.entries[i].unit);
    if (!region_->is_shared(number)) continue;
    Unit& unit = region_->unit(number);
    for (Looks looks;;) {
      const Word word = load(unit);
      if (is_held_by(word, ref)) {
        const Entry entry = load_entry(owner.entries[i]);
        if (!is_sound(*region_, entry)) return note_damage();
        replace(unit, word, done ? entry.next : entry.old);
      } else if (mark_of(word) == kClaimed) {
        if (!may_look(looks, word)) return;
        complete(unit, word);
      } else {
        break;
      }
    }
  }
}

bool Actor::change(std::span<Entry> entries, Way way, Rebinder* rebinder) {
  if (entries.size() == 1 && rebinder == nullptr) {
    Entry& only = entries.front();
    if (only.old == only.next) return load(region_->unit(only.unit)) == only.old;
    return replace(region_->unit(only.unit), only.old, only.next);
  }
  Participant& own = record();
  const std::uint64_t ref = reference(who_, ((load(own.status) >> 2) + 1) & kNumberMask);
  const std::uint64_t open = status_of(ref, way == Way::solo ? kSolo : kHelp);
  store(own.status, open);  // from here on, a reader of the previous operation notices
  fence_before_rewrite();
  store(own.count, entries.size());
  WEIR_ASSERT(entries.size() <= kEntriesMax);
  for (std::size_t i = 0; i < entries.size(); ++i) store_entry(own.entries[i], entries[i]);
  if (way == Way::solo) {
    bool all = true;
    for (std::size_t i = 0; all && i < entries.size(); ++i) all = hold(entries[i], i, ref, rebinder);
    exchange(own.status, open, status_of(ref, all ? kDone : kFailed));
  } else {
    drive(ref);
  }
  const std::uint64_t decided = load(own.status);
  const bool done = decided == status_of(ref, kDone);
  for (const Entry& entry : entries) {  // the common case of release(), without reading the record again
    Unit& unit = region_->unit(entry.unit);
    Word word = held_by(entry.old, ref);
    if (exchange(unit, word, done ? entry.next : entry.old)) continue;
    for (Looks looks; mark_of(word) == kClaimed || is_held_by(word, ref);) {
      if (!may_look(looks, word)) break;
      if (mark_of(word) == kClaimed) {
        complete(unit, word);
      } else {
        replace(unit, word, done ? entry.next : entry.old);
      }
      word = load(unit);
    }
  }
  return done;
}

// Only the owner acquires words of a solo operation; other threads may only undo it. A hold that comes too late
// belongs to an operation that has failed, and means the old word. So no claim is needed.
bool Actor::hold(Entry& entry, std::size_t place, std::uint64_t ref, Rebinder* rebinder) {
  Participant& own = record();
  Unit& unit = region_->unit(entry.unit);
  for (unsigned looks = 0; looks < kLooksMax && !damaged_; ++looks) {
    Word seen = entry.old;
    if (exchange(unit, seen, held_by(entry.old, ref))) return true;
    if (mark_of(seen) != kPlain) {
      settle(unit, seen);
    } else if (!(seen == entry.old)) {
      if (rebinder == nullptr || !rebinder->rebind(entry, seen)) return false;
      store_entry(own.entries[place], entry);
    }
    if (load(own.status) != status_of(ref, kSolo)) return false;
  }
  return false;
}

void Actor::recover() {
  Participant& own = record();
  const std::uint64_t status = load(own.status);
  const std::uint64_t ref = reference(who_, status >> 2);
  if ((status & kStatusBits) == kSolo || (status & kStatusBits) == kHelp) {
    exchange(own.status, status, status_of(ref, kFailed));
  }
  release(ref, load(own.status) == status_of(ref, kDone));
  const std::uint64_t number = load(own.install_unit);
  if (!region_->is_shared(number)) return;
  Unit& unit = region_->unit(number);
  const Word word = load(unit);
  if (mark_of(word) == kClaimed && word.state == reference(who_, load(own.install_number))) complete(unit, word);
}

}  // namespace weir::table
