// Blocks for what 8 bytes do not hold: free lists by size, larger blocks split when a list is empty.
//
// A block belongs to exactly one of: a free list, a slot, a participant's pending unit; it changes hands only in an
// operation. So whoever is killed, wherever, leaves no block behind that nobody can find: recover() frees what its
// pending units hold. Blocks are not merged while a table is in use; opening a table that nobody else uses does that.
//
// For the one thread of an actor. Tested by arena_test.cc and tests/kill_test.cc.
#pragma once

#include <cstdint>
#include <optional>

#include "table/operation.h"

namespace weir::table {

struct Block {
  std::uint64_t line = 0;
  unsigned block_class = 0;
};

// As it stands in a pending unit. 0 is none.
inline Word pending_word(const Block& block) { return {(std::uint64_t{block.block_class} + 1) << 2, block.line + 1}; }

// take_block()
//
// A block of that class for pending unit `place`, which is empty or gets rid of what it holds. False if the arena is
// full.
bool take_block(Actor& actor, std::uint32_t place, unsigned block_class);

// What a pending unit holds.
std::optional<Block> pending_block(Actor& actor, std::uint32_t place);

// give_block(), give_all_blocks()
//
// Puts what the pending unit holds back on its free list.
void give_block(Actor& actor, std::uint32_t place);
void give_all_blocks(Actor& actor);

// Free lines, for reports: a walk over all lists, right only while nobody else changes them.
std::uint64_t free_lines(const Region& region);

}  // namespace weir::table
