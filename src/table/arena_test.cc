// Blocks: every line of the arena has exactly one owner, however often blocks are taken, split and freed.
#include "table/arena.h"

#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <thread>
#include <vector>

#include "on_threads.h"
#include "seed.h"
#include "table/file.h"

namespace weir::table::arena_test {
namespace {

constexpr std::uint64_t kArenaBytes = 1 << 20;

TEST(Arena, GivesEachLineToOneOwner) {
  const auto mapping = map_memory(100, kArenaBytes);
  ASSERT_TRUE(mapping);
  const Region& region = mapping->region();
  std::mt19937_64 dice(test::base_seed());
  Actor actor(region, 3);
  const std::uint64_t all = free_lines(region);
  EXPECT_EQ(all, region.arena_lines());
  for (int i = 0; i < 20'000; ++i) {
    const auto place = static_cast<std::uint32_t>(dice() % kChargesMax);
    if (dice() % 3 == 0) {
      give_block(actor, place);
    } else {
      take_block(actor, place, static_cast<unsigned>(dice() % 9));
    }
    if (i % 100 != 0) continue;
    std::vector<bool> held(region.arena_lines());
    std::uint64_t lines = 0;
    for (std::uint32_t p = 0; p < kChargesMax; ++p) {
      const auto block = pending_block(actor, p);
      if (!block) continue;
      for (std::uint64_t line = block->line; line < block->line + (1u << block->block_class); ++line) {
        ASSERT_FALSE(held[line]);
        held[line] = true;
        ++lines;
      }
    }
    ASSERT_EQ(lines + free_lines(region), all);
  }
  give_all_blocks(actor);
  EXPECT_EQ(free_lines(region), all);
}

TEST(Arena, RefusesBlocksOnlyWhileItIsFull) {
  const auto mapping = map_memory(100, 64 * 1024);
  const Region& region = mapping->region();
  Actor actor(region, 0);
  std::uint32_t taken = 0;
  while (taken < kChargesMax && take_block(actor, taken, 7)) ++taken;
  EXPECT_EQ(taken, 8u) << "1,024 lines are 8 blocks of 128";
  EXPECT_FALSE(take_block(actor, taken, 0));
  give_block(actor, 2);
  EXPECT_TRUE(take_block(actor, 2, 3)) << "a larger one is split";
  EXPECT_TRUE(take_block(actor, taken, 6));
}

TEST(Arena, IsSharedByThreads) {
  const auto mapping = map_memory(100, kArenaBytes);
  const Region& region = mapping->region();
  const std::uint64_t seed = test::base_seed();
  test::on_threads(std::uint64_t{4}, [&region, seed](std::uint64_t who) {
    std::mt19937_64 dice(seed + who);
    Actor actor(region, who);
    for (int i = 0; i < 3'000; ++i) {
      const auto place = static_cast<std::uint32_t>(dice() % 4);
      if (dice() % 2 == 0) give_block(actor, place);
      if (!take_block(actor, place, static_cast<unsigned>(dice() % 6))) continue;
      // Another owner of the block would overwrite this mark.
      Unit& unit = region.line(pending_block(actor, place)->line).units[kParameters0];
      actor.put(unit, {who << 2, static_cast<std::uint64_t>(i)});
      std::this_thread::yield();
      EXPECT_EQ(load(unit), (Word{who << 2, static_cast<std::uint64_t>(i)}));
    }
    give_all_blocks(actor);
  });
  EXPECT_EQ(free_lines(region), region.arena_lines());
}

// A flood of small blocks fragments the arena. They are joined again when larger ones are needed.
TEST(Arena, JoinsSmallFreeBlocks) {
  const auto mapping = map_memory(100, kArenaBytes);
  const Region& region = mapping->region();
  ASSERT_EQ(region.arena_lines(), std::uint64_t{1} << (kClasses - 1)) << "one block of the largest class";
  std::mt19937_64 dice(test::base_seed());
  for (const unsigned largest : {14u, 13u, 9u, 5u}) {
    // Everything in the smallest blocks, or in a mixture; then all lines are free again except one.
    for (const bool is_mixed : {false, true}) {
      set_none_free(region);
      for (std::uint64_t line = 0; line < region.arena_lines();) {
        const std::uint64_t lines = is_mixed ? std::uint64_t{1} << dice() % 4 : 1;
        const std::uint64_t end = std::min(line + lines, region.arena_lines());
        for (std::uint64_t i = line; i < end; i += i % lines == 0 && i + lines <= end ? lines : 1) {
          set_free(region, i, i % lines == 0 && i + lines <= end ? i + lines : i + 1);
        }
        line = end;
      }
      ASSERT_EQ(free_lines(region), region.arena_lines());
      Actor actor(region, 0);
      const std::uint64_t count = region.arena_lines() >> largest;
      for (std::uint32_t i = 0; i < std::min<std::uint64_t>(count, kPendings); ++i) {
        ASSERT_TRUE(take_block(actor, i, largest)) << i << " of class " << largest;
      }
      if (count <= kPendings) {
        EXPECT_EQ(free_lines(region), 0u);
      }
      give_all_blocks(actor);
      EXPECT_EQ(free_lines(region), region.arena_lines());
    }
  }
}

TEST(Arena, JoinsNoBlockThatIsInUse) {
  const auto mapping = map_memory(100, 64 * 1024);
  const Region& region = mapping->region();
  Actor actor(region, 0);
  set_none_free(region);
  for (std::uint64_t line = 0; line < region.arena_lines(); ++line) {
    if (line % 64 != 17) set_free(region, line, line + 1);
  }
  EXPECT_FALSE(take_block(actor, 0, 6)) << "a line of each 64 is missing";
  std::uint32_t taken = 0;
  while (taken < kPendings && take_block(actor, taken, 5)) ++taken;
  EXPECT_EQ(taken, region.arena_lines() / 64);
}

// A new arena is a single block. While one thread splits it, other threads must not consider the arena full.
TEST(Arena, IsNotFullWhileABlockIsSplit) {
  int refused = 0;
  for (int round = 0; round < 300; ++round) {
    const auto mapping = map_memory(1, 64 * 1024);
    std::atomic<int> ready{0}, missed{0};
    test::on_threads(std::uint64_t{2}, [&](std::uint64_t who) {
      Actor actor(mapping->region(), who);
      ++ready;
      while (ready < 2) {
      }
      for (std::uint32_t place = 0; place < 4; ++place) missed += !take_block(actor, place, 3);
    });
    refused += missed;
  }
  EXPECT_EQ(refused, 0);
}

}  // namespace
}  // namespace weir::table::arena_test
