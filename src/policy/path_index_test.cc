// Tests that the index finds what a scan of all patterns finds, however they overlap, and that long paths are fast.
#include "policy/path_index.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <unordered_map>

#include "seed.h"

namespace weir::policy {
namespace {

using Hits = std::vector<PathHit>;

PathPattern indexed(std::string_view text) {
  auto parsed = PathPattern::parse(text, PathCase::folded);
  EXPECT_TRUE(parsed) << text << ": " << parsed.error().message;
  return parsed ? *parsed : *PathPattern::parse("/did-not-parse", PathCase::folded);
}

PathIndex index_of(const std::vector<std::string>& texts) {  // the id of each pattern is ten times its index
  PathIndex index;
  for (std::uint32_t i = 0; i < texts.size(); ++i) index.add(indexed(texts[i]), 10 * i);
  index.finish();
  return index;
}

Hits found(const PathIndex& index, std::string_view path) {
  PathHits hits;
  index.find(path, hits);
  Hits sorted(hits.begin(), hits.end());
  std::ranges::sort(sorted);
  return sorted;
}

TEST(PathIndex, FindsNothingInAnEmptyIndex) {
  EXPECT_EQ(found(index_of({}), "/a"), Hits{});
  EXPECT_EQ(index_of({}).size(), 0u);
}

TEST(PathIndex, ReturnsIdAndPatternOfEachHit) {
  const PathIndex index = index_of({"/a", "/a/b", "/*", "/a/**", "/**", "/", "/{x}/b", "/a*", "/**/b"});
  EXPECT_EQ(found(index, "/"), (Hits{{40, 4}, {50, 5}}));
  EXPECT_EQ(found(index, "/a"), (Hits{{0, 0}, {20, 2}, {30, 3}, {40, 4}, {70, 7}}));
  EXPECT_EQ(found(index, "/a/b"), (Hits{{10, 1}, {30, 3}, {40, 4}, {60, 6}, {80, 8}}));
  EXPECT_EQ(found(index, "/a/b/c"), (Hits{{30, 3}, {40, 4}}));
  EXPECT_EQ(index.size(), 9u);
}

TEST(PathIndex, FindsNothingForAnUnknownPath) { EXPECT_EQ(found(index_of({"/**", "/", "/*"}), ""), Hits{}); }

TEST(PathIndex, KeepsEveryIdOfOnePatternAndEveryPatternOfOneId) {
  PathIndex index;
  for (const std::string_view text : {"/a", "/a", "/*", "/{x}", "/**/a/**", "/**/a/**"}) index.add(indexed(text), 7);
  index.add(indexed("/a"), 8);
  index.finish();
  EXPECT_EQ(found(index, "/a"), (Hits{{7, 0}, {7, 1}, {7, 2}, {7, 3}, {7, 4}, {7, 5}, {8, 6}}));
}

TEST(PathIndex, AppendsToEarlierHits) {
  PathHits hits;
  const PathIndex index = index_of({"/a", "/b"});
  index.find("/a", hits);
  index.find("/b", hits);
  EXPECT_EQ(Hits(hits.begin(), hits.end()), (Hits{{0, 0}, {10, 1}}));
}

TEST(PathIndex, DoesNotLetHeadAndTailOverlap) {
  const PathIndex index = index_of({"/a/**/a", "/a/b/**/b/c", "/a/**/a/**/a"});
  EXPECT_EQ(found(index, "/a"), Hits{});
  EXPECT_EQ(found(index, "/a/a"), (Hits{{0, 0}}));
  EXPECT_EQ(found(index, "/a/b/c"), Hits{});
  EXPECT_EQ(found(index, "/a/b/b/c"), (Hits{{10, 1}}));
  EXPECT_EQ(found(index, "/a/a/a"), (Hits{{0, 0}, {20, 2}}));
}

TEST(PathHits, StoresMoreHitsThanItsInlineCapacity) {
  PathHits hits;
  for (const std::uint32_t count : {3u, 64u, 65u, 300u, 64u, 66u}) {
    hits.clear();
    EXPECT_TRUE(hits.empty());
    for (std::uint32_t i = 0; i < count; ++i) hits.add({i, count});
    ASSERT_EQ(hits.size(), count);
    ASSERT_EQ(hits.end() - hits.begin(), count);
    for (std::uint32_t i = 0; i < count; ++i) ASSERT_EQ(hits[i], (PathHit{i, count}));
  }
}

// Random paths over a tiny alphabet, so that patterns overlap in every way.
std::string random_path(std::mt19937_64& random, const std::vector<std::string>& words, std::int64_t segments_max) {
  std::string path;
  for (auto count = test::pick(random, 0, segments_max); count > 0; --count) {
    path += "/" + words[static_cast<std::size_t>(test::pick(random, 0, std::ssize(words) - 1))];
  }
  return path.empty() ? "/" : path;
}

TEST(PathIndex, AgreesWithAScanOfAllPatterns) {
  auto random = test::seeded();
  const std::vector<std::string> words = {"a", "b", "ab", "a", "b", "*", "a*", "*b", "a*b", "**", "**"};
  const std::vector<std::string> plain = {"a", "b", "ab", "abb", "c"};
  std::size_t hits = 0;
  for (int round = 0; round < 300; ++round) {
    PathIndex index;
    std::vector<std::pair<PathPattern, std::uint32_t>> scanned;
    for (auto count = test::pick(random, 0, 120); count > 0;) {
      const auto parsed = PathPattern::parse(random_path(random, words, 6), PathCase::folded);
      if (!parsed) continue;  // more `**` than allowed
      const auto id = static_cast<std::uint32_t>(test::pick(random, 0, 9));
      index.add(*parsed, id);
      scanned.emplace_back(*parsed, id);
      --count;
    }
    index.finish();
    for (int i = 0; i < 100; ++i) {
      const std::string path = random_path(random, plain, 8);
      Hits expected;
      for (std::uint32_t k = 0; k < scanned.size(); ++k) {
        if (scanned[k].first.matches(path)) expected.push_back({scanned[k].second, k});
      }
      std::ranges::sort(expected);
      ASSERT_EQ(found(index, path), expected) << path;
      hits += expected.size();
    }
  }
  EXPECT_GT(hits, 10'000u);
}

TEST(PathIndex, FindsEachOfManyExactPathsOfAllLengths) {
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < 3000; ++i) texts.push_back(std::string("/").append(i % 60, 'x') + std::to_string(i));
  const PathIndex index = index_of(texts);
  for (std::uint32_t i = 0; i < texts.size(); ++i) {
    ASSERT_EQ(found(index, texts[i]), (Hits{{10 * i, i}})) << texts[i];
    ASSERT_EQ(found(index, texts[i] + "z"), Hits{});
  }
}

TEST(PathIndex, DistinguishesPathsOfTheSameHash) {
  std::unordered_map<std::uint64_t, std::string> seen;  // by the bits that a table with one path compares
  int pairs = 0;
  for (int i = 0; i < 400'000; ++i) {
    const std::string path = "/p" + std::to_string(i);
    const std::uint64_t hash = path_hash(1, path);
    const auto [other, is_new] = seen.try_emplace((hash & 0xffffffff'00000001), path);
    if (is_new) continue;
    PathIndex index;
    index.add(indexed(path), 7);
    index.finish(1);
    EXPECT_EQ(found(index, path), (Hits{{7, 0}}));
    EXPECT_EQ(found(index, other->second), Hits{}) << path;
    ++pairs;
  }
  EXPECT_GT(pairs, 0);
}

// A walk that searched the tree at every segment, or backtracked, would not finish in reasonable time.
TEST(PathIndex, IsFastForALongPath) {
  std::vector<std::string> texts;
  for (int i = 0; i < 1000; ++i) {
    const std::string n = std::to_string(i);
    texts.insert(texts.end(),
                 {"/**/a" + n, "/a/**/a/b" + n, "/*/*/a*" + n + "/**", "/a" + n + "/**", "/a/*/**/a/" + n});
  }
  texts.push_back("/**/b/**/a/**/a");
  const PathIndex index = index_of(texts);
  std::string path;
  for (int i = 0; i < 4000; ++i) path += "/a";
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(found(index, path), Hits{});
}

}  // namespace
}  // namespace weir::policy
