// Tests blocks byte by byte as RFC 7541 requires, and trailers as servers write them.
#include "load_generator/header_block.h"

#include <gtest/gtest.h>

namespace weir::load_generator {
namespace {

using namespace std::string_literals;

const CallFields kFields{"/s/M", "h:1"};

TEST(HeaderBlock, OfTheFirstCallAddsItsFieldsToTheTable) {
  EXPECT_EQ(first_header_block(kFields),
            "\x83\x86"
            "\x44\x04/s/M"
            "\x41\x03h:1"
            "\x5f\x10"
            "application/grpc"
            "\x40\x02te\x08trailers"s);
}

TEST(HeaderBlock, OfLaterCallsRefersToTheTable) {
  EXPECT_EQ(next_header_block(), "\x83\x86\xc1\xc0\xbf\xbe"s);  // 65 is the path, added first; 62 is te
}

TEST(HeaderBlock, ForAPeerWithoutTableIsLiteral) {
  EXPECT_EQ(plain_header_block(kFields),
            "\x83\x86"
            "\x04\x04/s/M"
            "\x01\x03h:1"
            "\x0f\x10\x10"
            "application/grpc"
            "\x00\x02te\x08trailers"s);
}

TEST(HeaderBlock, WritesLongValuesWithLongLengths) {
  const std::string path(200, 'p');
  EXPECT_EQ(plain_header_block({path, ""}).substr(2, 3), "\x04\x7f\x49"s);  // 127 + 73
}

TEST(HeaderBlock, FindsThePlainStatus) {
  EXPECT_EQ(*grpc_status("\x00\x0bgrpc-status\x01\x30"s), "0");
  EXPECT_EQ(*grpc_status("\x00\x0bgrpc-status\x02\x31\x34"s), "14");
  EXPECT_EQ(*grpc_status("\x20\x88\x40\x0bgrpc-status\x01\x30\x00\x0cgrpc-message\x00"s), "0");
}

TEST(HeaderBlock, FindsTheHuffmanCodedStatus) {
  const std::string name = "\x40\x88\x9a\xca\xc8\xb2\x12\x34\xda\x8f"s;
  EXPECT_EQ(*grpc_status(name + "\x81\x07"s), "0");
  EXPECT_EQ(*grpc_status(name + "\x81\x0f"s), "1");
  EXPECT_EQ(*grpc_status(name + "\x81\x7f"s), "9");
  EXPECT_EQ(*grpc_status(name + "\x82\x08\x3f"s), "10");
  EXPECT_EQ(*grpc_status(name + "\x82\x0b\x5f"s), "14");
  EXPECT_EQ(*grpc_status(name + "\x01\x38"s), "8");
}

TEST(HeaderBlock, WithoutStatusHasNone) {
  EXPECT_EQ(*grpc_status("\x88\x5f\x10"s + "application/grpc"), "");
  EXPECT_EQ(*grpc_status(""), "");
}

TEST(HeaderBlock, ThatIsCutShortOrRefersToATableIsRefused) {
  const std::string whole = "\x88\x00\x0bgrpc-status\x01\x30"s;
  for (std::size_t size = 2; size < whole.size(); ++size) EXPECT_FALSE(grpc_status(whole.substr(0, size))) << size;
  EXPECT_FALSE(grpc_status("\xbe"s));
  EXPECT_FALSE(grpc_status("\xff\xff\xff\xff\xff\xff\xff"s));
}

}  // namespace
}  // namespace weir::load_generator
