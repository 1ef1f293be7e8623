// The sketch against exact counts: random streams with a few heavy keys among many.
#include "usage/space_saving.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>

#include "seed.h"

namespace weir::usage::space_saving_test {
namespace {

constexpr std::size_t kPlaces = 32;
constexpr std::uint64_t kSecret = 7;
using Sketch = SpaceSaving<kPlaces>;

void add(Sketch& sketch, const std::string& key, std::uint64_t weight = 1, std::uint32_t group = 0) {
  sketch.add(group, key, mark_of(key, kSecret), weight);
}

std::map<std::string, Sketch::Entry> entries(const Sketch& sketch) {
  std::map<std::string, Sketch::Entry> out;
  for (std::size_t i = 0; i < sketch.size(); ++i) out.emplace(std::string(sketch[i].key), sketch[i]);
  return out;
}

TEST(SpaceSaving, IsExactWhileThereIsRoom) {
  Sketch sketch;
  for (int round = 0; round < 5; ++round) {
    for (std::size_t i = 0; i < kPlaces; ++i) add(sketch, "key " + std::to_string(i), i + 1);
  }
  const auto found = entries(sketch);
  ASSERT_EQ(found.size(), kPlaces);
  for (std::size_t i = 0; i < kPlaces; ++i) {
    EXPECT_EQ(found.at("key " + std::to_string(i)).count, 5 * (i + 1));
    EXPECT_EQ(found.at("key " + std::to_string(i)).error, 0U);
  }
}

// All guarantees of the head comment, on streams of different skew and with a sampler's weights.
TEST(SpaceSaving, KeepsItsBounds) {
  std::mt19937_64 random = test::seeded();
  for (int stream = 0; stream < 60; ++stream) {
    Sketch sketch;
    std::map<std::string, std::uint64_t> truth;
    std::uint64_t all = 0;
    const std::uint64_t keys = 1 + random() % 2'000, heavy = random() % 8, adds = random() % 20'000;
    for (std::uint64_t i = 0; i < adds; ++i) {
      const bool is_heavy = heavy > 0 && random() % 3 == 0;
      const std::string key = std::to_string(is_heavy ? random() % heavy : random() % keys);
      const std::uint64_t weight = random() % 10 == 0 ? 16 : 1;
      add(sketch, key, weight);
      truth[key] += weight;
      all += weight;
    }
    const auto found = entries(sketch);
    for (const auto& [key, entry] : found) {
      ASSERT_LE(truth[key], entry.count);
      ASSERT_LE(entry.count - entry.error, truth[key]);
      ASSERT_LE(entry.error, all / kPlaces);
    }
    for (const auto& [key, count] : truth) {
      if (found.count(key) > 0) continue;
      ASSERT_LE(count, sketch.floor());
      ASSERT_LE(count, all / kPlaces) << "a heavy key is not there";
    }
  }
}

TEST(SpaceSaving, DistinguishesGroupsAndLongKeys) {
  Sketch sketch;
  const std::string start(200, 'x');
  add(sketch, start + 'a', 3);
  add(sketch, start + 'b', 5);
  add(sketch, "same", 1, 1);
  add(sketch, "same", 1, 2);
  add(sketch, "same", 1, 2);
  ASSERT_EQ(sketch.size(), 4U);
  EXPECT_EQ(sketch[0].count, 3U);
  EXPECT_EQ(sketch[1].count, 5U);
  EXPECT_TRUE(sketch[1].is_cut);
  EXPECT_EQ(sketch[1].key, start.substr(0, Sketch::kKeyBytesMax));
  EXPECT_EQ(sketch[2].count, 1U);
  EXPECT_EQ(sketch[3].count, 2U);
  EXPECT_EQ(sketch[3].group, 2U);
}

TEST(SpaceSaving, StartsAgainAfterClear) {
  Sketch sketch;
  for (int i = 0; i < 100; ++i) add(sketch, std::to_string(i));
  EXPECT_GT(sketch.floor(), 0U);
  sketch.clear();
  EXPECT_EQ(sketch.size(), 0U);
  EXPECT_EQ(sketch.floor(), 0U);
  add(sketch, "a");
  EXPECT_EQ(sketch[0].count, 1U);
  EXPECT_EQ(sketch[0].error, 0U);
}

TEST(MarkOf, DependsOnEveryByteAndOnTheSecret) {
  const std::string key = "0123456789abcdef012";
  for (std::size_t i = 0; i < key.size(); ++i) {
    std::string other = key;
    other[i] ^= 1;
    EXPECT_NE(mark_of(key, 1), mark_of(other, 1));
  }
  EXPECT_NE(mark_of(key, 1), mark_of(key, 2));
  EXPECT_NE(mark_of("", 1), mark_of(std::string(1, '\0'), 1));
  EXPECT_NE(mark_of("a", 1), mark_of(std::string("a\0", 2), 1));
}

}  // namespace
}  // namespace weir::usage::space_saving_test
