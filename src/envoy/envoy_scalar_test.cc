// Tests which scalars the reference service's YAML reader takes as numbers, and which as true and false.
#include "envoy/envoy_scalar.h"

#include <gtest/gtest.h>

#include <string>

namespace weir {
namespace {

Node plain(std::string text) { return {.text = std::move(text)}; }
Node quoted(std::string text) { return {.is_plain = false, .text = std::move(text)}; }

TEST(EnvoyScalar, KnowsWholeNumbersOfEveryBase) {
  EXPECT_EQ(envoy_whole(plain("10")), 10);
  EXPECT_EQ(envoy_whole(plain("-10")), -10);
  EXPECT_EQ(envoy_whole(plain("+10")), 10);
  EXPECT_EQ(envoy_whole(plain("1_000")), 1000);
  EXPECT_EQ(envoy_whole(plain("0x1F")), 31);
  EXPECT_EQ(envoy_whole(plain("0o17")), 15);
  EXPECT_EQ(envoy_whole(plain("017")), 15);
  EXPECT_EQ(envoy_whole(plain("0b11")), 3);
  EXPECT_EQ(envoy_whole(plain("0")), 0);
  EXPECT_EQ(envoy_whole(plain("9223372036854775807")), 9223372036854775807);
  for (const char* text : {"", "-", "--1", "0x", "1.0", "1e3", "a1", "08", "9223372036854775808", "0x-1", "10.0.0.1"}) {
    EXPECT_FALSE(envoy_whole(plain(text))) << text;
  }
  EXPECT_FALSE(envoy_whole(quoted("10")));
}

TEST(EnvoyScalar, KnowsWhatIsReadAsAFraction) {
  for (const char* text : {"1.5", ".5", "1.", "1e3", "1E-3", "-1.5", "08", "9223372036854775808", ".inf", "-.INF",
                           ".nan", "1_0.5", "99999999999999999999"}) {
    EXPECT_TRUE(is_envoy_fraction(plain(text))) << text;
  }
  for (const char* text : {"1", "10.0.0.1", "1.5.0", "v1.5", "e3", "1e", ".", "", "inf", "nan", "0x10", "2001-01-01"}) {
    EXPECT_FALSE(is_envoy_fraction(plain(text))) << text;
  }
  EXPECT_FALSE(is_envoy_fraction(quoted("1.5")));
  EXPECT_FALSE(is_envoy_fraction({.is_null = true}));
}

TEST(EnvoyScalar, KnowsTheWordsForTrueAndFalse) {
  for (const char* text : {"true", "True", "TRUE", "yes", "on", "y", "Y"}) {
    EXPECT_EQ(envoy_boolean(plain(text)), true) << text;
  }
  for (const char* text : {"false", "no", "Off", "n"}) EXPECT_EQ(envoy_boolean(plain(text)), false) << text;
  EXPECT_FALSE(envoy_boolean(plain("tRUE")));
  EXPECT_FALSE(envoy_boolean(plain("1")));
  EXPECT_FALSE(envoy_boolean(quoted("true")));
}

}  // namespace
}  // namespace weir
