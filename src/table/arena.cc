// See arena.h. Every loop here ends when its operation succeeds; it fails only because another's has succeeded.

#include "table/arena.h"

#include <algorithm>
#include <bit>

namespace weir::table {
namespace {

constexpr std::uint64_t lines_of(unsigned block_class) { return std::uint64_t{1} << block_class; }

Unit& map_of(const Region& region, const Block& block) {
  return region.free_map(block.block_class, (block.line >> block.block_class) / kBlocksInUnit);
}
std::uint64_t bit_of(const Block& block) {
  return std::uint64_t{1} << (block.line >> block.block_class) % kBlocksInUnit;
}

// Several units changed as one: two tries on one's own, then with help.
class Step {
 public:
  explicit Step(Actor& actor) : actor_(actor) {}

  void add(Unit& unit, const Word& old, const Word& next) {
    entries_[size_++] = {actor_.region().number_of(unit), old, next};
  }
  void count(unsigned block_class, std::uint64_t change) {
    Unit& unit = actor_.region().header().free_counts[block_class];
    const Word word = actor_.read(unit);
    add(unit, word, {word.tag + 4, word.state + change});
  }
  // False if it is free already: the table is damaged.
  bool give(const Block& block) {
    Unit& unit = map_of(actor_.region(), block);
    const Word word = actor_.read(unit);
    if ((word.state & bit_of(block)) != 0) return false;
    add(unit, word, {word.tag, word.state | bit_of(block)});
    count(block.block_class, 1);
    return true;
  }
  std::size_t size() const { return size_; }
  bool commit(unsigned tries) {
    std::sort(entries_, entries_ + size_, [](const Entry& a, const Entry& b) { return a.unit < b.unit; });
    return !actor_.is_damaged() && actor_.change({entries_, size_}, way_after(tries), nullptr);
  }

 private:
  Actor& actor_;
  Entry entries_[kEntriesMax];
  std::size_t size_ = 0;
};

// A free block, and the word of its map.
struct Found {
  Block block;
  Word map;
};

std::optional<Found> find_free(Actor& actor, unsigned block_class) {
  const Region& region = actor.region();
  const std::uint64_t units = region.free_map_units(block_class);
  if (units == 0) return {};
  std::uint64_t& hint = region.header().free_hints[block_class];
  std::uint64_t at = load(hint) % units;
  for (std::uint64_t i = 0; i < units; ++i) {
    const Word word = actor.read(region.free_map(block_class, at));
    if (word.state != 0) {
      if (i != 0) store(hint, at);
      const std::uint64_t number = at * kBlocksInUnit + static_cast<std::uint64_t>(std::countr_zero(word.state));
      return Found{{number << block_class, block_class}, word};
    }
    at = at + 1 == units ? 0 : at + 1;
  }
  return {};
}

// Moves a block into the empty pending unit, and what is too much of it to the maps of its halves: one event, so that
// nobody who is stopped keeps more than it needs. False if there is none; `seen` is the word of their count then.
bool pop(Actor& actor, Unit& pending, unsigned from_class, unsigned to_class, Word& seen) {
  const Region& region = actor.region();
  for (unsigned tries = 0; !actor.is_damaged(); ++tries) {
    Unit& count = region.header().free_counts[from_class];
    seen = actor.read(count);
    if (seen.state == 0) return false;
    const auto found = find_free(actor, from_class);
    if (!found || !is_block(region, found->block)) {
      if (load(count) == seen) actor.note_damage();  // it counts what is not there
      continue;
    }
    const Block& block = found->block;
    Step step(actor);
    step.add(map_of(region, block), found->map, {found->map.tag, found->map.state & ~bit_of(block)});
    step.add(count, seen, {seen.tag + 4, seen.state - 1});
    step.add(pending, {}, pending_word({block.line, to_class}));
    bool is_sound = true;
    for (unsigned half = to_class; half < from_class; ++half) {
      is_sound = step.give({block.line + lines_of(half), half}) && is_sound;
    }
    if (is_sound && step.commit(tries)) return true;
    if (!is_sound && load(count) == seen) actor.note_damage();
  }
  return false;
}

// While one class after the other is found to have none, another's block may fall into halves behind our back. The
// arena has none only if there was none of any class at one moment: all counts are still as they were found.
bool are_unchanged(const Region& region, const Word (&seen)[kClasses], unsigned from_class) {
  for (unsigned i = from_class; i < kClasses; ++i) {
    if (!(load(region.header().free_counts[i]) == seen[i])) return false;
  }
  return true;
}

// Calls visit(unit, mask) for the parts of a smaller class's map that lie within a block.
template <class Visit>
void for_each_map(const Region& region, const Block& block, unsigned smaller, Visit visit) {
  const std::uint64_t first = block.line >> smaller, count = lines_of(block.block_class - smaller);
  if (count < kBlocksInUnit) {
    const std::uint64_t mask = ((std::uint64_t{1} << count) - 1) << first % kBlocksInUnit;
    visit(region.free_map(smaller, first / kBlocksInUnit), mask);
    return;
  }
  for (std::uint64_t i = 0; i < count / kBlocksInUnit; ++i) {
    visit(region.free_map(smaller, first / kBlocksInUnit + i), ~std::uint64_t{0});
  }
}

// Puts a block together of the smaller ones in its place, if all of them are free.
bool assemble(Actor& actor, const Block& block) {
  const Region& region = actor.region();
  for (unsigned tries = 0; !actor.is_damaged(); ++tries) {
    Step step(actor);
    std::uint64_t lines = 0;
    bool is_large = false;
    for (unsigned i = 0; i < block.block_class; ++i) {
      std::uint64_t pieces = 0;
      for_each_map(region, block, i, [&](Unit& unit, std::uint64_t mask) {
        const Word word = actor.read(unit);
        if ((word.state & mask) == 0) return;
        pieces += static_cast<std::uint64_t>(std::popcount(word.state & mask));
        is_large = is_large || step.size() + 2 * kClasses >= kEntriesMax;
        if (!is_large) step.add(unit, word, {word.tag, word.state & ~mask});
      });
      lines += pieces << i;
      if (pieces != 0) step.count(i, 0 - pieces);
    }
    if (lines != lines_of(block.block_class)) return false;
    if (is_large) {  // more than one operation can change: first its halves
      for (const std::uint64_t half : {std::uint64_t{0}, lines_of(block.block_class - 1)}) {
        const Block part{block.line + half, block.block_class - 1};
        if (!is_free(region, part) && !assemble(actor, part)) return false;
      }
      continue;
    }
    if (!step.give(block)) return false;
    if (step.commit(tries)) return true;
  }
  return false;
}

std::uint64_t free_within(Actor& actor, const Block& block, std::uint64_t& units) {
  std::uint64_t lines = 0;
  for (unsigned i = 0; i < block.block_class; ++i) {
    for_each_map(actor.region(), block, i, [&](Unit& unit, std::uint64_t mask) {
      lines += static_cast<std::uint64_t>(std::popcount(actor.read(unit).state & mask)) << i;
      ++units;
    });
  }
  return lines;
}

// Puts any block of that class together. A search of a large arena takes several calls: each begins where the last one
// ended.
bool assemble_any(Actor& actor, unsigned block_class) {
  constexpr std::uint64_t kUnitsMax = 1 << 16;
  const Region& region = actor.region();
  const std::uint64_t places = region.arena_lines() >> block_class;
  std::uint64_t free = 0;
  for (unsigned i = 0; i < block_class; ++i) free += actor.read(region.header().free_counts[i]).state << i;
  if (free < lines_of(block_class) || places == 0) return false;
  std::uint64_t& hint = region.header().assemble_hint;
  std::uint64_t at = (load(hint) >> block_class) % places;
  for (std::uint64_t i = 0, units = 0; i < places && units < kUnitsMax && !actor.is_damaged(); ++i) {
    const Block block{at << block_class, block_class};
    if (free_within(actor, block, units) == lines_of(block_class) && assemble(actor, block)) return true;
    at = at + 1 == places ? 0 : at + 1;
  }
  store(hint, at << block_class);
  return false;
}

}  // namespace

bool is_block(const Region& region, const Block& block) {
  return block.block_class < kClasses && block.line < region.arena_lines() &&
         lines_of(block.block_class) <= region.arena_lines() - block.line &&
         block.line % lines_of(block.block_class) == 0;
}

std::optional<Block> pending_block(Actor& actor, std::uint32_t place) {
  const Word word = actor.read(actor.record().pending[place]);
  if (word.state == 0) return {};
  const Block block{word.state - 1, static_cast<unsigned>((word.tag >> 2) - 1)};
  if (!is_block(actor.region(), block)) return {};
  return block;
}

bool take_block(Actor& actor, std::uint32_t place, unsigned block_class) {
  const auto held = pending_block(actor, place);
  if (held && held->block_class == block_class) return true;
  Unit& pending = actor.record().pending[place];
  if (!(actor.read(pending) == Word{})) give_block(actor, place);
  Word seen[kClasses];
  do {
    for (unsigned from = block_class; from < kClasses; ++from) {
      if (pop(actor, pending, from, block_class, seen[from])) return true;
    }
    if (actor.is_damaged()) return false;
  } while (!are_unchanged(actor.region(), seen, block_class) || assemble_any(actor, block_class));
  return false;
}

void give_block(Actor& actor, std::uint32_t place) {
  const Region& region = actor.region();
  Unit& pending = actor.record().pending[place];
  for (unsigned tries = 0; !actor.is_damaged(); ++tries) {
    const auto block = pending_block(actor, place);
    if (!block) {
      const Word word = actor.read(pending);
      if (word == Word{} || replace(pending, word, {})) return;  // nothing, or nothing that could be a block
      continue;
    }
    Step step(actor);
    if (!step.give(*block)) return actor.note_damage();
    step.add(pending, pending_word(*block), {});
    if (!step.commit(tries)) continue;
    std::uint64_t& hint = region.header().free_hints[block->block_class];
    const std::uint64_t at = (block->line >> block->block_class) / kBlocksInUnit;
    if (at < load(hint)) store(hint, at);
    return;
  }
}

void give_all_blocks(Actor& actor) {
  for (std::uint32_t place = 0; place < kPendings; ++place) {
    if (!(actor.read(actor.record().pending[place]) == Word{})) give_block(actor, place);
  }
}

void set_free(const Region& region, std::uint64_t line, std::uint64_t end) {
  while (line < end) {
    unsigned block_class = kClasses - 1;
    while (line % lines_of(block_class) != 0 || lines_of(block_class) > end - line) --block_class;
    const Block block{line, block_class};
    map_of(region, block).state |= bit_of(block);
    ++region.header().free_counts[block_class].state;
    line += lines_of(block_class);
  }
}

void set_none_free(const Region& region) {
  for (unsigned i = 0; i < kClasses; ++i) {
    Unit& count = region.header().free_counts[i];
    count = {(count.tag & ~kMarkBits) + 4, 0};
    for (std::uint64_t at = 0; at < region.free_map_units(i); ++at) region.free_map(i, at) = {0, 0};
  }
}

bool is_free(const Region& region, const Block& block) {
  return (load(map_of(region, block)).state & bit_of(block)) != 0;
}

std::uint64_t free_lines(const Region& region) {
  std::uint64_t lines = 0;
  for (unsigned i = 0; i < kClasses; ++i) {
    for (std::uint64_t at = 0; at < region.free_map_units(i); ++at) {
      lines += static_cast<std::uint64_t>(std::popcount(load(region.free_map(i, at)).state)) << i;
    }
  }
  return lines;
}

}  // namespace weir::table
