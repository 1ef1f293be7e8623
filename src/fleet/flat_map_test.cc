// Random changes compared with std::map, with hashes that spread well, take few values, or lie at the end of the
// array.
#include "fleet/flat_map.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>

#include "seed.h"

namespace weir::fleet::flat_map_test {
namespace {

struct Spread {
  std::uint64_t operator()(int key) const { return static_cast<std::uint64_t>(key) * 0x9e3779b97f4a7c15u; }
};
struct Few {
  std::uint64_t operator()(int key) const { return static_cast<std::uint64_t>(key % 3) << 32; }
};
struct AtTheEnd {  // of the array, so that entries wrap around to its start
  std::uint64_t operator()(int key) const { return ~(static_cast<std::uint64_t>(key % 2) << 32); }
};

template <class Hash>
class FlatMapTest : public ::testing::Test {};
using Hashes = ::testing::Types<Spread, Few, AtTheEnd>;
TYPED_TEST_SUITE(FlatMapTest, Hashes);

TYPED_TEST(FlatMapTest, ContainsWhatAStdMapContains) {
  const std::uint64_t seed = test::base_seed();
  std::mt19937_64 dice(seed);
  FlatMap<int, std::string, TypeParam> map;
  std::map<int, std::string> expected;
  for (int i = 0; i < 20'000; ++i) {
    SCOPED_TRACE("seed " + std::to_string(seed) + ", change " + std::to_string(i));
    const int key = static_cast<int>(dice() % 120);
    const std::string value = std::to_string(i);
    if (dice() % 1'000 == 0) {
      map.erase_if([](const auto& entry) { return entry.key % 5 == 0; });
      std::erase_if(expected, [](const auto& entry) { return entry.first % 5 == 0; });
    } else if (dice() % 2 == 0) {
      const auto [known, is_new] = map.insert(key, value);
      ASSERT_EQ(is_new, expected.try_emplace(key, value).second);
      ASSERT_EQ(*known, expected[key]);
    } else {
      ASSERT_EQ(map.erase(key), expected.erase(key) == 1);
    }
    ASSERT_EQ(map.size(), expected.size());
    const int asked = static_cast<int>(dice() % 120);
    const std::string* const found = map.find(asked);
    ASSERT_EQ(found != nullptr, expected.contains(asked));
    if (found != nullptr) {
      ASSERT_EQ(*found, expected[asked]);
    }
  }
  std::map<int, std::string> entries;
  for (const auto& [key, value] : map.entries()) entries[key] = value;
  EXPECT_EQ(entries, expected);
}

TYPED_TEST(FlatMapTest, LeavesEntriesWhereTheyAreWhileOthersAreInserted) {
  FlatMap<int, std::string, TypeParam> map;
  const std::string* const first = map.insert(0, "first").first;
  for (int i = 1; i < 1'000; ++i) map.insert(i, "x");
  EXPECT_EQ(map.find(0), first);
  EXPECT_EQ(*first, "first");
}

}  // namespace
}  // namespace weir::fleet::flat_map_test
