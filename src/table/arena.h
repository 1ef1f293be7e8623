// Blocks for what 8 bytes do not hold: a map of the free ones for each size. A larger one is split where a size has
// none; where there is no larger one either, smaller ones that lie beside each other are put together.
//
// A block belongs to exactly one of: a map, a slot, a participant's pending unit; it changes hands only in an
// operation. So whoever is killed, wherever, leaves no block behind that nobody can find: what the pending units of the
// dead hold is given back.
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

// Whether there can be such a block: in a damaged file any numbers may stand.
bool is_block(const Region& region, const Block& block);

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
// Puts what the pending unit holds back on its map.
void give_block(Actor& actor, std::uint32_t place);
void give_all_blocks(Actor& actor);

// Whether fewer than 1 / part of the lines are free.
bool is_scarce(Actor& actor, std::uint64_t part);

// set_free(), set_none_free()
//
// For a table that nobody else uses: the lines from `line` to before `end` are free, and were not; none is.
void set_free(const Region& region, std::uint64_t line, std::uint64_t end);
void set_none_free(const Region& region);

// For reports: right only while nobody changes anything.
bool is_free(const Region& region, const Block& block);
std::uint64_t free_lines(const Region& region);

}  // namespace weir::table
