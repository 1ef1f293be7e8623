// The names of keys inside Redis. They are a format: servers of different versions meet in one Redis.

#include "fleet/redis_key.h"

#include <gtest/gtest.h>

#include <set>

namespace weir::fleet {
namespace {

std::string name_of(char mark, std::string_view subject, std::string_view key) {
  std::string name;
  append_redis_key(name, "weir:", mark, subject, key);
  return name;
}

TEST(RedisKey, KeepsItsFormat) {
  EXPECT_EQ(name_of('t', "user:42", "user:42"), "weir:2t{062d}user:42");
  EXPECT_EQ(name_of('s', "", "x"), "weir:2s{19bf}x");
  EXPECT_EQ(name_of('f', "a", "}{"), "weir:2f{3912}}{") << "the braces of a key come after our own";
}

// tests/rule_slot_test.cc checks that the keys of rules conform to this.
TEST(RedisKey, FindsTheSubjectInAKey) {
  using namespace std::string_view_literals;
  EXPECT_EQ(subject_of("user:42"), "user:42");
  EXPECT_EQ(subject_of(""), "");
  EXPECT_EQ(subject_of("{user:42}/hour"), "user:42");
  EXPECT_EQ(subject_of("a{b}{c}"), "b");
  EXPECT_EQ(subject_of("a{}b"), "a{}b");
  EXPECT_EQ(subject_of("a{b"), "a{b");
  EXPECT_EQ(subject_of("\1\4rule\4user\2"
                       "42\4hour"sv),
            "42");
  EXPECT_EQ(subject_of("\1\4rule\6global\4hour"sv), "rule") << "one count for all requests";
  EXPECT_EQ(subject_of("\1\4rule\10identity\0\2"
                       "42"sv),
            "42");
  EXPECT_EQ(subject_of("\1\4rule\10identity\11\1x\2"
                       "42"sv),
            "42")
      << "an identity from a header";
  EXPECT_EQ(subject_of("\1\4rule\4user\11"
                       "42"sv),
            "\1\4rule\4user\11"
            "42"sv)
      << "it ends before the part does";
  EXPECT_EQ(subject_of("\1\4ru"sv), "\1\4ru"sv);
  EXPECT_EQ(subject_of("\4rule\6global\4hour"sv), "\4rule\6global\4hour"sv) << "a caller's key";
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
}  // namespace weir::fleet
