// Compares the fast path with the ReplyParser: both read the same values. The fast path refuses all other replies.
#include "resp/integers.h"

#include <gtest/gtest.h>

#include <string>

#include "resp/reply.h"
#include "seed.h"

namespace weir::resp {
namespace {

using Lean = IntegersReply::Status;

TEST(Integers, AreReadAloneInAnArrayAndInArraysOfOne) {
  std::vector<std::int64_t> integers;
  EXPECT_EQ(read_integers(":42\r\n:7\r\n", integers).consumed, 5u);
  EXPECT_EQ(integers, (std::vector<std::int64_t>{42}));
  EXPECT_EQ(read_integers("*3\r\n:1\r\n:-2\r\n:9223372036854775807\r\n", integers).status, Lean::done);
  EXPECT_EQ(integers, (std::vector<std::int64_t>{1, -2, INT64_MAX}));
  EXPECT_EQ(read_integers("*3\r\n*2\r\n:1\r\n:2\r\n:3\r\n*0\r\n", integers).status, Lean::done);
  EXPECT_EQ(integers, (std::vector<std::int64_t>{1, 2, 3}));
  EXPECT_EQ(read_integers("*0\r\n", integers).status, Lean::done);
  EXPECT_TRUE(integers.empty());
}

TEST(Integers, LeaveEverythingElseToTheParser) {
  std::vector<std::int64_t> integers;
  for (const char* text : {"+OK\r\n", "-ERR x\r\n", "$1\r\n1\r\n", "_\r\n", "*1\r\n+1\r\n", "*1\r\n*1\r\n*1\r\n:1\r\n",
                           "*-1\r\n", ">1\r\n:1\r\n", ":01\r\n", ":+1\r\n", ":-0\r\n", ":1x\r\n", ":\r\n\r\n",
                           ":9223372036854775808\r\n", "*4097\r\n", "*1\r\n$1\r\n1\r\n"}) {
    EXPECT_EQ(read_integers(text, integers).status, Lean::other) << text;
  }
  std::string many = "*4096\r\n";
  for (int i = 0; i < 4'096; ++i) many += "*2\r\n:1\r\n:2\r\n";
  EXPECT_EQ(read_integers(many, integers).status, Lean::other);
}

void flatten(const Value& value, std::vector<std::int64_t>& out) {
  if (value.type == Type::integer) out.push_back(value.integer);
  for (const Value& item : value.items) flatten(item, out);
}

TEST(Integers, EqualThoseOfTheParserHoweverTheInputIsCut) {
  auto random = test::seeded();
  const auto number = [&] {
    const std::int64_t digits = test::pick(random, 0, 62);
    return std::to_string(test::pick(random, -(std::int64_t{1} << digits), std::int64_t{1} << digits));
  };
  for (int round = 0; round < 2'000; ++round) {
    const std::int64_t count = test::pick(random, 0, 6);
    std::string text = "*" + std::to_string(count) + "\r\n";
    for (std::int64_t i = 0; i < count; ++i) {
      if (test::pick(random, 0, 3) == 0) text += "*1\r\n";
      text += ":" + number() + "\r\n";
    }
    std::vector<std::int64_t> integers, expected;
    flatten(ReplyParser().parse(text).value, expected);
    for (std::size_t size = 0; size < text.size(); ++size) {
      ASSERT_EQ(read_integers(std::string_view(text).substr(0, size), integers).status, Lean::need_more)
          << text << size;
    }
    const IntegersReply whole = read_integers(text + ":1\r\n", integers);
    ASSERT_EQ(whole.status, Lean::done);
    EXPECT_EQ(whole.consumed, text.size());
    EXPECT_EQ(integers, expected);
  }
}

}  // namespace
}  // namespace weir::resp
