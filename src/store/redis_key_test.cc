// The names of keys inside Redis, which are a format: servers of two versions share them.

#include "store/redis_key.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace weir {
namespace {

std::string name_of(char mark, std::string_view subject, std::string_view key) {
  std::string name;
  append_redis_key(name, "weir:", mark, subject, key);
  return name;
}

TEST(RedisKey, StaysWhatItIs) {
  EXPECT_EQ(name_of('t', "user:42", "user:42"), "weir:1t{062d}user:42");
  EXPECT_EQ(name_of('s', "", "x"), "weir:1s{19bf}x");
  EXPECT_EQ(name_of('f', "a", "}{"), "weir:1f{3912}}{") << "braces of a key come behind our own";
}

TEST(RedisKey, HasALetterForEachAlgorithm) {
  std::set<char> marks{kTicketMark};
  for (const Algorithm algorithm : kAlgorithms) marks.insert(redis_mark(algorithm));
  EXPECT_EQ(marks.size(), std::size(kAlgorithms) + 1);
}

TEST(RedisKey, SpreadsSubjects) {
  std::set<std::uint32_t> tags;
  for (int i = 0; i < 10'000; ++i) tags.insert(redis_tag("user:" + std::to_string(i)));
  EXPECT_GT(tags.size(), 7'000u);
}

}  // namespace
}  // namespace weir
