// Tests PROXY headers: complete, in pieces, and malformed in every way that a proxy or an attacker may produce.
#include "protocol/proxy_header.h"

#include <gtest/gtest.h>

#include <string>

namespace weir::protocol {
namespace {

using ReadState = ProxyRead::State;

std::string from_hex(std::string_view hex) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16));
  }
  return bytes;
}

const std::string kSignature = from_hex("0d0a0d0a000d0a515549540a");

// Builds a version 2 header from its parts; its length is that of `rest`.
std::string v2(std::string_view command_and_family, const std::string& rest) {
  return kSignature + from_hex(command_and_family) + static_cast<char>(rest.size() >> 8) +
         static_cast<char>(rest.size() & 0xff) + rest;
}

const std::string kV4 = from_hex("c0a80001c0a8000bdc0401bb");

std::string source(std::string_view bytes) {
  const ProxyRead read = read_proxy_header(bytes);
  if (read.state != ReadState::done) return read.state == ReadState::bad ? "bad" : "more";
  return read.source ? base::to_string(*read.source) : "none";
}

struct Golden {
  std::string bytes;
  std::string source;
};

const Golden kGolden[] = {
    {"PROXY TCP4 192.168.0.1 192.168.0.11 56324 443\r\n", "192.168.0.1"},
    {"PROXY TCP6 2001:db8::1 2001:db8::2 56324 443\r\n", "2001:db8::1"},
    {"PROXY TCP6 ::ffff:192.0.2.1 ::ffff:192.0.2.2 0 65535\r\n", "192.0.2.1"},
    {"PROXY TCP6 ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535 65535\r\n",
     "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"},
    {"PROXY UNKNOWN\r\n", "none"},
    {"PROXY UNKNOWN ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535 65535\r\n",
     "none"},
    {from_hex("0d0a0d0a000d0a515549540a2111000cc0a80001c0a8000bdc0401bb"), "192.168.0.1"},
    {from_hex("0d0a0d0a000d0a515549540a2121002420010db800000000000000000000000120010db8000000000000000000000002"
              "dc0401bb"),
     "2001:db8::1"},
    {from_hex("0d0a0d0a000d0a515549540a20000000"), "none"},
    {v2("2011", kV4), "none"},                     // LOCAL, whatever addresses follow
    {v2("2000", "anything"), "none"},              // and whatever else follows
    {v2("2100", ""), "none"},                      // a proxy that does not know the client
    {v2("2100", from_hex("0400021234")), "none"},  // the same, with an addition
    {v2("2112", kV4), "none"},                     // datagrams are not accepted
    {v2("2131", std::string(216, 'u')), "none"},   // a unix socket has no address
    {v2("2111", kV4 + from_hex("040003000000") + from_hex("e00000")), "192.168.0.1"},
};

TEST(ProxyHeader, ReadsWhatTheProtocolsDocumentShows) {
  for (const Golden& golden : kGolden) {
    EXPECT_EQ(source(golden.bytes), golden.source) << testing::PrintToString(golden.bytes);
    EXPECT_EQ(read_proxy_header(golden.bytes).size, golden.bytes.size());
    EXPECT_EQ(read_proxy_header(golden.bytes + "GET / HTTP/1.1\r\n").size, golden.bytes.size());
    EXPECT_EQ(source(golden.bytes + golden.bytes), golden.source) << "only the first header is read";
  }
}

TEST(ProxyHeader, AsksForMoreBytesButNeverBeyondTheHeader) {
  for (const Golden& golden : kGolden) {
    for (std::size_t size = 0; size < golden.bytes.size(); ++size) {
      const ProxyRead read = read_proxy_header(std::string_view(golden.bytes).substr(0, size));
      ASSERT_EQ(read.state, ReadState::more) << size << " of " << testing::PrintToString(golden.bytes);
      EXPECT_GE(read.more, 1U);
      EXPECT_LE(size + read.more, golden.bytes.size());
    }
  }
}

TEST(ProxyHeader, IsCompleteAfterReadingTheBytesThatItAsksFor) {
  for (const Golden& golden : kGolden) {
    std::string read;
    while (read_proxy_header(read).state == ReadState::more) {
      read += golden.bytes.substr(read.size(), read_proxy_header(read).more);
    }
    EXPECT_EQ(read, golden.bytes);
    EXPECT_EQ(source(read), golden.source);
  }
}

TEST(ProxyHeader, RefusesInvalidLines) {
  for (const std::string line : {
           "GET / HTTP/1.1\r\n",
           "PING\r\n",
           "\x16\x03\x01",
           "proxy TCP4 ",
           "PROXYTCP4",
           " PROXY",
           "\r\n\r\nGET",
           "PROXY TCP4 192.0.2.1 192.0.2.2 1\r\n",        // a port is missing
           "PROXY TCP4 192.0.2.1 192.0.2.2 1 2 3\r\n",    // one value too many
           "PROXY TCP4  192.0.2.1 192.0.2.2 1 2\r\n",     // two blanks
           "PROXY TCP4 192.0.2.1 192.0.2.2 1 2 \r\n",     // a blank at the end
           "PROXY TCP4 192.0.2.1 192.0.2.2 01 2\r\n",     // octal?
           "PROXY TCP4 192.0.2.01 192.0.2.2 1 2\r\n",     // octal?
           "PROXY TCP4 192.0.2.1 192.0.2.2 65536 2\r\n",  // not a port
           "PROXY TCP4 192.0.2.1 192.0.2.2 -1 2\r\n",     //
           "PROXY TCP4 192.0.2.256 192.0.2.2 1 2\r\n",    // not an address
           "PROXY TCP4 192.0.2.1 example.org 1 2\r\n",    //
           "PROXY TCP4 2001:db8::1 2001:db8::2 1 2\r\n",  // another family
           "PROXY TCP6 192.0.2.1 192.0.2.2 1 2\r\n",      //
           "PROXY UDP4 192.0.2.1 192.0.2.2 1 2\r\n",      // unknown family
           "PROXY UNKNOWNS\r\n",
           "PROXY unknown\r\n",
           "PROXY \r\n",                                //
           "PROXY TCP4 192.0.2.1 192.0.2.2 1 2\n",      // a line must end in CR LF
           "PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\r\n",  //
           "PROXY TCP4 192.0.2.1\t192.0.2.2 1 2\r\n",   // only spaces may separate
       }) {
    EXPECT_EQ(source(line), "bad") << line;
  }
  EXPECT_EQ(source("PROXY UNKNOWN " + std::string(kProxyV1Max - 16, 'x') + "\r\n"), "none") << "107 bytes";
  EXPECT_EQ(source("PROXY UNKNOWN " + std::string(kProxyV1Max - 15, 'x') + "\r\n"), "bad") << "108 bytes";
  EXPECT_EQ(source("PROXY UNKNOWN " + std::string(kProxyV1Max - 14, 'x')), "bad") << "107 bytes without an end";
}

TEST(ProxyHeader, RefusesInvalidBinaryHeaders) {
  EXPECT_EQ(source(v2("1111", kV4)), "bad") << "version 1 in binary";
  EXPECT_EQ(source(v2("3111", kV4)), "bad") << "version 3";
  EXPECT_EQ(source(v2("2211", kV4)), "bad") << "no such command";
  EXPECT_EQ(source(v2("2141", kV4)), "bad") << "no such family";
  EXPECT_EQ(source(v2("2113", kV4)), "bad") << "no such transport";
  EXPECT_EQ(source(v2("2111", kV4.substr(1))), "bad") << "too short for its addresses";
  EXPECT_EQ(source(v2("2121", kV4)), "bad");
  EXPECT_EQ(source(v2("2111", kV4 + "\x04")), "bad") << "half an addition";
  EXPECT_EQ(source(v2("2111", kV4 + from_hex("04000300"))), "bad") << "one that ends beyond the header";
  EXPECT_EQ(source(v2("2000", std::string(kProxyHeaderMax - 16, 'x'))), "none");
  EXPECT_EQ(source(v2("2000", std::string(kProxyHeaderMax - 15, 'x')).substr(0, 16)), "bad")
      << "too long, as its first 16 bytes show";
}

TEST(ProxyHeader, AcceptsOnlyACorrectChecksum) {
  // Computed with another CRC-32C implementation over the header with zeros in place of the checksum.
  const std::string right = v2("2111", kV4 + from_hex("030004") + from_hex("1c1ae9c6"));
  EXPECT_EQ(source(right), "192.168.0.1");
  for (std::size_t i = 16; i < right.size(); ++i) {
    if (i == 28 || i == 29 || i == 30) continue;  // type and length: changing them gives another addition, or none
    for (int bit = 0; bit < 8; ++bit) {
      std::string turned = right;
      turned[i] = static_cast<char>(turned[i] ^ 1 << bit);
      EXPECT_EQ(source(turned), "bad") << "bit " << bit << " of byte " << i;
    }
  }
  EXPECT_EQ(source(v2("2111", kV4 + from_hex("030003") + "abc")), "bad") << "a checksum has four bytes";
}

}  // namespace
}  // namespace weir::protocol
