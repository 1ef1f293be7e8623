// Tests frames split at every byte, timeouts in every unit, and error texts.
#include "protocol/grpc_message.h"

#include <gtest/gtest.h>

namespace weir::protocol {
namespace {

using State = GrpcMessage::State;

std::string framed(std::string_view payload) {
  std::string out;
  const std::size_t begin = begin_grpc_message(out);
  out += payload;
  end_grpc_message(out, begin);
  return out;
}

TEST(GrpcMessages, HaveAHeadOfFiveBytes) {
  EXPECT_EQ(framed(""), std::string("\0\0\0\0\0", 5));
  EXPECT_EQ(framed("abc"), std::string("\0\0\0\0\3abc", 8));
  EXPECT_EQ(framed(std::string(0x012345, 'x')).substr(0, 5), std::string("\0\0\x01\x23\x45", 5));
}

TEST(GrpcMessages, MayFollowOthersInOneText) {
  std::string out = framed("one");
  out += framed("two!");
  const GrpcMessage first = read_grpc_message(out);
  ASSERT_EQ(first.state, State::complete);
  EXPECT_EQ(first.payload, "one");
  const GrpcMessage second = read_grpc_message(std::string_view(out).substr(first.consumed));
  EXPECT_EQ(second.payload, "two!");
  EXPECT_EQ(first.consumed + second.consumed, out.size());
}

TEST(GrpcMessages, AreCompleteWithTheirLastByteOnly) {
  const std::string whole = framed("payload");
  for (std::size_t bytes = 0; bytes < whole.size(); ++bytes) {
    EXPECT_EQ(read_grpc_message(whole.substr(0, bytes)).state, State::need_more) << bytes;
  }
  EXPECT_EQ(read_grpc_message(whole).payload, "payload");
}

TEST(GrpcMessages, AreRefusedAsSoonAsTheirHeadIsWrong) {
  EXPECT_EQ(read_grpc_message(std::string("\0\0\x10\0\1", 5)).state, State::too_large);
  EXPECT_EQ(read_grpc_message(std::string("\0\0\x10\0\0", 5)).state, State::need_more);
  EXPECT_EQ(read_grpc_message(std::string("\0\xff\xff\xff\xff", 5)).length, 0xffffffffU);
  EXPECT_EQ(read_grpc_message(std::string("\1\0\0\0\1x", 6)).state, State::compressed);
  EXPECT_EQ(read_grpc_message("\2").state, State::bad_flag);
}

TEST(GrpcTimeouts, AreReadInEveryUnit) {
  EXPECT_EQ(parse_grpc_timeout("20m"), Micros{20'000});
  EXPECT_EQ(parse_grpc_timeout("99999999H"), Micros{359'999'996'400'000'000});
  EXPECT_EQ(parse_grpc_timeout("2M"), Micros{120'000'000});
  EXPECT_EQ(parse_grpc_timeout("3S"), Micros{3'000'000});
  EXPECT_EQ(parse_grpc_timeout("7u"), Micros{7});
  EXPECT_EQ(parse_grpc_timeout("1001n"), Micros{2});
  EXPECT_EQ(parse_grpc_timeout("0n"), Micros{0});
  for (const char* wrong : {"", "m", "20", "20x", "-1m", "1.5S", "123456789m", " 1m", "1m "}) {
    EXPECT_EQ(parse_grpc_timeout(wrong), std::nullopt) << wrong;
  }
}

TEST(GrpcErrors, AreWrittenInPrintableAscii) {
  EXPECT_EQ(percent_encoded("plain text ~"), "plain text ~");
  EXPECT_EQ(percent_encoded("100%\n\xc3\xa4\x7f"), "100%25%0A%C3%A4%7F");
  EXPECT_EQ(to_string(GrpcStatus::ok), "0");
  EXPECT_EQ(to_string(GrpcStatus::unauthenticated), "16");
}

}  // namespace
}  // namespace weir::protocol
