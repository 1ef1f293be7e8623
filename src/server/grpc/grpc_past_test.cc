// Tests the detection of frames on closed streams: found however the bytes are split, and without false alarms.
#include "server/grpc/grpc_past.h"

#include <gtest/gtest.h>

#include <string>

namespace weir {
namespace {

using Fault = GrpcPast::Fault;

constexpr char kData = 0, kHeaders = 1, kPriority = 2, kReset = 3, kWindowUpdate = 8;

std::string frame(char type, std::int32_t stream, std::size_t size = 0, char flags = 0) {
  std::string out = {char(size >> 16), char(size >> 8), char(size), type, flags};
  for (const int shift : {24, 16, 8, 0}) out += char(stream >> shift);
  return out + std::string(size, '\1');
}

// The last frame of a request.
std::string last(char type, std::int32_t stream, std::size_t size = 0) { return frame(type, stream, size, 1); }

Fault watch(GrpcPast& past, std::string_view bytes, std::size_t piece) {
  for (; !bytes.empty(); bytes.remove_prefix(std::min(piece, bytes.size()))) {
    if (const Fault fault = past.watch(bytes.substr(0, piece)); fault != Fault::none) return fault;
  }
  return Fault::none;
}

GrpcPast begun() {
  GrpcPast past;
  past.watch(kHttp2Preface);
  return past;
}

TEST(GrpcPast, FindsFramesOnStreamsThatHaveEndedHoweverTheyAreCut) {
  for (std::size_t piece = 1; piece < 60; ++piece) {
    for (const char type : {kData, kHeaders}) {
      GrpcPast past;
      const std::string call = frame(kHeaders, 1, 20) + last(kData, 1, 300);
      EXPECT_EQ(watch(past, std::string(kHttp2Preface) + frame(4, 0, 6) + call, piece), Fault::none);
      EXPECT_EQ(watch(past, frame(kHeaders, 3, 20) + frame(kData, 3), piece), Fault::none);
      EXPECT_EQ(watch(past, frame(type, 1, 4), piece), Fault::ended) << piece;
    }
  }
}

TEST(GrpcPast, KnowsThreeWaysToEndAStream) {
  for (const std::string& end :
       {last(kHeaders, 1), frame(kHeaders, 1) + last(kHeaders, 1), frame(kHeaders, 1) + frame(kReset, 1, 4)}) {
    GrpcPast past = begun();
    EXPECT_EQ(past.watch(end), Fault::none);
    EXPECT_EQ(past.watch(frame(kData, 1)), Fault::ended);
  }
}

TEST(GrpcPast, LetsLateFramesPassThatAreNoFault) {
  GrpcPast past = begun();
  past.watch(last(kHeaders, 1));
  for (const char type : {kPriority, kReset, kWindowUpdate}) EXPECT_EQ(past.watch(frame(type, 1, 4)), Fault::none);
  past.watch(frame(kHeaders, 3));
  EXPECT_EQ(past.watch(frame(kData, 3) + last(kHeaders, 3)), Fault::none);
  EXPECT_EQ(past.watch(frame(kData, 0)), Fault::none) << "no stream at all is another mistake";
  EXPECT_EQ(past.watch(frame(kHeaders, 0x7fff'ffff)), Fault::none);
}

TEST(GrpcPast, FindsStreamsThatWereLeftOut) {
  for (const std::int32_t stream : {3, 5}) {
    GrpcPast past = begun();
    EXPECT_EQ(past.watch(frame(kHeaders, 1) + frame(kHeaders, 7) + frame(kHeaders, 9)), Fault::none);
    EXPECT_EQ(past.watch(frame(kHeaders, stream)), Fault::left_out) << stream;
  }
  GrpcPast past = begun();
  EXPECT_EQ(past.watch(frame(kHeaders, 5) + frame(kHeaders, 7)), Fault::none);
  EXPECT_EQ(past.watch(frame(kData, 5) + frame(kHeaders, 7) + frame(kData, 7)), Fault::none);
  EXPECT_EQ(past.watch(frame(kData, 1)), Fault::left_out);
}

TEST(GrpcPast, RemembersTheLastStreamsOnly) {
  GrpcPast past = begun();
  const auto count = static_cast<std::int32_t>(GrpcPast::kRemembered);
  for (std::int32_t i = 0; i <= count; ++i) {
    ASSERT_EQ(past.watch(last(kHeaders, 2 * i + 1)), Fault::none);
  }
  EXPECT_EQ(past.watch(frame(kData, 1)), Fault::none);
  EXPECT_EQ(past.watch(frame(kData, 3)), Fault::ended);
}

}  // namespace
}  // namespace weir
