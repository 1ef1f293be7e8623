// Tests frames sent, byte by byte; frames received, whole and one byte at a time; windows, settings and pings.
#include <gtest/gtest.h>

#include "load_generator/exchange.h"

namespace weir::load_generator {
namespace {

using namespace std::string_literals;
using Numbers = std::vector<std::uint64_t>;

std::string frame(int type, int flags, std::uint32_t stream, const std::string& payload) {
  std::string out = "\0\0"s;
  out += static_cast<char>(payload.size());
  out += static_cast<char>(type);
  out += static_cast<char>(flags);
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(stream >> shift);
  return out + payload;
}

std::string answer(std::uint32_t stream, const std::string& code, const std::string& status = "0") {
  const std::string size(1, static_cast<char>(status.size()));
  return frame(1, 4, stream, "\x88"s) + frame(0, 0, stream, "\0\0\0\0\x02\x08"s + code) +
         frame(1, 5, stream, "\0\x0bgrpc-status"s + size + status);
}

class GrpcExchangeTest : public testing::TestWithParam<std::size_t> {
 protected:
  GrpcExchangeTest() {
    exchange_->begin(begun_);
    for (int i = 0; i < 4; ++i) exchange_->ask(asked_, keys_);
  }
  Result<void> read(std::string_view bytes) {
    while (!bytes.empty()) {
      if (auto taken = exchange_->read(bytes.substr(0, GetParam()), answers_, out_); !taken) return taken;
      bytes.remove_prefix(std::min(GetParam(), bytes.size()));
    }
    return {};
  }

  GrpcTemplate call_{"h:1", rls_template({.domain = "edge", .entries = {{"remote_address", "10.0.0.1"}}})};
  Keys keys_{{.count = 10, .order = Keys::Order::in_turn}};
  std::unique_ptr<Exchange> exchange_ = make_grpc_exchange(call_);
  std::string begun_, asked_, out_;
  Answers answers_;
};
INSTANTIATE_TEST_SUITE_P(InPieces, GrpcExchangeTest, testing::Values(1, 4, 9, 10'000));

TEST(RlsTemplate, IsTheProtobufMessage) {
  const Template made = rls_template({.domain = "edge", .entries = {{"remote_address", "10.0.0.1"}}});
  EXPECT_EQ(made.bytes(), "\0\0\0\0\x24\x0a\x04"s + "edge\x12\x1c\x0a\x1a\x0a\x0eremote_address\x12\x08" + "10.0.0.1");
}

TEST(RlsTemplate, CountsTheBytesOfTheFilledKey) {
  Keys keys({.count = 10, .order = Keys::Order::in_turn, .first = 7});
  std::string out;
  rls_template({.domain = "d", .entries = {{"k", "{n}"}}}).append_to(out, keys);
  EXPECT_EQ(out, "\0\0\0\0\x17\x0a\x01"s + "d\x12\x12\x0a\x10\x0a\x01k\x12\x0b" + "00000000007");
}

TEST_P(GrpcExchangeTest, BeginsWithThePrefaceAndOpenWindows) {
  EXPECT_EQ(begun_, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"s +
                        frame(4, 0, 0, "\0\x01\0\0\0\0\0\x02\0\0\0\0\0\x04\x7f\xff\xff\xff"s) +
                        frame(8, 0, 0, "\x7f\xff\0\0"s));
}

TEST_P(GrpcExchangeTest, SendsTwoFramesWithAShorterHeaderAfterTheFirst) {
  EXPECT_EQ(asked_.substr(0, 9), frame(1, 4, 1, "").substr(0, 2) + "\x64" + frame(1, 4, 1, "").substr(3));
  const std::string later = frame(1, 4, 7, "\x83\x86\xc1\xc0\xbf\xbe"s) + frame(0, 1, 7, call_.message.bytes());
  EXPECT_EQ(asked_.substr(asked_.size() - later.size()), later);
}

TEST_P(GrpcExchangeTest, CountsAnswersByTheirTrailersInAnyOrder) {
  ASSERT_TRUE(read(answer(3, "\x01") + answer(1, "\x02") + answer(7, "\x01")));
  EXPECT_EQ(answers_.answered, (Numbers{1, 0, 3}));
  EXPECT_EQ(answers_.denied, 1U);
  EXPECT_EQ(answers_.errors, 0U);
}

TEST_P(GrpcExchangeTest, CountsOtherStatusesAndResetsAsErrors) {
  ASSERT_TRUE(read(answer(1, "\x01", "14") + frame(3, 0, 3, "\0\0\0\x07"s) + answer(5, "\x01")));
  EXPECT_EQ(answers_.answered, (Numbers{0, 1, 2}));
  EXPECT_EQ(answers_.errors, 2U);
  EXPECT_EQ(answers_.first_error, "grpc-status 14");
}

TEST_P(GrpcExchangeTest, ReadsPaddedAndContinuedHeaders) {
  ASSERT_TRUE(read(frame(1, 9, 1, "\x02\0\x0bgrpc\0\0"s) + frame(9, 4, 1, "-status\x01\x30"s)));
  EXPECT_EQ(answers_.answered, Numbers{0});
  EXPECT_EQ(answers_.errors, 0U);
}

TEST_P(GrpcExchangeTest, AnswersPingsAndSettings) {
  ASSERT_TRUE(read(frame(4, 0, 0, "\0\x05\0\0\x40\0"s) + frame(6, 0, 0, "12345678") + frame(4, 1, 0, "") +
                   frame(6, 1, 0, "12345678")));
  EXPECT_EQ(out_, frame(4, 1, 0, "") + frame(6, 1, 0, "12345678"));
}

TEST_P(GrpcExchangeTest, SendsNoMoreThanThePeersMaximumOfStreams) {
  EXPECT_TRUE(exchange_->may_ask());
  ASSERT_TRUE(read(frame(4, 0, 0, "\0\x03\0\0\0\x04"s)));
  EXPECT_FALSE(exchange_->may_ask());
  ASSERT_TRUE(read(answer(1, "\x01")));
  EXPECT_TRUE(exchange_->may_ask());
}

TEST_P(GrpcExchangeTest, SendsNoMoreThanTheWindowAllows) {
  std::uint32_t stream = 9;
  for (; exchange_->may_ask(); stream += 2) exchange_->ask(asked_, keys_);
  EXPECT_EQ(stream / 2, 65'535 / call_.message.bytes().size());
  ASSERT_TRUE(read(answer(1, "\x01")));
  EXPECT_FALSE(exchange_->may_ask());
  ASSERT_TRUE(read(frame(8, 0, 3, "\0\0\x01\0"s)));  // of a stream whose window was large enough
  EXPECT_FALSE(exchange_->may_ask());
  ASSERT_TRUE(read(frame(8, 0, 0, "\0\0\x01\0"s)));
  EXPECT_TRUE(exchange_->may_ask());
}

TEST_P(GrpcExchangeTest, SendsLiteralFieldsToAPeerWithoutTable) {
  ASSERT_TRUE(read(frame(4, 0, 0, "\0\x01\0\0\0\0"s)));
  std::string one, other;
  exchange_->ask(one, keys_);
  exchange_->ask(other, keys_);
  EXPECT_EQ(one.substr(9, 3), "\x20\x83\x86");
  EXPECT_EQ(other.substr(9, 3), "\x83\x86\x04");
  EXPECT_EQ(one.size(), other.size() + 1);
}

TEST_P(GrpcExchangeTest, FailsAfterAGoaway) {
  const auto left = read(frame(7, 0, 0, "\0\0\0\0\0\0\0\x0b"s + "too_many_pings"));
  ASSERT_FALSE(left);
  EXPECT_NE(left.error().message.find("HTTP/2 error 11: 'too_many_pings'"), std::string::npos);
}

TEST_P(GrpcExchangeTest, RefusesOtherProtocols) { EXPECT_FALSE(read("HTTP/1.1 400 Bad Request\r\n\r\n")); }

TEST_P(GrpcExchangeTest, RefusesAnswersWithoutARequest) { EXPECT_FALSE(read(answer(9, "\x01"))); }

}  // namespace
}  // namespace weir::load_generator
