// The bytes of a table: nothing overlaps, nothing moves, and a resized table finds its keys by what slots store.
#include "table/layout.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "seed.h"

namespace weir::table {
namespace {

TEST(Layout, StaysAsItIsInEveryFileOfThisVersion) {
  EXPECT_EQ(kVersion, 1u) << "a new version brings new numbers here, and a way to migrate";
  EXPECT_EQ(sizeof(Page), 4096u);
  EXPECT_EQ(sizeof(Participant), 13'504u);
  EXPECT_EQ(sizeof(RegistryEntry), 128u);
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
}  // namespace weir::table
