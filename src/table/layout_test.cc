// The bytes of a table: nothing overlaps, nothing moves, and a resized table finds its keys by the stored bits.
#include "table/layout.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "seed.h"
#include "table/format.h"

namespace weir::table::layout_test {
namespace {

TEST(Layout, StaysAsItIsInEveryFileOfThisVersion) {
  EXPECT_EQ(kVersion, 2u) << "a new version brings new numbers here, and a way to migrate";
  EXPECT_EQ(sizeof(Page), 4096u);
  EXPECT_EQ(sizeof(Participant), 13'504u);
  EXPECT_EQ(sizeof(RegistryEntry), 128u);
  EXPECT_EQ(offsetof(RegistryEntry, windows), 66u);
  EXPECT_EQ(offsetof(RegistryEntry, zone), 68u);
  EXPECT_EQ(offsetof(Header, boot_id), 128u);
  EXPECT_EQ(offsetof(Header, free_counts), 320u);
  const Layout at = layout_of(10, 100);
  EXPECT_EQ(at.registry, 4096u);
  EXPECT_EQ(at.participants, 4096u + 4096u * 128u);
  EXPECT_EQ(at.maps, at.participants + 256u * 13'504u);
  EXPECT_EQ(at.pages % 4096, 0u);
  EXPECT_GE(at.pages, at.maps + (2u + kClasses - 1) * 16) << "100 lines are two units of the first map";
  EXPECT_EQ(at.arena, at.pages + 10 * 4096);
  EXPECT_GE(at.bytes, at.arena + 100 * 64);
}

// With any combination of keys, arena and memory: not a byte too many, and no space left for another page or line.
TEST(Layout, FitsIntoTheGivenMemory) {
  const auto bytes_of = [](std::uint64_t pages, std::uint64_t lines) { return layout_of(pages, lines).bytes; };
  for (const std::uint64_t memory : {std::uint64_t{6'000'000}, std::uint64_t{100'000'001}, std::uint64_t{3} << 30}) {
    const Geometry both = fit_into(memory, 0, 0).value();
    EXPECT_LE(bytes_of(both.pages, both.arena_lines), memory);
    EXPECT_GT(bytes_of(both.pages + 1, both.arena_lines + kKeysInPage), memory);
    EXPECT_NEAR(static_cast<double>(both.arena_lines * sizeof(Line)), 32.0 * static_cast<double>(keys_of(both.pages)),
                32.0 * kKeysInPage + 64.0 * 1024);
    const Geometry keys = fit_into(memory, 1'000, 0).value();
    EXPECT_EQ(keys.pages, geometry_for(1'000, 0)->pages);
    EXPECT_LE(bytes_of(keys.pages, keys.arena_lines), memory);
    EXPECT_GT(bytes_of(keys.pages, keys.arena_lines + 4096 / sizeof(Line)), memory);
    const Geometry arena = fit_into(memory, 0, 1 << 20).value();
    EXPECT_EQ(arena.arena_lines, (1u << 20) / sizeof(Line));
    EXPECT_LE(bytes_of(arena.pages, arena.arena_lines), memory);
    EXPECT_GT(bytes_of(arena.pages + 1, arena.arena_lines), memory);
  }
  EXPECT_EQ(fit_into(1'000, 0, 0).error().message,
            "1000 bytes are too few: the minimum is " + std::to_string(bytes_of(1, 1024)));
  EXPECT_FALSE(fit_into(4'000'000, 1'000'000, 0));
  EXPECT_FALSE(fit_into(std::uint64_t{1} << 40, UINT64_MAX, 0)) << "more keys than can be numbered";
  EXPECT_FALSE(fit_into(std::uint64_t{1} << 30, 1'000, 1 << 20)) << "all three";
}

TEST(Layout, NamesPagesAndHomesInRange) {
  std::mt19937_64 dice(test::base_seed());
  std::vector<char> none(1);
  for (const auto& [pages, base] : {std::pair{1u, 1u}, {7u, 7u}, {5'291u, 5'291u}, {10'000u, 1'000u}, {300u, 1'000u}}) {
    const Region region(none.data(), pages, base, 16);
    std::vector<std::uint64_t> hits(pages);
    for (int i = 0; i < 200'000; ++i) {
      const std::uint64_t place = dice(), name = dice() & kNameMask;
      const std::uint64_t page = region.page_of(place, name);
      ASSERT_LT(page, pages);
      ASSERT_LT(home_line(name), kLines);
      ++hits[page];
    }
    if (pages > 400) continue;
    for (const std::uint64_t hit : hits) EXPECT_GT(hit, 200'000 / pages / 2) << "evenly";
  }
}

TEST(Layout, FindsTheNewPageOfAKeyWithoutItsHash) {
  std::mt19937_64 dice(test::base_seed());
  std::vector<char> none(1);
  const Region before(none.data(), 1'000, 1'000, 16), after(none.data(), 3'700, 1'000, 16);
  for (int i = 0; i < 100'000; ++i) {
    const std::uint64_t place = dice(), name = dice() & kNameMask;
    ASSERT_EQ(after.page_of_base(before.page_of(place, name), name), after.page_of(place, name));
  }
}

}  // namespace
}  // namespace weir::table::layout_test
