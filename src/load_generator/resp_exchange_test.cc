// Tests replies of every kind, whole and one byte at a time.
#include <gtest/gtest.h>

#include "load_generator/exchange.h"

namespace weir::load_generator {
namespace {

using Numbers = std::vector<std::uint64_t>;

const Template& ping() {
  static const Template made = resp_template("PING");
  return made;
}

// Reads all replies in pieces of `piece` bytes.
Answers replies(std::string_view bytes, std::size_t piece) {
  const auto exchange = make_resp_exchange(ping());
  Answers answers;
  std::string out;
  while (!bytes.empty()) {
    EXPECT_TRUE(exchange->read(bytes.substr(0, piece), answers, out));
    bytes.remove_prefix(std::min(piece, bytes.size()));
  }
  EXPECT_EQ(out, "");
  return answers;
}

class RespReplies : public testing::TestWithParam<std::size_t> {};
INSTANTIATE_TEST_SUITE_P(InPieces, RespReplies, testing::Values(1, 2, 3, 7, 1'000));

TEST_P(RespReplies, AreCountedWhateverTheirKind) {
  EXPECT_EQ(replies("+OK\r\n:7\r\n$3\r\na\r\n\r\n$-1\r\n*-1\r\n*0\r\n", GetParam()).answered,
            (Numbers{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(replies("*2\r\n*2\r\n:1\r\n$2\r\n:9\r\n+x\r\n_\r\n%1\r\n+k\r\n,1.5\r\n", GetParam()).answered,
            (Numbers{0, 1, 2}));
}

TEST_P(RespReplies, AreCountedOnlyWhenWhole) {
  EXPECT_EQ(replies("*5\r\n:0\r\n:16\r\n:15\r\n:-1\r\n:2", GetParam()).answered, Numbers{});
  EXPECT_EQ(replies("$5\r\nabcde", GetParam()).answered, Numbers{});
  EXPECT_EQ(replies("*5\r\n:0\r\n:16\r\n:15\r\n:-1\r\n:2\r\n", GetParam()).answered, Numbers{0});
}

TEST_P(RespReplies, DenyWhenTheirFirstIntegerIsOne) {
  const Answers answers =
      replies("*5\r\n:1\r\n:16\r\n:0\r\n:4\r\n:2\r\n*5\r\n:0\r\n:1\r\n:1\r\n:-1\r\n:1\r\n:1\r\n*2\r\n:-1\r\n:1\r\n",
              GetParam());
  EXPECT_EQ(answers.answered.size(), 4U);
  EXPECT_EQ(answers.denied, 1U);
}

TEST_P(RespReplies, ThatAreErrorsAreCountedAndTheFirstIsKept) {
  const Answers answers = replies("-ERR no such\r\n-ERR other\r\n+OK\r\n", GetParam());
  EXPECT_EQ(answers.answered.size(), 3U);
  EXPECT_EQ(answers.errors, 2U);
  EXPECT_EQ(answers.first_error, "ERR no such");
}

TEST(RespExchange, RefusesOtherProtocols) {
  const auto exchange = make_resp_exchange(ping());
  Answers answers;
  std::string out;
  EXPECT_FALSE(exchange->read("HTTP/1.1 400", answers, out));
}

}  // namespace
}  // namespace weir::load_generator
