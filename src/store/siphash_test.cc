// SipHash against what others compute: the published vectors of 2-4, and 1-3 under a key of zeros as CPython hashes
// bytes.
#include "store/siphash.h"

#include <gtest/gtest.h>

#include <string>

namespace weir {
namespace {

TEST(SipHash, GivesThePublishedVectorsIn24) {
  const SipKey key{0x0706050403020100, 0x0f0e0d0c0b0a0908};
  std::string bytes;
  EXPECT_EQ((SipHash<2, 4>(key)(bytes)), 0x726fdb47dd0e0e31u);
  bytes.push_back('\0');
  EXPECT_EQ((SipHash<2, 4>(key)(bytes)), 0x74f839c593dc67fdu);
  for (char c = 1; c < 15; ++c) bytes.push_back(c);
  EXPECT_EQ((SipHash<2, 4>(key)(bytes)), 0xa129ca6149be45e5u);
}

TEST(SipHash, AgreesWithAnotherImplementationIn13) {
  EXPECT_EQ(siphash13({}, "a"), 0x407448d2b89b1813u);
  EXPECT_EQ(siphash13({}, "weir"), 0xafd841259e24ac48u);
  EXPECT_EQ(siphash13({}, "user:42"), 0x223dd74fb15f308du);
  EXPECT_EQ(siphash13({}, "12345678"), 0x3489982430560a87u);
  EXPECT_EQ(siphash13({}, "0123456789abcdef0"), 0xf738bb4f30801228u);
}

TEST(SipHash, DependsOnEveryBitOfItsKey) {
  const std::uint64_t plain = siphash13({1, 2}, "user:42");
  for (int bit = 0; bit < 64; ++bit) {
    EXPECT_NE(siphash13({1 ^ std::uint64_t{1} << bit, 2}, "user:42"), plain);
    EXPECT_NE(siphash13({1, 2 ^ std::uint64_t{1} << bit}, "user:42"), plain);
  }
}

}  // namespace
}  // namespace weir
