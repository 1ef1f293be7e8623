// Tests addresses and ranges in valid and invalid spellings.
//
// Parsing and printing are compared with inet_pton() and inet_ntop() on random texts, and a set with a scan of its
// ranges. IP-2 and IP-3 are rows of the catalogue of other limiters' mistakes.
#include "base/ip_address.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>

#include "seed.h"

namespace weir::base {
namespace {

IpAddress ip(std::string_view text) {
  const auto address = parse_ip(text);
  EXPECT_TRUE(address) << text;
  return address.value_or(IpAddress{});
}

IpRange range(std::string_view text) {
  const auto parsed = parse_ip_range(text);
  EXPECT_TRUE(parsed) << parsed.error().message;
  return parsed.value_or(IpRange{});
}

std::string error(std::string_view text) {
  const auto parsed = parse_ip_range(text);
  return parsed ? "none" : parsed.error().message;
}

// Splits a list at bars. Some of the texts contain quotes and commas, so a bar-separated list is easier to read.
std::vector<std::string_view> between_bars(std::string_view list) {
  std::vector<std::string_view> texts;
  for (std::size_t end = list.find('|'); end != list.npos; end = list.find('|')) {
    texts.push_back(list.substr(0, end));
    list.remove_prefix(end + 1);
  }
  texts.push_back(list);
  return texts;
}

// Returns what the C library parses, as an independent opinion.
std::optional<IpAddress> library_ip(const std::string& text) {
  IpAddress address;
  if (text.find('\0') != text.npos) return std::nullopt;
  if (inet_pton(AF_INET6, text.c_str(), address.bytes.data()) == 1) return address;
  if (inet_pton(AF_INET, text.c_str(), &address.bytes[12]) != 1) return std::nullopt;
  address.bytes[10] = address.bytes[11] = 0xff;
  return address;
}

IpAddress random_ip(std::mt19937_64& random) {
  IpAddress address;
  const bool is_v4 = test::pick(random, 0, 1) == 0;
  if (is_v4) address.bytes[10] = address.bytes[11] = 0xff;
  for (std::size_t i = is_v4 ? 12 : 0; i < 16; ++i) {
    if (test::pick(random, 0, 1) == 0) address.bytes[i] = static_cast<std::uint8_t>(test::pick(random, 0, 255));
  }
  return address;
}

TEST(IpAddress, IsReadAsPeopleWriteIt) {
  const std::array<std::uint8_t, 16> v4 = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 192, 0, 2, 1};
  const std::array<std::uint8_t, 16> v6 = {0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0xab, 0xcd, 0, 1};
  EXPECT_EQ(ip("192.0.2.1").bytes, v4);
  EXPECT_EQ(ip("2001:db8::abcd:1").bytes, v6);
  EXPECT_EQ(ip("2001:0DB8:0000:0000:0000:0000:ABCD:0001").bytes, v6);
  EXPECT_EQ(ip("2001:db8::171.205.0.1").bytes, v6);
  EXPECT_EQ(ip("::"), IpAddress{});
  EXPECT_TRUE(ip("0.0.0.0").is_v4());
  EXPECT_TRUE(ip("255.255.255.255").is_v4());
  EXPECT_FALSE(ip("::1.2.3.4").is_v4()) << "an address that was only compatible, not mapped";
  EXPECT_FALSE(ip("::fffe:1.2.3.4").is_v4());
  EXPECT_FALSE(ip("1::ffff:1.2.3.4").is_v4());
}

// IP-3: express-rate-limit #667 and CVE-2026-47674 treated the notation as the address.
TEST(IpAddress, IsOneValueInEveryNotation) {
  for (const char* text : {"1.2.3.4", "::ffff:1.2.3.4", "::ffff:102:304", "::FFFF:0102:0304", "0:0:0:0:0:ffff:102:304",
                           "0:0:0:0:0:FFFF:1.2.3.4", "0000:0000:0000:0000:0000:ffff:0102:0304"}) {
    EXPECT_EQ(ip(text), ip("1.2.3.4")) << text;
    EXPECT_EQ(to_string(ip(text)), "1.2.3.4") << text;
  }
  for (const char* text : {"2001:db8::1", "2001:DB8::1", "2001:0db8::0001", "2001:db8:0:0:0:0:0:1", "2001:db8:0::0:1",
                           "2001:db8::0.0.0.1"}) {
    EXPECT_EQ(ip(text), ip("2001:db8::1")) << text;
  }
}

TEST(IpAddress, IsRefusedUnlessItIsExactlyOne) {
  for (const std::string_view text :
       between_bars("| |1|1.2|1.2.3|1.2.3.|1.2.3.4.|.1.2.3.4|1..2.3|1.2.3.4.5|01.2.3.4|1.2.3.04|00.0.0.0|1.2.3.256|"
                    "1.2.3.1000|1.2.3.-4|1.2.3.+4|0x1.2.3.4|1.2.3.4 | 1.2.3.4|1.2.3.4:80|1.2.3.4/32|16909060|1.2.3.a|"
                    ":|:::|1:|:1|1::2::3|1:2:3:4:5:6:7|::1:|:1::|1:2:3:4:5:6:7:8:9|1:2:3:4:5:6:7:8::|"
                    "::1:2:3:4:5:6:7:8|1:2:3:4::5:6:7:8|12345::|::g|[::1]|::1%lo|::1/128|::1.2.3|::1.2.3.256|"
                    "::01.2.3.4|1.2.3.4::|::1.2.3.4:1|1:2:3:4:5:6:7:1.2.3.4|1:2:3:4:5:6::1.2.3.4|localhost|unknown")) {
    EXPECT_FALSE(parse_ip(text)) << text;
  }
  EXPECT_FALSE(parse_ip(std::string_view("1.2.3.4\0", 8)));
  EXPECT_FALSE(parse_ip("::" + std::string(1 << 20, '0')));
  EXPECT_FALSE(parse_ip(std::string(1 << 20, '1')));
}

TEST(IpAddress, IsReadWithoutReadingBeyondItsEnd) {
  const std::string_view text = "1.2.3.45:67::8";
  EXPECT_EQ(parse_ip(text.substr(0, 7)), ip("1.2.3.4"));
  EXPECT_EQ(parse_ip(text.substr(7, 4)), std::nullopt);
  EXPECT_EQ(parse_ip(text.substr(7)), ip("5:67::8"));
}

TEST(IpAddress, IsReadAndWrittenAsTheLibraryDoes) {
  auto random = test::seeded();
  int addresses = 0;
  for (int round = 0; round < 50'000; ++round) {
    const IpAddress address = random_ip(random);
    char library_text[INET6_ADDRSTRLEN];
    ASSERT_NE(inet_ntop(AF_INET6, address.bytes.data(), library_text, sizeof library_text), nullptr);
    const std::string ours = to_string(address);
    ASSERT_EQ(parse_ip(ours), address) << ours;
    ASSERT_EQ(parse_ip(library_text), address) << library_text;
    const bool has_zeros_in_front = std::all_of(&address.bytes[0], &address.bytes[10], [](auto b) { return b == 0; });
    if (!has_zeros_in_front) {  // for such addresses the library prints ::1.2.3.4
      ASSERT_EQ(ours, library_text);
    }

    std::string text = test::pick(random, 0, 1) == 0 ? ours : library_text;
    for (std::int64_t edits = test::pick(random, 0, 2); edits > 0; --edits) {
      constexpr std::string_view kLetters = "0129afF:.:g%";
      const char letter = kLetters[static_cast<std::size_t>(test::pick(random, 0, std::ssize(kLetters) - 1))];
      const auto at = static_cast<std::size_t>(test::pick(random, 0, std::ssize(text)));
      text.replace(at, static_cast<std::size_t>(test::pick(random, 0, 1)),
                   test::pick(random, 0, 1) == 0 ? "" : std::string(1, letter));
    }
    ASSERT_EQ(parse_ip(text), library_ip(text)) << text;
    addresses += parse_ip(text) ? 1 : 0;
  }
  EXPECT_GT(addresses, 10'000);
  EXPECT_LT(addresses, 49'000);
}

TEST(IpAddress, IsWrittenAsRfc5952Asks) {
  for (const std::string_view text :
       between_bars("::|::1|1::|2001:db8::1|2001:db8:0:1:1:1:1:1|2001:0:0:1::1|2001:db8::1:0:0:1|1:0:2:0:3:0:4:0|"
                    "fe80::1|1:2:3:4:5:6:7:8|::102:304|64:ff9b::c000:221|1:2:3:4:5:6::|::3:4:5:6:7:8|0.0.0.0|"
                    "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff|255.255.255.255")) {
    EXPECT_EQ(to_string(ip(text)), text);
  }
}

TEST(IpAddress, IsFoundInTheNameOfANode) {
  for (const char* text : {"1.2.3.4", " 1.2.3.4\t", "1.2.3.4:0", "1.2.3.4:65535", "1.2.3.4:_hidden-1.x",
                           "::ffff:1.2.3.4", "[::ffff:1.2.3.4]", "[::ffff:102:304]:80"}) {
    EXPECT_EQ(parse_node(text), ip("1.2.3.4")) << text;
  }
  for (const char* text : {"fe80::1", "[fe80::1]", "[fe80::1]:5678", "fe80::1%eth0", "[fe80::1%eth0]",
                           "[fe80::1%25eth0]:80", "fe80::1%3", " [fe80::1]:_x "}) {
    EXPECT_EQ(parse_node(text), ip("fe80::1")) << text;
  }
  EXPECT_EQ(parse_node("2001:db8::1:5678"), ip("2001:db8::1:5678")) << "without brackets, there is no port";
}

TEST(IpAddress, IsNotFoundInOtherNames) {
  for (const std::string_view text :
       between_bars("| |unknown|_hidden|localhost|1.2.3.4:|1.2.3.4:65536|1.2.3.4:000080|1.2.3.4:-1|1.2.3.4:http|"
                    "1.2.3.4:_|1.2.3.4:_a b|1.2.3.4:80:90|1.2.3.4%eth0|[1.2.3.4]|[1.2.3.4]:80|[::1|::1]|[::1]80|"
                    "[::1]:|[::1]:x|[[::1]]|[]|fe80::1%|fe80::1%a b|fe80::1%a]|\"1.2.3.4\"|1.2.3.4, 5.6.7.8|"
                    "1.2.3.4;x|1.2.3.4\n|[fe80::1%]|:80|http://1.2.3.4|1.2.3.4 :80|1.2.3:80|[::1] :80")) {
    EXPECT_FALSE(parse_node(text)) << text;
  }
  EXPECT_TRUE(parse_node(std::string(500, ' ') + "1.2.3.4"));
  EXPECT_TRUE(parse_node("fe80::1%" + std::string(kNodeBytesMax - 8, 'x')));
  EXPECT_FALSE(parse_node("fe80::1%" + std::string(kNodeBytesMax - 7, 'x')));
}

// IP-2: CVE-2026-30827 applied an IPv6 mask to IPv4 addresses, which turned all of them into ::/56.
TEST(IpAddress, IsTruncatedToThePrefixOfItsOwnFamily) {
  EXPECT_NE(truncated(ip("::ffff:1.2.3.4"), 32, 56), truncated(ip("::ffff:5.6.7.8"), 32, 56));
  EXPECT_EQ(truncated(ip("::ffff:1.2.3.4"), 32, 56), truncated(ip("1.2.3.4"), 32, 56));
  EXPECT_EQ(truncated(ip("::ffff:1.2.3.4"), 32, 0), ip("1.2.3.4"));
  EXPECT_EQ(truncated(ip("1.2.3.4"), 24, 64), ip("1.2.3.0"));
  EXPECT_EQ(truncated(ip("1.2.3.255"), 31, 64), ip("1.2.3.254"));
  EXPECT_EQ(truncated(ip("1.2.3.4"), 0, 64), ip("0.0.0.0"));
  EXPECT_EQ(truncated(ip("2001:db8:1:2ff:3:4:5:6"), 32, 64), ip("2001:db8:1:2ff::"));
  EXPECT_EQ(truncated(ip("2001:db8:1:2ff:3:4:5:6"), 32, 56), ip("2001:db8:1:200::"));
  EXPECT_EQ(truncated(ip("2001:db8:1:2ff:ffff:4:5:6"), 32, 65), ip("2001:db8:1:2ff:8000::"));
  EXPECT_EQ(truncated(ip("2001:db8::1"), 32, 128), ip("2001:db8::1"));
  EXPECT_EQ(truncated(ip("2001:db8::1"), 32, 0), ip("::"));
}

TEST(IpRange, ContainsTheAddressesWithItsPrefix) {
  EXPECT_TRUE(range("10.0.0.0/8").contains(ip("10.255.255.255")));
  EXPECT_FALSE(range("10.0.0.0/8").contains(ip("11.0.0.0")));
  EXPECT_FALSE(range("10.0.0.0/8").contains(ip("9.255.255.255")));
  EXPECT_TRUE(range("10.0.0.0/8").contains(ip("::ffff:a00:1"))) << "CVE-2026-39409";
  EXPECT_TRUE(range("10.1.2.3").contains(ip("10.1.2.3")));
  EXPECT_FALSE(range("10.1.2.3").contains(ip("10.1.2.2")));
  EXPECT_TRUE(range("2001:db8::/32").contains(ip("2001:db8:ffff::1")));
  EXPECT_FALSE(range("2001:db8::/32").contains(ip("2001:db9::")));
  EXPECT_TRUE(range("2001:db8::8000:0:0:0/65").contains(ip("2001:db8::ffff:0:0:1")));
  EXPECT_FALSE(range("2001:db8::8000:0:0:0/65").contains(ip("2001:db8::7fff:0:0:1")));
}

TEST(IpRange, IsOfOneFamily) {
  EXPECT_TRUE(range("0.0.0.0/0").contains(ip("1.2.3.4")));
  EXPECT_FALSE(range("0.0.0.0/0").contains(ip("::1")));
  EXPECT_FALSE(range("0.0.0.0/0").contains(ip("::1.2.3.4")));
  EXPECT_TRUE(range("::/0").contains(ip("::1")));
  EXPECT_TRUE(range("::/0").contains(ip("::fffe:1.2.3.4")));
  for (const char* wide : {"::/0", "::/1", "::/64", "::/80"}) EXPECT_FALSE(range(wide).contains(ip("1.2.3.4"))) << wide;
  EXPECT_FALSE((IpRange{ip("1.2.3.4"), 40}.contains(ip("1.2.3.4"))))
      << "it is an IPv6 range, although its base is an IPv4 address";
}

TEST(IpRange, IsOneValueInEveryNotation) {
  EXPECT_EQ(range("10.0.0.0/8"), (IpRange{ip("10.0.0.0"), 104}));
  EXPECT_EQ(range("::ffff:10.0.0.0/104"), range("10.0.0.0/8"));
  EXPECT_EQ(range("::ffff:a00:0/104"), range("10.0.0.0/8"));
  EXPECT_EQ(range("::ffff:0:0/96"), range("0.0.0.0/0"));
  EXPECT_EQ(range("::ffff:1.2.3.4"), range("1.2.3.4/32"));
  EXPECT_EQ(range("2001:db8::1"), range("2001:db8::1/128"));
  EXPECT_FALSE(range("::ffc0:0:0/90").is_v4());
}

TEST(IpRange, IsWrittenAsItIsRead) {
  for (const char* text : {"10.0.0.0/8", "0.0.0.0/0", "1.2.3.4", "1.2.3.4/31", "::/0", "::", "2001:db8::/32",
                           "2001:db8::1", "::fffe:0:0/95", "::/96"}) {
    EXPECT_EQ(to_string(range(text)), text);
  }
  EXPECT_EQ(to_string(range("1.2.3.4/32")), "1.2.3.4");
}

TEST(IpRange, IsReportedWithAGuessIfItIsWrong) {
  const auto expect_guess = [](const char* text, const std::string& guess) {
    EXPECT_TRUE(error(text).ends_with("; did you mean " + guess + "?")) << error(text);
    EXPECT_TRUE(error(text).starts_with("'")) << error(text);
    EXPECT_EQ(to_string(range(guess)), guess);
  };
  expect_guess("10.1.2.3/8", "10.0.0.0/8");
  expect_guess("10.0.0.1/31", "10.0.0.0/31");
  expect_guess("2001:db8::1/32", "2001:db8::/32");
  expect_guess("::ffff:10.1.0.0/104", "10.0.0.0/8");
  expect_guess("::ffff:10.1.0.0/8", "10.0.0.0/8");
  expect_guess("10/8", "10.0.0.0/8");
  expect_guess("172.16/12", "172.16.0.0/12");
  expect_guess("192.168.7/24", "192.168.7.0/24");
  expect_guess("10.0.0.0/255.0.0.0", "10.0.0.0/8");
  expect_guess("10.1.0.0/255.255.255.255", "10.1.0.0");
  expect_guess(" 10.0.0.0/8", "10.0.0.0/8");
  expect_guess("10.0.0.0/8 ", "10.0.0.0/8");
  expect_guess("10.0.0.0 / 8", "10.0.0.0/8");
  expect_guess("10.0.0.1:80", "10.0.0.1");
  expect_guess("[2001:db8::]/32", "2001:db8::/32");
  expect_guess("[2001:db8::1]:80", "2001:db8::1");
  expect_guess("fe80::1%eth0", "fe80::1");
}

TEST(IpRange, IsReportedWithExamplesIfThereIsNoGuess) {
  for (const std::string_view text :
       between_bars("|/|/8|10.0.0.0/|10.0.0.0/33|10.0.0.0/104|10.0.0.0/999999|10.0.0.0/-1|10.0.0.0/08|10.0.0.0/8/8|"
                    "10.0.0.0/x|10.0.0.0/255.0.255.0|::/129|::ffff:10.0.0.0/64|localhost|example.org/8|010.0.0.0/8|"
                    "10.0.0.0-10.0.0.9|10.*|all|256.0.0.0/8|10")) {
    EXPECT_TRUE(error(text).ends_with("; write it like 10.0.0.0/8, 2001:db8::/32 or 192.0.2.1"))
        << text << ": " << error(text);
  }
  for (const char* example : {"10.0.0.0/8", "2001:db8::/32", "192.0.2.1"}) EXPECT_EQ(error(example), "none");
}

TEST(IpRange, IsReportedWithTheReasonIfItIsWrong) {
  const auto expect_words = [](const std::string& text, const char* words) {
    EXPECT_NE(error(text).find(words), std::string::npos) << error(text);
  };
  expect_words("10.1.2.3/8", "the address has bits beyond its prefix of 8");
  expect_words("10.0.0.0/33", "the prefix of an IPv4 range is a number from 0 to 32");
  expect_words("::/129", "the prefix of an IPv6 range is a number from 0 to 128");
  expect_words("10.0.0.0/x", "the prefix of an IPv4 range is a number from 0 to 32");
  expect_words("localhost/8", "the text before the slash is neither an IPv4 nor an IPv6 address");
  expect_words("localhost", "it is neither an IPv4 nor an IPv6 address");
  expect_words("[::1]:80", "without spaces, brackets, port or zone");
  expect_words("10.0.0.0/8\n", "'10.0.0.0/8\\x0a'");
  EXPECT_EQ(parse_ip_range("10.0.0.0/33").error().code, ErrorCode::out_of_range);
  EXPECT_EQ(parse_ip_range("10.0.0.0/x").error().code, ErrorCode::invalid_argument);
  EXPECT_LT(error(std::string(1 << 20, '/')).size(), 300u);
}

TEST(IpSet, IsEmptyAtFirst) {
  EXPECT_TRUE(IpSet().empty());
  EXPECT_FALSE(IpSet().contains(ip("1.2.3.4")));
  EXPECT_FALSE(IpSet().contains(ip("::")));
}

TEST(IpSet, ContainsWhatItsRangesContain) {
  const IpRange ranges[] = {range("10.1.0.0/16"), range("10.0.0.0/8"), range("192.0.2.1"),
                            range("::/0"),        range("10.0.0.0/9"), range("2001:db8::/32")};
  const IpSet set(ranges);
  EXPECT_FALSE(set.empty());
  for (const char* in : {"10.0.0.0", "10.1.2.3", "10.255.255.255", "192.0.2.1", "::", "2001:db8::1", "::ffff:a01:1",
                         "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"}) {
    EXPECT_TRUE(set.contains(ip(in))) << in;
  }
  for (const char* out : {"0.0.0.0", "9.255.255.255", "11.0.0.0", "192.0.2.0", "192.0.2.2", "255.255.255.255"}) {
    EXPECT_FALSE(set.contains(ip(out))) << out;
  }
}

TEST(IpSet, AgreesWithAScanOfItsRanges) {
  auto random = test::seeded();
  for (int round = 0; round < 200; ++round) {
    std::vector<IpRange> ranges;
    for (std::int64_t n = test::pick(random, 0, 60); n > 0; --n) {
      const IpAddress base = random_ip(random);
      const auto bits = static_cast<std::uint8_t>(test::pick(random, base.is_v4() ? 96 : 0, 128));
      ranges.push_back({truncated(base, base.is_v4() ? bits - 96u : 0, bits), bits});
    }
    const IpSet set(ranges);
    int held = 0;
    for (int i = 0; i < 200; ++i) {
      IpAddress address = random_ip(random);
      if (!ranges.empty() && i % 2 == 0) {  // near an edge of a range
        address = ranges[static_cast<std::size_t>(test::pick(random, 0, std::ssize(ranges) - 1))].base;
        address.bytes[static_cast<std::size_t>(test::pick(random, 12, 15))] ^=
            static_cast<std::uint8_t>(test::pick(random, 0, 3));
      }
      const bool expected = std::ranges::any_of(ranges, [&](const IpRange& r) { return r.contains(address); });
      ASSERT_EQ(set.contains(address), expected) << to_string(address);
      held += expected ? 1 : 0;
    }
    if (ranges.size() > 20) {
      EXPECT_GT(held, 0);
    }
  }
}

}  // namespace
}  // namespace weir::base
