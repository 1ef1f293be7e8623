// Tests answers of HTTP servers, whole and one byte at a time.
#include <gtest/gtest.h>

#include "load_generator/exchange.h"

namespace weir::load_generator {
namespace {

using Numbers = std::vector<std::uint64_t>;

const Template& get() {
  static const Template made = http_template({.host = "h"});
  return made;
}

Result<Answers> read(std::string_view bytes, std::size_t piece) {
  const auto exchange = make_http_exchange(get());
  Answers answers;
  std::string out;
  while (!bytes.empty()) {
    if (const auto taken = exchange->read(bytes.substr(0, piece), answers, out); !taken) return fail(taken.error());
    bytes.remove_prefix(std::min(piece, bytes.size()));
  }
  return answers;
}

class HttpAnswers : public testing::TestWithParam<std::size_t> {};
INSTANTIATE_TEST_SUITE_P(InPieces, HttpAnswers, testing::Values(1, 2, 5, 14, 15, 16, 10'000));

constexpr std::string_view kYes = "HTTP/1.1 200 OK\r\nServer: x\r\nCONTENT-LENGTH: 5\r\n\r\nhello";
constexpr std::string_view kNoContent = "HTTP/1.1 204 No Content\r\nServer: x\r\n\r\n";

TEST_P(HttpAnswers, AreCountedByTheirLength) {
  const std::string bytes = std::string(kYes) + std::string(kNoContent) + std::string(kYes);
  EXPECT_EQ(read(bytes, GetParam())->answered, (Numbers{0, 1, 2}));
  EXPECT_EQ(read(bytes.substr(0, bytes.size() - 1), GetParam())->answered, (Numbers{0, 1}));
}

TEST(HttpExchange, ReadsManyAnswersAfterASplitHeader) {
  std::string bytes;
  for (int i = 0; i < 1'000; ++i) bytes += kYes;
  const auto exchange = make_http_exchange(get());
  Answers answers;
  std::string out;
  ASSERT_TRUE(exchange->read(bytes.substr(0, 10), answers, out));
  ASSERT_TRUE(exchange->read(bytes.substr(10), answers, out));
  EXPECT_EQ(answers.answered.size(), 1'000U);
}

TEST_P(HttpAnswers, WithStatus429Deny) {
  const auto answers = read(
      "HTTP/1.1 429 Too Many Requests\r\nContent-Length: 0\r\n\r\n"
      "HTTP/1.1 429 Too Many Requests\r\nContent-Length: 19\r\n\r\n{ \"allowed\":false }",
      GetParam());
  EXPECT_EQ(answers->denied, 2U);
  EXPECT_EQ(answers->errors, 0U);
}

std::string answer(std::string_view body) {
  return "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + std::string(body);
}

TEST_P(HttpAnswers, OfBatchesDenyOnceForEachCheck) {
  const auto answers = read(answer("{\"answers\":[{\"allowed\":false},{\"allowed\":true},{\"allowed\":false}]}") +
                                answer("\"allowed\":") + answer("false"),
                            GetParam());
  ASSERT_TRUE(answers);
  EXPECT_EQ(answers->answered.size(), 3U);
  EXPECT_EQ(answers->denied, 2U);
}

TEST_P(HttpAnswers, OfAnyOtherStatusAreErrors) {
  const auto answers = read("HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nno", GetParam());
  EXPECT_EQ(answers->answered, Numbers{0});
  EXPECT_EQ(answers->errors, 1U);
  EXPECT_EQ(answers->first_error, "HTTP status 404");
}

TEST_P(HttpAnswers, MayComeAfterAContinue) {
  EXPECT_EQ(read("HTTP/1.1 100 Continue\r\n\r\n" + std::string(kYes), GetParam())->answered, Numbers{0});
}

TEST_P(HttpAnswers, WithoutLengthAreRefusedWithTheReason) {
  const auto answers = read("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", GetParam());
  ASSERT_FALSE(answers);
  EXPECT_NE(answers.error().message.find("no Content-Length"), std::string::npos);
}

TEST_P(HttpAnswers, OfAnotherProtocolAreRefused) {
  EXPECT_FALSE(read("-ERR unknown command\r\n\r\n", GetParam()));
  EXPECT_FALSE(read(std::string(40'000, 'x'), GetParam()));
}

}  // namespace
}  // namespace weir::load_generator
