// See arena.h. Every loop here ends when its operation succeeds; it fails only because another's has succeeded.

#include "table/arena.h"

#include <algorithm>

namespace weir::table {
namespace {

bool is_block(const Region& region, const Block& block) {
  return block.block_class < kClasses && block.line < region.arena_lines() &&
         (std::uint64_t{1} << block.block_class) <= region.arena_lines() - block.line;
}

// Changes up to 2 * kClasses units as one: a block that falls into all its halves. Two tries on one's own, then with
// help.
class Step {
 public:
  explicit Step(Actor& actor) : actor_(actor) {}
  void add(Unit& unit, const Word& old, const Word& next) {
    entries_[count_++] = {actor_.region().number_of(unit), old, next};
  }
  bool commit(unsigned tries) {
    std::sort(entries_, entries_ + count_, [](const Entry& a, const Entry& b) { return a.unit < b.unit; });
    return actor_.change({entries_, count_}, way_after(tries), nullptr);
  }

 private:
  Actor& actor_;
  Entry entries_[2 * kClasses];
  std::size_t count_ = 0;
};

// The next free block after this one; read before it is known to be free, and of no use if it is not.
std::uint64_t link_of(Actor& actor, std::uint64_t line) {
  return actor.read(actor.region().line(line).units[kState0]).state;
}

// Moves the first block of a list into the empty pending unit, and what is too much of it to the lists of its halves:
// one event, so that nobody who is stopped keeps more than it needs. False if the list is empty; `seen` is its word
// then.
bool pop(Actor& actor, Unit& pending, unsigned from_class, unsigned to_class, Word& seen) {
  const Region& region = actor.region();
  Unit& from = region.header().free_lists[from_class];
  for (unsigned tries = 0; !actor.is_damaged(); ++tries) {
    const Word head = seen = actor.read(from);
    if (head.state == 0) return false;
    const Block block{head.state - 1, from_class};
    if (!is_block(region, block)) actor.note_damage();
    if (actor.is_damaged()) return false;
    Step step(actor);
    step.add(from, head, {head.tag + 4, link_of(actor, block.line)});
    step.add(pending, {}, pending_word({block.line, to_class}));
    for (unsigned half = to_class; half < from_class; ++half) {
      const std::uint64_t line = block.line + (std::uint64_t{1} << half);
      Unit& list = region.header().free_lists[half];
      Unit& link = region.line(line).units[kState0];
      const Word first = actor.read(list);
      step.add(link, actor.read(link), {0, first.state});
      step.add(list, first, {first.tag + 4, line + 1});
    }
    if (step.commit(tries)) return true;
  }
  return false;
}

// While one list after the other is found empty, another's block may fall into halves behind our back. The arena is
// full only if all lists were empty at one moment: they are still as they were found.
bool are_unchanged(const Region& region, const Word (&seen)[kClasses], unsigned from_class) {
  for (unsigned i = from_class; i < kClasses; ++i) {
    if (!(load(region.header().free_lists[i]) == seen[i])) return false;
  }
  return true;
}

}  // namespace

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
  } while (!actor.is_damaged() && !are_unchanged(actor.region(), seen, block_class));
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
    Unit& list = region.header().free_lists[block->block_class];
    const Word head = actor.read(list);
    actor.put(region.line(block->line).units[kState0], {0, head.state});
    Step step(actor);
    step.add(list, head, {head.tag + 4, block->line + 1});
    step.add(pending, pending_word(*block), {});
    if (step.commit(tries)) return;
  }
}

void give_all_blocks(Actor& actor) {
  for (std::uint32_t place = 0; place < kPendings; ++place) {
    if (!(actor.read(actor.record().pending[place]) == Word{})) give_block(actor, place);
  }
}

std::uint64_t free_lines(const Region& region) {
  std::uint64_t lines = 0;
  for (unsigned block_class = 0; block_class < kClasses; ++block_class) {
    std::uint64_t next = load(region.header().free_lists[block_class]).state;
    for (; next != 0 && next <= region.arena_lines() && lines < region.arena_lines();) {
      lines += std::uint64_t{1} << block_class;
      next = load(region.line(next - 1).units[kState0]).state;
    }
  }
  return lines;
}

}  // namespace weir::table
