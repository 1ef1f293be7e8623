// Tests that a change survives the round trip through its line, and that a line with any damage is refused.
#include "control/change.h"

#include <gtest/gtest.h>

namespace weir::control {
namespace {

Change sample() {
  return {.id = 7,
          .at = Micros{1'800'000'000'000'000},
          .by = {.who = "alice", .from = "127.0.0.1", .reason = "incident \"12\"\n<b>"},
          .kind = ChangeKind::mode,
          .what = "rule login: off",
          .until = Micros{1'800'000'600'000'000},
          .undoes = 0,
          .rule = "login",
          .value = "off",
          .text = "rules:\n  - {name: ü}\n"};
}

TEST(Change, IsUnchangedAfterWritingAndParsingItsLine) {
  std::string line = to_line(sample());
  ASSERT_TRUE(line.ends_with("\"}\n"));
  line.pop_back();
  EXPECT_EQ(line.find('\n'), line.npos);
  const auto back = parse_line(line);
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(*back, sample());
}

TEST(Change, LinkDependsOnAllEarlierChanges) {
  Change first = sample(), second = sample();
  second.id = 8;
  first.link = link_of(nullptr, first);
  second.link = link_of(&first, second);
  std::string line = to_line(second);
  line.pop_back();
  const auto back = parse_line(line);
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(*back, second);
  EXPECT_EQ(link_of(&first, second), second.link) << "the change's own old link is not part of its link";
  Change other = first;
  other.link = link_of(&second, other);
  EXPECT_NE(link_of(&other, second), second.link);
  EXPECT_EQ(to_line(sample()).find("link"), std::string::npos) << "the line is the same as before links existed";
}

TEST(Change, IsRefusedIfAnyBitOfItsLineIsFlipped) {
  std::string line = to_line(sample());
  line.pop_back();
  for (std::size_t i = 0; i < line.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string other = line;
      other[i] = static_cast<char>(other[i] ^ 1 << bit);
      EXPECT_FALSE(parse_line(other)) << i << ' ' << bit;
    }
  }
}

TEST(Change, IsRefusedIfItsLineIsTruncated) {
  const std::string line = to_line(sample());
  for (std::size_t size = 0; size + 1 < line.size(); ++size) EXPECT_FALSE(parse_line(line.substr(0, size))) << size;
}

}  // namespace
}  // namespace weir::control
