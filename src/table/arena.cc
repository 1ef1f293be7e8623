// See arena.h. Every loop here ends when its operation succeeds. An operation fails only because another one has
// succeeded.

#include "table/arena.h"

#include <algorithm>
#include <array>
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

// Changes several units as one: two solo tries, then tries with help.
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
  // False if the block is free already: the table is damaged.
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

// The next search begins at the block that was freed last.
void point_to(const Region& region, const Block& block) {
  store(region.header().free_hints[block.block_class], (block.line >> block.block_class) / kBlocksInUnit);
}

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

// Moves a block into the empty pending unit, and returns its surplus halves to their maps, as one event. So a thread
// that is stopped never keeps more than it needs. False if there is no block.
bool pop(Actor& actor, Unit& pending, unsigned from_class, unsigned to_class) {
  const Region& region = actor.region();
  for (unsigned tries = 0; !actor.is_damaged(); ++tries) {
    Unit& count = region.header().free_counts[from_class];
    const Word seen = actor.read(count);
    if (seen.state == 0) return false;
    const auto found = find_free(actor, from_class);
    if (!found || !is_block(region, found->block)) {
      if (load(count) == seen) actor.note_damage();  // the count includes a block that is not there
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
    if (!is_sound && load(count) == seen) actor.note_damage();
    if (!is_sound || !step.commit(tries)) continue;
    for (unsigned half = to_class; half < from_class; ++half) point_to(region, {block.line + lines_of(half), half});
    return true;
  }
  return false;
}

// Calls visit(unit, mask) for the parts of a smaller class's map that cover a block.
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

// The lines covered by one unit of the smallest class's map.
constexpr std::uint64_t kGroup = kBlocksInUnit;
constexpr unsigned kGroupClass = 6;
static_assert(lines_of(kGroupClass) == kGroup);

// Which lines of a group are free, in blocks of classes lower than `below`.
std::uint64_t free_mask(Actor& actor, std::uint64_t group, unsigned below) {
  const Region& region = actor.region();
  std::uint64_t mask = 0;
  for (unsigned i = 0; i < below; ++i) {
    const std::uint64_t first = group * kGroup >> i;
    if (first / kBlocksInUnit >= region.free_map_units(i)) continue;
    std::uint64_t bits = actor.read(region.free_map(i, first / kBlocksInUnit)).state >> first % kBlocksInUnit;
    if (i >= kGroupClass) {
      if ((bits & 1) != 0) return ~std::uint64_t{0};
      continue;
    }
    if (i > 0) bits &= (std::uint64_t{1} << (kGroup >> i)) - 1;
    for (; bits != 0; bits &= bits - 1) {
      const std::uint64_t block = (std::uint64_t{1} << lines_of(i)) - 1;
      mask |= block << (static_cast<std::uint64_t>(std::countr_zero(bits)) << i);
    }
  }
  return mask;
}

// Whether every line of a block is free. In a damaged map blocks may overlap, so their sum may be too high.
bool is_covered(Actor& actor, const Block& block) {
  const std::uint64_t lines = std::min(lines_of(block.block_class), kGroup);
  const std::uint64_t own =
      lines == kGroup ? ~std::uint64_t{0} : ((std::uint64_t{1} << lines) - 1) << block.line % kGroup;
  for (std::uint64_t line = block.line; line < block.line + lines_of(block.block_class); line += kGroup) {
    if ((free_mask(actor, line / kGroup, block.block_class) & own) != own) return false;
  }
  return true;
}

// The first line of each block of a class whose lines are all free.
std::uint64_t whole_blocks(std::uint64_t mask, unsigned block_class) {
  for (unsigned i = 0; i < block_class; ++i) mask &= mask >> lines_of(i);
  std::uint64_t firsts = 1;
  for (unsigned i = kGroupClass; i-- > block_class;) firsts |= firsts << lines_of(i);
  return mask & firsts;
}

// Joins the smaller blocks in this block's place, if all of them are free.
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
    if (lines != lines_of(block.block_class) || !is_covered(actor, block)) return false;
    if (is_large) {  // more than one operation can change: assemble its halves first
      for (const std::uint64_t half : {std::uint64_t{0}, lines_of(block.block_class - 1)}) {
        const Block part{block.line + half, block.block_class - 1};
        const bool is_whole = (actor.read(map_of(region, part)).state & bit_of(part)) != 0;
        if (!is_whole && !assemble(actor, part)) return false;
      }
      continue;
    }
    if (!step.give(block)) return false;
    if (step.commit(tries)) return true;
  }
  return false;
}

// Assembles any block of that class. A search of a very large arena takes several calls, each beginning where the
// last one ended.
bool assemble_any(Actor& actor, unsigned block_class) {
  constexpr std::uint64_t kGroupsMax = 1 << 16;
  const Region& region = actor.region();
  const std::uint64_t groups_each = block_class > kGroupClass ? lines_of(block_class - kGroupClass) : 1;
  const std::uint64_t places = (region.arena_lines() + groups_each * kGroup - 1) / (groups_each * kGroup);
  std::uint64_t& hint = region.header().assemble_hint;
  std::uint64_t at = load(hint) / groups_each % places;
  for (std::uint64_t i = 0, groups = 0; i < places && groups < kGroupsMax && !actor.is_damaged(); ++i) {
    std::uint64_t begins = ~std::uint64_t{0};  // where blocks could begin within a group
    for (std::uint64_t k = 0; k < groups_each && begins != 0; ++k, ++groups) {
      begins &= whole_blocks(free_mask(actor, at * groups_each + k, block_class), std::min(block_class, kGroupClass));
    }
    for (; begins != 0; begins &= begins - 1) {
      const std::uint64_t line = at * groups_each * kGroup + static_cast<std::uint64_t>(std::countr_zero(begins));
      if (is_block(region, {line, block_class}) && assemble(actor, {line, block_class})) return true;
    }
    at = at + 1 == places ? 0 : at + 1;
  }
  store(hint, at * groups_each);
  return false;
}

using Counts = std::array<Word, kClasses>;

Counts counts_of(Actor& actor) {
  Counts counts;
  for (unsigned i = 0; i < kClasses; ++i) counts[i] = actor.read(actor.region().header().free_counts[i]);
  return counts;
}

// The free lines in blocks of lower classes.
std::uint64_t lines_below(const Counts& counts, unsigned block_class) {
  std::uint64_t lines = 0;
  for (unsigned i = 0; i < block_class; ++i) lines += counts[i].state << i;
  return lines;
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
  if (!is_block(actor.region(), block) || !(word == pending_word(block))) return {};
  return block;
}

bool take_block(Actor& actor, std::uint32_t place, unsigned block_class) {
  const auto held = pending_block(actor, place);
  if (held && held->block_class == block_class) return true;
  Unit& pending = actor.record().pending[place];
  if (!(actor.read(pending) == Word{})) give_block(actor, place);
  if (block_class < kClasses && pop(actor, pending, block_class, block_class)) return true;
  // While we check one class after another, another thread may split or join blocks behind us. So the arena is full
  // only if nothing changed while we looked; or, if many threads are at work, after some rounds.
  constexpr int kRoundsMax = 8;
  for (int round = 0; round < kRoundsMax && !actor.is_damaged(); ++round) {
    const Counts before = counts_of(actor);
    for (unsigned from = block_class; from < kClasses; ++from) {
      if (pop(actor, pending, from, block_class)) return true;
    }
    if (lines_below(before, block_class) >= lines_of(block_class) && assemble_any(actor, block_class)) {
      round = -1;
    } else if (counts_of(actor) == before) {
      return false;
    }
  }
  return false;
}

void give_block(Actor& actor, std::uint32_t place) {
  const Region& region = actor.region();
  Unit& pending = actor.record().pending[place];
  for (unsigned tries = 0; !actor.is_damaged(); ++tries) {
    const auto block = pending_block(actor, place);
    if (!block) {
      const Word word = actor.read(pending);
      if (word == Word{} || replace(pending, word, {})) return;  // empty, or the word could not be a block
      continue;
    }
    Step step(actor);
    if (!step.give(*block)) return actor.note_damage();
    step.add(pending, pending_word(*block), {});
    if (step.commit(tries)) return point_to(region, *block);
  }
}

void give_all_blocks(Actor& actor) {
  for (std::uint32_t place = 0; place < kPendings; ++place) {
    if (!(actor.read(actor.record().pending[place]) == Word{})) give_block(actor, place);
  }
}

bool is_scarce(Actor& actor, std::uint64_t part) {
  return lines_below(counts_of(actor), kClasses) < actor.region().arena_lines() / part;
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
