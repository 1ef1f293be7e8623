// Tests the detection of frames on closed streams: found however the bytes are split, and without false alarms.
#include "server/grpc/grpc_frames.h"

#include <gtest/gtest.h>

#include <string>

namespace weir::server::grpc {
namespace {

using Fault = GrpcFrames::Fault;

constexpr char kData = 0, kHeaders = 1, kPriority = 2, kReset = 3, kWindowUpdate = 8;

std::string frame(char type, std::int32_t stream, std::size_t size = 0, char flags = 0) {
  std::string out = {char(size >> 16), char(size >> 8), char(size), type, flags};
  for (const int shift : {24, 16, 8, 0}) out += char(stream >> shift);
  return out + std::string(size, '\1');
}

// The last frame of a request.
std::string last(char type, std::int32_t stream, std::size_t size = 0) { return frame(type, stream, size, 1); }

Fault watch(GrpcFrames& past, std::string_view bytes, std::size_t piece) {
  for (; !bytes.empty(); bytes.remove_prefix(std::min(piece, bytes.size()))) {
    if (const Fault fault = past.watch(bytes.substr(0, piece)); fault != Fault::none) return fault;
  }
  return Fault::none;
}

GrpcFrames begun() {
  GrpcFrames past;
  past.watch(kHttp2Preface);
  return past;
}

TEST(GrpcFrames, FindsFramesOnStreamsThatHaveEndedHoweverTheyAreCut) {
  for (std::size_t piece = 1; piece < 60; ++piece) {
    for (const char type : {kData, kHeaders}) {
      GrpcFrames past;
      const std::string call = frame(kHeaders, 1, 20) + last(kData, 1, 300);
      EXPECT_EQ(watch(past, std::string(kHttp2Preface) + frame(4, 0, 6) + call, piece), Fault::none);
      EXPECT_EQ(watch(past, frame(kHeaders, 3, 20) + frame(kData, 3), piece), Fault::none);
      EXPECT_EQ(watch(past, frame(type, 1, 4), piece), Fault::ended) << piece;
    }
  }
}

TEST(GrpcFrames, KnowsThreeWaysToEndAStream) {
  for (const std::string& end :
       {last(kHeaders, 1), frame(kHeaders, 1) + last(kHeaders, 1), frame(kHeaders, 1) + frame(kReset, 1, 4)}) {
    GrpcFrames past = begun();
    EXPECT_EQ(past.watch(end), Fault::none);
    EXPECT_EQ(past.watch(frame(kData, 1)), Fault::ended);
  }
}

TEST(GrpcFrames, AllowsLateFramesThatAreNoFault) {
  GrpcFrames past = begun();
  past.watch(last(kHeaders, 1));
  for (const char type : {kPriority, kReset, kWindowUpdate}) EXPECT_EQ(past.watch(frame(type, 1, 4)), Fault::none);
  past.watch(frame(kHeaders, 3));
  EXPECT_EQ(past.watch(frame(kData, 3) + last(kHeaders, 3)), Fault::none);
  EXPECT_EQ(past.watch(frame(kData, 0)), Fault::none) << "no stream at all is another mistake";
  EXPECT_EQ(past.watch(frame(kHeaders, 0x7fff'ffff)), Fault::none);
}

TEST(GrpcFrames, FindsSkippedStreams) {
  for (const std::int32_t stream : {3, 5}) {
    GrpcFrames past = begun();
    EXPECT_EQ(past.watch(frame(kHeaders, 1) + frame(kHeaders, 7) + frame(kHeaders, 9)), Fault::none);
    EXPECT_EQ(past.watch(frame(kHeaders, stream)), Fault::left_out) << stream;
  }
  GrpcFrames past = begun();
  EXPECT_EQ(past.watch(frame(kHeaders, 5) + frame(kHeaders, 7)), Fault::none);
  EXPECT_EQ(past.watch(frame(kData, 5) + frame(kHeaders, 7) + frame(kData, 7)), Fault::none);
  EXPECT_EQ(past.watch(frame(kData, 1)), Fault::left_out);
}

TEST(GrpcFrames, RemembersTheLastStreamsOnly) {
  GrpcFrames past = begun();
  const auto count = static_cast<std::int32_t>(GrpcFrames::kRemembered);
  for (std::int32_t i = 0; i <= count; ++i) {
    ASSERT_EQ(past.watch(last(kHeaders, 2 * i + 1)), Fault::none);
  }
  EXPECT_EQ(past.watch(frame(kData, 1)), Fault::none);
  EXPECT_EQ(past.watch(frame(kData, 3)), Fault::ended);
}

using std::chrono::seconds;

constexpr Micros kNow{1'794'747'404'000'000};

// How many frames can be charged, one by one.
std::uint64_t all_of(FrameAllowance& allowance, Micros now) {
  std::uint64_t count = 0;
  while (count < 1'000'000 && allowance.charge(1, now)) ++count;
  return count;
}

TEST(FrameAllowance, HoldsTenSecondsWorthAndIsRefilledEverySecond) {
  FrameAllowance allowance(100);
  const std::uint64_t first = all_of(allowance, kNow);
  EXPECT_GE(first, 1'000U);
  EXPECT_LE(first, 2'000U) << "the first refill may come with it";
  EXPECT_EQ(all_of(allowance, kNow), 0U);
  EXPECT_EQ(all_of(allowance, kNow + seconds{1}), 100U);
  EXPECT_EQ(all_of(allowance, kNow + seconds{3}), 200U);
  EXPECT_EQ(all_of(allowance, kNow + seconds{1'000}), 1'000U);
}

TEST(FrameAllowance, GrowsWithTheCallsThatAreAnswered) {
  FrameAllowance allowance(100);
  all_of(allowance, kNow);
  for (int i = 0; i < 10'000; ++i) {
    allowance.earn(1);
    ASSERT_TRUE(allowance.charge(FrameAllowance::kFramesOfCall, kNow));
  }
  EXPECT_FALSE(allowance.charge(1, kNow));
}

TEST(FrameAllowance, SpendsAllOrNothing) {
  FrameAllowance allowance(100);
  EXPECT_FALSE(allowance.charge(1'001, kNow));
  EXPECT_TRUE(allowance.charge(1'000, kNow));
}

TEST(FrameAllowance, AClockThatRunsBackFillsNothing) {
  FrameAllowance allowance(100);
  all_of(allowance, kNow);
  EXPECT_FALSE(allowance.charge(1, kNow - seconds{60}));
}

}  // namespace
}  // namespace weir::server::grpc
