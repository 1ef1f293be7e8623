// Tests who the client is: honest proxies, lying clients, and mistakes that other limiters made.
//
// Each test names the advisories that it covers. XFF-1, IP-2, IP-3 and HDR-1 are the rows of our catalogue of them.
// The walk is compared on random headers with a walk that builds the whole chain.
#include "policy/client_ip.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <vector>

#include "seed.h"

namespace weir::policy {
namespace {

const char kPeer[] = "10.0.0.1";       // a trusted proxy
const char kStranger[] = "192.0.2.7";  // not trusted

base::IpAddress address_of(std::string_view text) {
  const auto address = base::parse_ip(text);
  EXPECT_TRUE(address) << text;
  return address.value_or(base::IpAddress{});
}

ProxyTrust trust(ForwardedBy by, unsigned hops = 0, std::string header = "") {
  const base::IpRange ranges[] = {*base::parse_ip_range("10.0.0.0/8"), *base::parse_ip_range("2001:db8:ffff::/48")};
  return {base::IpSet(ranges), by, std::move(header), hops};
}

using Headers = std::vector<Attribute>;

std::string client(const ProxyTrust& trusted, const Headers& headers, const char* peer = kPeer) {
  return base::to_string(client_ip(address_of(peer), headers, trusted));
}

// The client's address, behind the trusted peer, with these header lines.
std::string by_x_forwarded_for(const std::vector<std::string_view>& lines, unsigned hops = 0) {
  Headers headers;
  for (const std::string_view line : lines) headers.push_back({"X-Forwarded-For", line});
  return client(trust(ForwardedBy::x_forwarded_for, hops), headers);
}
std::string by_forwarded(const std::vector<std::string_view>& lines, unsigned hops = 0) {
  Headers headers;
  for (const std::string_view line : lines) headers.push_back({"Forwarded", line});
  return client(trust(ForwardedBy::forwarded, hops), headers);
}

std::string repeated(std::string_view text, std::size_t times) {
  std::string all;
  for (std::size_t i = 0; i < times; ++i) all += text;
  return all;
}

// Which headers count.

TEST(ClientIp, IsThePeerWithoutHeaders) {
  for (const auto by : {ForwardedBy::x_forwarded_for, ForwardedBy::forwarded, ForwardedBy::single_header}) {
    EXPECT_EQ(client(trust(by, 0, "X-Real-IP"), {}), kPeer);
    EXPECT_EQ(client(trust(by, 3, "X-Real-IP"), {}), kPeer);
    EXPECT_EQ(client(trust(by, 0, "X-Real-IP"), {}, kStranger), kStranger);
  }
}

TEST(ClientIp, IsTheFirstFromTheRightThatIsNotATrustedProxy) {
  EXPECT_EQ(by_x_forwarded_for({"192.0.2.1"}), "192.0.2.1");
  EXPECT_EQ(by_x_forwarded_for({"192.0.2.1, 10.0.0.2"}), "192.0.2.1");
  EXPECT_EQ(by_x_forwarded_for({"198.51.100.1,192.0.2.1,10.0.0.3, 10.0.0.2"}), "192.0.2.1");
  EXPECT_EQ(by_x_forwarded_for({"2001:db8::1, 2001:db8:ffff::2 ,\t10.0.0.2"}), "2001:db8::1");
  EXPECT_EQ(by_x_forwarded_for({"192.0.2.1:5678, [2001:db8:ffff::2]:80, 10.0.0.2:80"}), "192.0.2.1");
}

TEST(ClientIp, IsTheLeftmostIfAllAreTrusted) {
  EXPECT_EQ(by_x_forwarded_for({"10.0.0.4, 10.0.0.3, 10.0.0.2"}), "10.0.0.4");
  EXPECT_EQ(by_forwarded({"for=10.0.0.4", "for=10.0.0.3, for=10.0.0.2"}), "10.0.0.4");
}

// XFF-1: CVE-2025-59152 (Litestar), CVE-2020-28483 (gin), GHSA-246p-cpwv-v3jq (Echo), CVE-2024-52796, CVE-2026-29794,
// CVE-2026-24000, CVE-2026-46356, CVE-2023-50463, CVE-2025-66508, CVE-2026-57210, CVE-2023-44463, CVE-2026-23848,
// CVE-2026-107271, CVE-2026-108162, CVE-2024-34451, CVE-2025-41235: headers of any client were trusted.
TEST(ClientIp, IgnoresHeadersOfAPeerThatIsNotTrusted) {
  for (int i = 0; i < 1000; ++i) {
    const std::string forged = "198.51." + std::to_string(i / 256) + '.' + std::to_string(i % 256);
    const std::string pair = "for=" + forged;
    const Headers headers = {
        {"X-Forwarded-For", forged}, {"Forwarded", pair}, {"X-Real-IP", forged}, {"True-Client-IP", forged}};
    for (const auto by : {ForwardedBy::x_forwarded_for, ForwardedBy::forwarded, ForwardedBy::single_header}) {
      for (const unsigned hops : {0u, 1u}) {
        ASSERT_EQ(client(trust(by, hops, "X-Real-IP"), headers, kStranger), kStranger);
        ProxyTrust nobody = trust(by, hops, "X-Real-IP");
        nobody.proxies = base::IpSet();
        ASSERT_EQ(client(nobody, headers, kPeer), kPeer) << "no peer is trusted by default";
      }
    }
  }
}

// XFF-1 behind a proxy: GHSA-3fxj-6jh8-hvhx, GHSA-9g5q-2w5x-hmxf and GHSA-rjr7-jggh-pgcp (go-chi), CVE-2026-110724,
// -110723 and -110726 (api-gateway) took the leftmost address, which the client controls.
TEST(ClientIp, IgnoresWhatTheClientPutBeforeItsOwnAddress) {
  for (int i = 0; i < 1000; ++i) {
    const std::string forged = "198.51." + std::to_string(i / 256) + '.' + std::to_string(i % 256);
    ASSERT_EQ(by_x_forwarded_for({forged + ", 192.0.2.1, 10.0.0.2"}), "192.0.2.1");
    ASSERT_EQ(by_x_forwarded_for({forged, "192.0.2.1"}), "192.0.2.1");
    ASSERT_EQ(by_x_forwarded_for({forged + ", 192.0.2.1"}, 1), "192.0.2.1");
    ASSERT_EQ(by_forwarded({"for=" + forged + ", for=192.0.2.1"}), "192.0.2.1");
    ASSERT_EQ(by_forwarded({"for=" + forged, "for=192.0.2.1"}, 1), "192.0.2.1");
  }
}

TEST(ClientIp, ReadsOneHeaderAndNoOther) {
  const Headers others = {{"X-Real-IP", "198.51.100.1"},
                          {"True-Client-IP", "198.51.100.1"},
                          {"Forwarded", "for=198.51.100.1"},
                          {"CF-Connecting-IP", "198.51.100.1"},
                          {"X-Client-IP", "198.51.100.1"}};
  EXPECT_EQ(client(trust(ForwardedBy::x_forwarded_for), others), kPeer);
  EXPECT_EQ(client(trust(ForwardedBy::single_header, 0, "Fly-Client-IP"), others), kPeer);
  const Headers x_forwarded_for = {{"X-Forwarded-For", "198.51.100.1"}};
  EXPECT_EQ(client(trust(ForwardedBy::forwarded), x_forwarded_for), kPeer);
  EXPECT_EQ(client(trust(ForwardedBy::single_header, 0, "X-Real-IP"), x_forwarded_for), kPeer);
}

TEST(ClientIp, ReadsHeaderNamesInAnyCase) {
  for (const char* name : {"x-forwarded-for", "X-FORWARDED-FOR", "X-Forwarded-For"}) {
    EXPECT_EQ(client(trust(ForwardedBy::x_forwarded_for), {{name, "192.0.2.1"}}), "192.0.2.1");
  }
  EXPECT_EQ(client(trust(ForwardedBy::forwarded), {{"FORWARDED", "for=192.0.2.1"}}), "192.0.2.1");
  EXPECT_EQ(client(trust(ForwardedBy::single_header, 0, "x-REAL-ip"), {{"X-Real-Ip", "192.0.2.1"}}), "192.0.2.1");
}

// CVE-2026-88011: header names that another kind of gateway treats as the same.
TEST(ClientIp, AcceptsNoSimilarHeaderName) {
  for (const char* name :
       {"X.Forwarded.For", "X_Forwarded_For", "X-Forwarded_For", " X-Forwarded-For", "X-Forwarded-For ",
        "X-Forwarded-For:", "HTTP_X_FORWARDED_FOR", "X-Forwarded-Fo", "X-Forwarded-Forr", "X-Forwarded", ""}) {
    EXPECT_EQ(client(trust(ForwardedBy::x_forwarded_for), {{name, "198.51.100.1"}}), kPeer) << name;
    EXPECT_EQ(client(trust(ForwardedBy::x_forwarded_for), {{"X-Forwarded-For", "192.0.2.1"}, {name, "198.51.100.1"}}),
              "192.0.2.1");
  }
}

// HDR-1: CVE-2022-31813 (httpd), CVE-2024-45410, CVE-2026-29054 and CVE-2021-32813 (Traefik): a client names the
// header in Connection, so the next proxy removes it. Then the client is the peer, not unknown.
TEST(ClientIp, IsThePeerIfTheProxysHeaderWasRemoved) {
  for (const char* name : {"X-Forwarded-For", "x-forwarded-for", "close, X-Forwarded-For"}) {
    EXPECT_EQ(client(trust(ForwardedBy::x_forwarded_for), {{"Connection", name}}), kPeer);
    EXPECT_EQ(client(trust(ForwardedBy::x_forwarded_for), {{"Connection", name}, {"X-Forwarded-For", "192.0.2.1"}}),
              "192.0.2.1");
  }
}

// Which texts are addresses.

// IP-2 and IP-3: GHSA-5847-rm3g-23mw, CVE-2026-30827, CVE-2026-39409, CVE-2026-47674: one address had two values, or
// all addresses had the same value.
TEST(ClientIp, IsOneValueInEveryNotation) {
  for (const char* text : {"1.2.3.4", "::ffff:1.2.3.4", "::ffff:102:304", "0:0:0:0:0:FFFF:0102:0304",
                           "[::ffff:1.2.3.4]:80", "1.2.3.4:9", "[::FFFF:102:304]"}) {
    EXPECT_EQ(by_x_forwarded_for({text}), "1.2.3.4") << text;
    EXPECT_EQ(by_forwarded({"for=\"" + std::string(text) + '"'}), "1.2.3.4") << text;
    EXPECT_EQ(client(trust(ForwardedBy::single_header, 0, "X-Real-IP"), {{"X-Real-IP", text}}), "1.2.3.4") << text;
  }
  EXPECT_EQ(client(trust(ForwardedBy::x_forwarded_for), {{"X-Forwarded-For", "192.0.2.1"}}, "::ffff:10.0.0.1"),
            "192.0.2.1");
  EXPECT_EQ(by_x_forwarded_for({"192.0.2.1, ::ffff:a00:2"}), "192.0.2.1") << "a trusted proxy in another notation";
  EXPECT_EQ(by_x_forwarded_for({"192.0.2.1, [2001:db8:FFFF:0::2%eth0]:80"}), "192.0.2.1");
}

TEST(ClientIp, IsTheLastValidAddressBeforeAnInvalidOne) {
  for (const char* bad : {"unknown", "", " ", "_hidden", "192.0.2", "192.0.2.1.5", "010.0.0.2", "\"192.0.2.9\"",
                          "for=192.0.2.9", "192.0.2.9:x", "192.0.2.9 192.0.2.8", "localhost", "-"}) {
    const std::string text(bad);
    EXPECT_EQ(by_x_forwarded_for({"198.51.100.1, " + text}), kPeer) << bad;
    EXPECT_EQ(by_x_forwarded_for({"198.51.100.1, " + text + ", 10.0.0.2"}), "10.0.0.2") << bad;
    EXPECT_EQ(by_x_forwarded_for({"198.51.100.1", text, "10.0.0.3", "10.0.0.2"}), "10.0.0.3") << bad;
    EXPECT_EQ(by_x_forwarded_for({"198.51.100.1, " + text + ", 192.0.2.1, 10.0.0.2"}), "192.0.2.1") << bad;
    EXPECT_EQ(client(trust(ForwardedBy::single_header, 0, "X-Real-IP"), {{"X-Real-IP", bad}}), kPeer) << bad;
  }
}

// cpp-httplib before 0.44 read the front of an empty list.
TEST(ClientIp, IsThePeerIfTheHeaderIsEmpty) {
  for (const char* nothing : {"", " ", ",", ",,,,", " , ", ";", "\"", "for=", "for"}) {
    EXPECT_EQ(by_x_forwarded_for({nothing}), kPeer) << nothing;
    EXPECT_EQ(by_forwarded({nothing}), kPeer) << nothing;
    EXPECT_EQ(by_x_forwarded_for({"192.0.2.1", nothing}), kPeer) << nothing;
    EXPECT_EQ(by_forwarded({"for=192.0.2.1", nothing}), kPeer) << nothing;
  }
  EXPECT_EQ(by_x_forwarded_for({"192.0.2.1,"}), kPeer);
  EXPECT_EQ(by_x_forwarded_for({"192.0.2.1,,10.0.0.2"}), "10.0.0.2");
}

TEST(ClientIp, WalksSeveralLinesAsOneListTheLastLineFirst) {
  const Headers headers = {{"X-Forwarded-For", "198.51.100.1, 192.0.2.1"},
                           {"Host", "a"},
                           {"x-forwarded-for", "10.0.0.4,10.0.0.3"},
                           {"Accept", "b"},
                           {"X-FORWARDED-FOR", "10.0.0.2"}};
  EXPECT_EQ(client(trust(ForwardedBy::x_forwarded_for), headers), "192.0.2.1");
  EXPECT_EQ(client(trust(ForwardedBy::x_forwarded_for, 4), headers), "192.0.2.1");
  EXPECT_EQ(client(trust(ForwardedBy::x_forwarded_for, 5), headers), "198.51.100.1");
  EXPECT_EQ(client(trust(ForwardedBy::x_forwarded_for, 6), headers), kPeer);
}

// A fixed number of hops.

TEST(ClientIp, IsTheNthFromTheRightIfHopsAreCounted) {
  EXPECT_EQ(by_x_forwarded_for({"1.1.1.3, 1.1.1.2, 1.1.1.1"}, 1), "1.1.1.1");
  EXPECT_EQ(by_x_forwarded_for({"1.1.1.3, 1.1.1.2, 1.1.1.1"}, 3), "1.1.1.3");
  EXPECT_EQ(by_x_forwarded_for({"1.1.1.3, 1.1.1.2, 1.1.1.1"}, 4), kPeer);
  EXPECT_EQ(by_x_forwarded_for({"1.1.1.3, unknown, 1.1.1.1"}, 2), kPeer);
  EXPECT_EQ(by_x_forwarded_for({"1.1.1.3, unknown, 1.1.1.1"}, 3), "1.1.1.3")
      << "elements between are counted, not parsed";
  EXPECT_EQ(by_forwarded({"for=1.1.1.3", "for=\"1.1.1.2\";host=\"a,b\", by=x;for=1.1.1.1"}, 2), "1.1.1.2");
  EXPECT_EQ(by_forwarded({"for=1.1.1.3", "for=\"1.1.1.2\";host=\"a,b\", by=x;for=1.1.1.1"}, 3), "1.1.1.3");
  EXPECT_EQ(by_x_forwarded_for({"1.1.1.4, \"a, b\", 1.1.1.1"}, 4), "1.1.1.4") << "quotes mean nothing in this header";
  EXPECT_EQ(by_forwarded({"for=1.1.1.3, \"a, b\", for=1.1.1.1"}, 3), "1.1.1.3");
  EXPECT_EQ(by_forwarded({"for=1.1.1.3, a=\\\", for=1.1.1.1"}, 3), kPeer)
      << "elements beyond a stray quote are not counted";
  EXPECT_EQ(by_forwarded({"for=1.1.1.3", "a\", for=1.1.1.1"}, 3), kPeer);
  EXPECT_EQ(by_x_forwarded_for({repeated("1.1.1.2,", 63) + "1.1.1.1"}, kHopsMax), "1.1.1.2");
  EXPECT_EQ(by_x_forwarded_for({repeated("1.1.1.2,", 64) + "1.1.1.1"}, kHopsMax + 1), kPeer);
  EXPECT_EQ(by_x_forwarded_for({repeated("1.1.1.2,", 64) + "1.1.1.1"}, 4'000'000'000), kPeer);
}

// A header with a single address. GHSA-7r4p-vjf4-gxv4: the client's own header was kept beside that of the proxy.

TEST(ClientIp, IsTheValueOfASingleHeaderUnlessItIsSentTwice) {
  const ProxyTrust real_ip = trust(ForwardedBy::single_header, 0, "X-Real-IP");
  EXPECT_EQ(client(real_ip, {{"Host", "a"}, {"X-Real-IP", " [2001:db8::1]:80 "}, {"Accept", "b"}}), "2001:db8::1");
  EXPECT_EQ(client(real_ip, {{"X-Real-IP", "10.0.0.9"}}), "10.0.0.9");
  EXPECT_EQ(client(real_ip, {{"X-Real-IP", "198.51.100.1"}, {"X-Real-IP", "192.0.2.1"}}), kPeer);
  EXPECT_EQ(client(real_ip, {{"X-Real-IP", "198.51.100.1"}, {"x-real-ip", "bad"}}), kPeer);
  EXPECT_EQ(client(real_ip, {{"X-Real-IP", "198.51.100.1, 192.0.2.1"}}), kPeer);
}

// Forwarded, as RFC 7239 defines it.

TEST(ClientIp, ParsesForwardedAsTheStandardDefinesIt) {
  EXPECT_EQ(by_forwarded({"for=192.0.2.43"}), "192.0.2.43");
  EXPECT_EQ(by_forwarded({"For=\"[2001:db8:cafe::17]:4711\""}), "2001:db8:cafe::17");
  EXPECT_EQ(by_forwarded({"for=192.0.2.60;proto=http;by=203.0.113.43"}), "192.0.2.60");
  EXPECT_EQ(by_forwarded({"proto=http; by=203.0.113.43 ;FOR=192.0.2.60;"}), "192.0.2.60");
  EXPECT_EQ(by_forwarded({"for=192.0.2.43, for=10.0.0.2"}), "192.0.2.43");
  EXPECT_EQ(by_forwarded({"for=192.0.2.43,for=\"[2001:db8:ffff::1]:_p\";host=\"a;b,c\";by=\"\\\"\\\\\""}),
            "192.0.2.43");
  EXPECT_EQ(by_forwarded({"for=\"192\\.0.2.\\43\""}), "192.0.2.43") << "a backslash may precede any character";
  EXPECT_EQ(by_forwarded({"for=[2001:db8::1]:80"}), "2001:db8::1")
      << "the quotes are missing, but the address is valid";
  EXPECT_EQ(by_forwarded({"forx=1.1.1.1;xfor=2.2.2.2;for=192.0.2.43;for-=3.3.3.3"}), "192.0.2.43");
}

TEST(ClientIp, StopsAtAForwardedElementThatNamesNoAddress) {
  const auto expect_stop = [](const std::string& text) {
    EXPECT_EQ(by_forwarded({"for=198.51.100.1, " + text}), kPeer) << text;
    EXPECT_EQ(by_forwarded({"for=198.51.100.1, " + text + ", for=10.0.0.2"}), "10.0.0.2") << text;
    EXPECT_EQ(by_forwarded({"for=198.51.100.1", text, "for=10.0.0.2"}), "10.0.0.2") << text;
  };
  for (const char* bad :
       {"for=unknown", "for=_hidden", "proto=https", "for=", "for=\"\"", "for", "=192.0.2.9", "192.0.2.9"}) {
    expect_stop(bad);
  }
  for (const char* bad : {"for=\"_hidden:80\"", "for=192.0.2.9;for=192.0.2.8", "for=192.0.2.;for=9",
                          "for=\"192.0.2.9\"x=y", "for=192.0.2.9;for=192.0.2.9", "for =192.0.2.9", "for= 192.0.2.9 x",
                          "for=192.0.2.9;x", "for=\"192.0.2.9", "for=192.0.2.9\"", "for=\"192.0.2.9\"x",
                          "for=\"192.0.2.9\\\"", "for=192.0.2.9;a=\\", "for=192.0.2.9\\", "for=192.0.2.9;a=b\"c\"",
                          "a b=c;for=192.0.2.9", "for=192.0.2.9;\"a\"=b", "for=\"192.0.2.9\"\"\"", "for:192.0.2.9"}) {
    expect_stop(bad);
  }
}

// Whatever the client sends, the proxy appends a comma and its own element, or a line of its own.
TEST(ClientIp, IgnoresAnUnclosedQuoteOfTheClient) {
  const std::vector<std::string> of_the_proxy = {"for=192.0.2.1", "for=\"192.0.2.1\"",
                                                 "for=\"192.0.2.1:80\";host=\"a,\\\",for=198.51.100.3,\\\\\"",
                                                 "host=\"x\";for=192.0.2.1;by=\"[2001:db8:ffff::1]:80\""};
  const std::vector<std::string> of_the_client = {"for=\"",
                                                  "for=198.51.100.1;host=\"",
                                                  "\"",
                                                  "\\",
                                                  "\\\"",
                                                  "for=\"\\",
                                                  "for=\"\\\\",
                                                  "for=198.51.100.1, for=\"x\\\"",
                                                  "for=198.51.100.1;x=\"a\", \"",
                                                  "for=\",for=198.51.100.1,",
                                                  "x=\"\\\\\\",
                                                  ","};
  for (const std::string& own : of_the_proxy) {
    EXPECT_EQ(by_forwarded({own}), "192.0.2.1") << own;
    for (const std::string& forged : of_the_client) {
      const std::string all = forged + ", " + own;
      EXPECT_EQ(by_forwarded({all}), "192.0.2.1") << all;
      EXPECT_EQ(by_forwarded({all}, 1), "192.0.2.1") << all;
      EXPECT_EQ(by_forwarded({all + ", for=10.0.0.3;x=\"\\\"\", for=10.0.0.2"}), "192.0.2.1") << all;
      EXPECT_EQ(by_forwarded({forged, own}), "192.0.2.1") << forged << " | " << own;
      EXPECT_EQ(by_forwarded({forged, own}, 1), "192.0.2.1") << forged << " | " << own;
    }
  }
}

TEST(ClientIp, IgnoresAddressesInsideAQuotedText) {
  EXPECT_EQ(by_forwarded({"for=192.0.2.1;host=\"a, for=198.51.100.1\""}), "192.0.2.1");
  EXPECT_EQ(by_forwarded({"for=192.0.2.1;host=\"a\\\", for=198.51.100.1;x=\\\"\""}), "192.0.2.1");
  EXPECT_EQ(by_forwarded({"for=192.0.2.1;host=\"a;for=198.51.100.1\""}), "192.0.2.1");
  EXPECT_EQ(by_forwarded({"for=192.0.2.1;host=\"a\\\\\", for=\"10.0.0.2\""}), "192.0.2.1");
}

// Bounds.

TEST(ClientIp, PassesNoMoreTrustedProxiesThanTheMaximum) {
  EXPECT_EQ(by_x_forwarded_for({"192.0.2.1," + repeated("10.0.0.3,", kHopsMax - 2) + "10.0.0.2"}), "192.0.2.1");
  EXPECT_EQ(by_x_forwarded_for({"192.0.2.1," + repeated("10.0.0.3,", kHopsMax - 1) + "10.0.0.2"}), "10.0.0.3");
  EXPECT_EQ(by_x_forwarded_for({"192.0.2.1," + repeated("10.0.0.3,", 10'000) + "10.0.0.2"}), "10.0.0.3");
}

TEST(ClientIp, RefusesAnElementLongerThanTheMaximum) {
  const std::string blanks(kElementBytesMax, ' ');
  EXPECT_EQ(by_x_forwarded_for({"192.0.2.1" + blanks.substr(9)}), "192.0.2.1");
  EXPECT_EQ(by_x_forwarded_for({"192.0.2.1" + blanks.substr(8)}), kPeer);
  EXPECT_EQ(by_x_forwarded_for({"192.0.2.1" + blanks + ", 10.0.0.2"}), "10.0.0.2");
  const std::string host(kElementBytesMax - std::strlen("for=192.0.2.1;host=\"\""), 'a');
  EXPECT_EQ(by_forwarded({"for=192.0.2.1;host=\"" + host + '"'}), "192.0.2.1");
  EXPECT_EQ(by_forwarded({"for=192.0.2.1;host=\"a" + host + '"'}), kPeer);
  EXPECT_EQ(by_forwarded({"for=192.0.2.1;host=\"" + repeated("\\\\", 1 << 19) + '"'}), kPeer);
  EXPECT_EQ(by_forwarded({"for=192.0.2.1;host=" + repeated("\\\"", 1 << 19)}), kPeer);
  EXPECT_EQ(by_forwarded({"for=\"fe80::1%" + repeated("x", base::kNodeBytesMax - 8) + '"'}), "fe80::1");
  EXPECT_EQ(by_forwarded({"for=\"fe80::1%" + repeated("x", base::kNodeBytesMax - 7) + '"'}), kPeer);
  EXPECT_EQ(client(trust(ForwardedBy::single_header, 0, "A"), {{"A", "192.0.2.1" + blanks}}), kPeer);
}

// A header of 1 MiB of which only the last page is readable.
TEST(ClientIp, ReadsNoMoreOfAHeaderThanTheWalkNeeds) {
  constexpr std::size_t kSize = 1 << 20, kPage = 4096;
  void* const memory = mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  char* const bytes = static_cast<char*>(memory);
  ASSERT_EQ(mprotect(bytes, kSize - kPage, PROT_NONE), 0);
  const auto ends_with = [&](std::string_view end) {
    std::memset(bytes + kSize - kPage, ',', kPage);
    std::ranges::copy(end, bytes + kSize - end.size());
    return std::string_view(bytes, kSize);
  };
  EXPECT_EQ(by_x_forwarded_for({ends_with(",192.0.2.1, 10.0.0.2")}), "192.0.2.1");
  EXPECT_EQ(by_x_forwarded_for({ends_with(",192.0.2.1")}, 1), "192.0.2.1");
  EXPECT_EQ(by_x_forwarded_for({ends_with("")}), kPeer);
  EXPECT_EQ(by_x_forwarded_for({ends_with(std::string(2000, ' '))}), kPeer);
  EXPECT_EQ(by_forwarded({ends_with(",for=192.0.2.1, for=\"10.0.0.2\"")}), "192.0.2.1");
  EXPECT_EQ(by_forwarded({ends_with("\"")}), kPeer);
  EXPECT_EQ(by_forwarded({ends_with(std::string(2000, '\\') + '"')}), kPeer);
  EXPECT_EQ(client(trust(ForwardedBy::single_header, 0, "A"), {{"A", ends_with("192.0.2.1")}}), kPeer);
  munmap(memory, kSize);
}

// The rule as the catalogue states it: join the lines, split at commas, append the peer, then walk.
base::IpAddress walk(const base::IpAddress& peer, const Headers& headers, const ProxyTrust& trusted) {
  std::string joined;
  bool is_there = false;
  for (const Attribute& header : headers) {
    if (is_there) joined += ',';
    joined += header.value;
    is_there = true;
  }
  std::vector<std::optional<base::IpAddress>> chain;
  for (std::size_t at = 0; is_there && at <= joined.size();) {
    const std::size_t comma = std::min(joined.find(',', at), joined.size());
    chain.push_back(base::parse_node(std::string_view(joined).substr(at, comma - at)));
    at = comma + 1;
  }
  if (!trusted.proxies.contains(peer)) return peer;
  if (trusted.hops > 0) return chain.size() < trusted.hops ? peer : chain[chain.size() - trusted.hops].value_or(peer);
  base::IpAddress last = peer;
  for (; !chain.empty() && chain.back() && trusted.proxies.contains(last); chain.pop_back()) last = *chain.back();
  return last;
}

TEST(ClientIp, AgreesWithAWalkOverTheWholeChain) {
  auto random = test::seeded();
  const std::string_view pieces[] = {
      "10.0.0.2", "10.0.0.3:80", "192.0.2.1", "[2001:db8:ffff::1]:9", "2001:db8::1", "x", "", " ", ",", ", "};
  int others = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::vector<std::string> lines(static_cast<std::size_t>(test::pick(random, 0, 3)));
    for (std::string& line : lines) {
      for (std::int64_t n = test::pick(random, 0, 9); n > 0; --n) {
        line += pieces[static_cast<std::size_t>(test::pick(random, 0, std::ssize(pieces) - 1))];
        if (test::pick(random, 0, 3) > 0) line += ',';
      }
    }
    Headers headers;
    for (const std::string& line : lines) headers.push_back({"X-Forwarded-For", line});
    const ProxyTrust trusted = trust(ForwardedBy::x_forwarded_for,
                                     static_cast<unsigned>(std::max<std::int64_t>(0, test::pick(random, -4, 4))));
    const base::IpAddress found = client_ip(address_of(kPeer), headers, trusted);
    ASSERT_EQ(found, walk(address_of(kPeer), headers, trusted))
        << testing::PrintToString(lines) << " hops " << trusted.hops;
    others += found == address_of(kPeer) ? 0 : 1;
  }
  EXPECT_GT(others, 2000);
}

}  // namespace
}  // namespace weir::policy
