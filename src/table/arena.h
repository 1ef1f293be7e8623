// Blocks for states that do not fit 8 bytes, with a map of the free blocks of each size. If a size has no free block,
// a larger one is split. If there is no larger one either, adjacent smaller ones are joined.
//
// A block always has exactly one owner: a map, a slot, or a participant's pending unit. It changes owner only in an
// operation. So a kill at any point leaves no block that cannot be found. The blocks in the pending units of
// dead participants are freed.
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

// Whether such a block can exist: a damaged file may contain any numbers.
bool is_block(const Region& region, const Block& block);

// The word of a block in a pending unit. 0 is none.
inline Word pending_word(const Block& block) { return {(std::uint64_t{block.block_class} + 1) << 2, block.line + 1}; }

// take_block()
//
// Takes a block of that class into pending unit `place`. The unit is empty, or its old block is freed. False if the
// arena is full.
bool take_block(Actor& actor, std::uint32_t place, unsigned block_class);

// The block in a pending unit, if any.
std::optional<Block> pending_block(Actor& actor, std::uint32_t place);

// give_block(), give_all_blocks()
//
// Returns the pending unit's block to its map.
void give_block(Actor& actor, std::uint32_t place);
void give_all_blocks(Actor& actor);

// Whether fewer than 1 / part of the lines are free.
bool is_scarce(Actor& actor, std::uint64_t part);

// set_free(), set_none_free()
//
// For a table without other users. set_free() frees the lines from `line` to before `end`, which were not free;
// set_none_free() makes no line free.
void set_free(const Region& region, std::uint64_t line, std::uint64_t end);
void set_none_free(const Region& region);

// For reports: correct only while nothing changes.
bool is_free(const Region& region, const Block& block);
std::uint64_t free_lines(const Region& region);

}  // namespace weir::table
