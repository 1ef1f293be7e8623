// Tests heads and chunks: what is read, what is refused, and that a result for a part of the bytes is never revised.
#include "protocol/http1.h"

#include <gtest/gtest.h>

#include <string>

namespace weir::protocol {
namespace {

std::string head_result(std::string_view bytes) {
  HttpHead head;
  HttpRefusal refusal;
  switch (read_head(bytes, head, refusal)) {
    case HttpRead::done:
      return "done " + std::to_string(head.size);
    case HttpRead::need_more:
      return "more";
    case HttpRead::refused:
      break;
  }
  return std::to_string(refusal.status) + " " + refusal.detail;
}

std::string with(std::string_view fields) { return "GET / HTTP/1.1\r\nHost: x\r\n" + std::string(fields) + "\r\n"; }

TEST(Http1, ReadsAHeadInPlace) {
  const std::string bytes =
      "POST /a?b=c HTTP/1.1\r\nHost: x\r\nContent-Length:\t 12 \r\nX-Empty:\r\nX-T: a\tb c\r\n\r\nbody";
  HttpHead head;
  HttpRefusal refusal;
  ASSERT_EQ(read_head(bytes, head, refusal), HttpRead::done) << refusal.detail;
  EXPECT_EQ(head.method, "POST");
  EXPECT_EQ(head.target, "/a?b=c");
  EXPECT_EQ(head.size, bytes.size() - 4);
  EXPECT_EQ(head.body, HttpBody::sized);
  EXPECT_EQ(head.body_size, 12u);
  ASSERT_EQ(head.fields.size(), 4u);
  EXPECT_EQ(head.fields[1].value, "12");
  EXPECT_EQ(field_of(head.fields, "x-empty"), "");
  EXPECT_EQ(field_of(head.fields, "x-t"), "a\tb c");
  EXPECT_EQ(head.method.data(), bytes.data());
}

TEST(Http1, KnowsWhetherTheConnectionStaysOpen) {
  const auto keeps = [](std::string_view version, std::string_view fields) {
    HttpHead head;
    HttpRefusal refusal;
    const std::string bytes = "GET / " + std::string(version) + "\r\nHost: x\r\n" + std::string(fields) + "\r\n";
    EXPECT_EQ(read_head(bytes, head, refusal), HttpRead::done) << refusal.detail;
    return head.keeps_alive;
  };
  EXPECT_TRUE(keeps("HTTP/1.1", ""));
  EXPECT_TRUE(keeps("HTTP/1.1", "Connection: Upgrade, x\r\n"));
  EXPECT_FALSE(keeps("HTTP/1.1", "Connection: CLOSE\r\n"));
  EXPECT_FALSE(keeps("HTTP/1.1", "Connection: a, close ,b\r\n"));
  EXPECT_FALSE(keeps("HTTP/1.1", "Connection: keep-alive\r\nConnection: close\r\n"));
  EXPECT_FALSE(keeps("HTTP/1.0", ""));
  EXPECT_TRUE(keeps("HTTP/1.0", "Connection: Keep-Alive\r\n"));
}

TEST(Http1, RefusesWhatCouldBeReadInTwoWays) {
  for (const char* bytes : {"GET / HTTP/1.1\nHost: x\n\n", "GET / HTTP/1.1\r\nHost: x\n\r\n", "GET  / HTTP/1.1\r\n",
                            "GET /a b HTTP/1.1\r\n", "GET /\tHTTP/1.1\r\n", " GET / HTTP/1.1\r\n",
                            "GET / HTTP/1.1 \r\n", "GET / http/1.1\r\n", "GET / HTTP/1.10\r\n", "G(T / HTTP/1.1\r\n",
                            "GET /\x7f HTTP/1.1\r\n", "GET / HTTP/1.1\rX", "GET HTTP/1.1\r\n"}) {
    EXPECT_EQ(head_result(bytes).substr(0, 4), "400 ") << bytes;
  }
  for (const char* fields :
       {" folded: x\r\n", "X: a\r\n b\r\n", "X : a\r\n", "no colon\r\n", ": x\r\n", "X: a\rb\r\n", "X: a\x01\r\n",
        "X: a\x7f\r\n", "X\xc3: a\r\n", "Host: y\r\n", "Content-Length: 1\r\nContent-Length: 1\r\n",
        "Content-Length: 1, 1\r\n", "Content-Length: +1\r\n", "Content-Length: 0x1\r\n", "Content-Length:\r\n",
        "Content-Length: 99999999999999999999\r\n", "Transfer-Encoding: chunked\r\nContent-Length: 1\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: \x0b"
        "chunked\r\n"}) {
    EXPECT_EQ(head_result(with(fields)).substr(0, 4), "400 ") << fields;
  }
  EXPECT_EQ(head_result("GET / HTTP/1.1\r\n\r\n"), "400 HTTP/1.1 needs exactly one Host header");
  EXPECT_EQ(head_result("GET / HTTP/1.0\r\n\r\n"), "done 18");
  EXPECT_EQ(head_result(with("X: gr\xc3\xbc\xc3\x9f\r\n")).substr(0, 4), "done");
}

TEST(Http1, BoundsAHeadExactly) {
  const std::string longest = with("X: " + std::string(kHttpHeaderMax - with("X: \r\n").size(), 'x') + "\r\n");
  ASSERT_EQ(longest.size(), kHttpHeaderMax);
  EXPECT_EQ(head_result(longest), "done " + std::to_string(kHttpHeaderMax));
  const std::string longer = with("X: " + std::string(kHttpHeaderMax - with("X: \r\n").size() + 1, 'x') + "\r\n");
  EXPECT_EQ(head_result(longer).substr(0, 4), "431 ");
  std::string fields;
  for (std::size_t i = 1; i < kHttpFieldsMax; ++i) fields += "a:\r\n";
  EXPECT_EQ(head_result(with(fields)).substr(0, 4), "done");
  EXPECT_EQ(head_result(with(fields + "a:\r\n")).substr(0, 4), "431 ");
}

TEST(Http1, NeverRevisesTheResultForAPart) {
  const std::string too_much(kHttpHeaderMax + 800, 'x');
  for (const std::string& bytes :
       {with("X: a\r\nTransfer-Encoding: gzip, chunked\r\n"),
        with("X: a\x01"
             "b\r\n\x02"),
        with("X y\r\nZ : \r\n"), std::string("GET / HTTP/2.0\r\n\x01"), std::string("PRI * HTTP/2.0\r\n\r\n"),
        with(too_much), too_much, with("X: " + too_much + "\x01"), with("A:b\r\n")}) {
    const std::string all = head_result(bytes);
    for (std::size_t size = 1; size<bytes.size(); size += size> 200 && size < kHttpHeaderMax - 50 ? 97 : 1) {
      const std::string part = head_result(std::string_view(bytes).substr(0, size));
      ASSERT_TRUE(part == "more" || part == all) << size << " of\n" << bytes << "\n" << part << "\n" << all;
    }
  }
}

TEST(Http1, FindsControlCharactersAtEveryPosition) {
  for (std::size_t size = 1; size < 40; ++size) {
    for (std::size_t at = 0; at < size; ++at) {
      for (const char c : {'\0', '\x1f', '\x7f', '\n', '\v'}) {
        std::string value(size, 'a');
        value[at] = c;
        EXPECT_EQ(head_result(with("X: " + value + "\r\n")).substr(0, 4), "400 ") << size << " " << at;
        value[at] = static_cast<char>(c | '\x80');
        EXPECT_EQ(head_result(with("X: " + value + "\r\n")).substr(0, 4), "done") << size << " " << at;
      }
    }
  }
}

struct Joined {
  std::string body;
  std::string result;
  std::size_t consumed = 0;
};

// Decodes the chunks in pieces of `step` bytes; bytes that were not consumed are passed again.
Joined join(std::string_view bytes, std::size_t step, std::size_t body_max = 100) {
  ChunkedBody chunks;
  Joined out;
  std::string pending;
  for (std::size_t at = 0; at < bytes.size(); at += step) {
    pending.append(bytes.substr(at, step));
    std::size_t consumed = 0;
    HttpRefusal refusal;
    const HttpRead read = chunks.read(pending, body_max, out.body, consumed, refusal);
    pending.erase(0, consumed);
    out.consumed += consumed;
    if (read == HttpRead::refused) out.result = std::to_string(refusal.status);
    if (read == HttpRead::done) out.result = "done";
    if (read != HttpRead::need_more) return out;
  }
  out.result = "more";
  return out;
}

TEST(Http1, JoinsChunksHoweverTheyAreSplit) {
  const std::string bytes = "3\r\nabc\r\nA;x=\"y\"\r\n0123456789\r\n00\r\nX-T: 1\r\n\r\n";
  for (std::size_t step = 1; step <= bytes.size() + 4; ++step) {
    const Joined joined = join(bytes + "GET ", step);
    EXPECT_EQ(joined.body, "abc0123456789");
    EXPECT_EQ(joined.result, "done");
    EXPECT_EQ(joined.consumed, bytes.size()) << step;
  }
}

TEST(Http1, RefusesInvalidChunks) {
  for (const char* bytes : {"\r\n", "x\r\n", "-1\r\n", "0x1\r\n", "3\nabc", "3\r\nabcd\r\n", "3\r\nabc\n", ";x\r\n",
                            "ffffffffffffffffff\r\n", "0\r\nno field\r\n", "0\r\n: x\r\n", "1\r\r",
                            "5 anything\r\nabcde\r\n", "5\t6\r\n", "5 6;x\r\n"}) {
    for (const std::size_t step : {std::size_t{1}, std::size_t{100}})
      EXPECT_EQ(join(bytes, step).result, "400") << bytes;
  }
  for (const char* blanks : {"1 \r\n", "1\t;x\r\n", "1 ; x=y\r\n"}) EXPECT_EQ(join(blanks, 1).result, "more") << blanks;
  EXPECT_EQ(join("64\r\n", 1).result, "more");
  EXPECT_EQ(join("65\r\n", 1).result, "413");
  EXPECT_EQ(join("64\r\n" + std::string(100, 'x') + "\r\n1\r\n", 7).result, "413");
  EXPECT_EQ(join("1;" + std::string(kHttpHeaderMax, 'x'), 50).result, "431");
  std::string trailer = "0\r\n";
  for (int i = 0; i < 3000; ++i) trailer += "X-T: 123456\r\n";
  EXPECT_EQ(join(trailer, 50).result, "431");
}

}  // namespace
}  // namespace weir::protocol
