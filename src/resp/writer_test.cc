// Tests the exact bytes in both protocols, and that no text can begin a second line.
#include "resp/writer.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "resp/reply.h"

namespace weir::resp {
namespace {

std::string written(Protocol protocol, const std::function<void(Writer&)>& write) {
  std::string out;
  Writer writer(out, protocol);
  write(writer);
  return out;
}

std::string in2(const std::function<void(Writer&)>& write) { return written(Protocol::resp2, write); }
std::string in3(const std::function<void(Writer&)>& write) { return written(Protocol::resp3, write); }

TEST(Writer, WritesTheTypesOfResp2) {
  EXPECT_EQ(in2([](Writer& w) { w.simple("OK"); }), "+OK\r\n");
  EXPECT_EQ(in2([](Writer& w) { w.error("ERR no"); }), "-ERR no\r\n");
  EXPECT_EQ(in2([](Writer& w) { w.integer(INT64_MIN); }), ":-9223372036854775808\r\n");
  EXPECT_EQ(in2([](Writer& w) { w.bulk("a\r\nb"); }), "$4\r\na\r\nb\r\n");
  EXPECT_EQ(in2([](Writer& w) { w.bulk(""); }), "$0\r\n\r\n");
  EXPECT_EQ(in2([](Writer& w) { w.null(); }), "$-1\r\n");
  EXPECT_EQ(in2([](Writer& w) { w.array(3); }), "*3\r\n");
  EXPECT_EQ(in2([](Writer& w) { w.map(7); }), "*14\r\n");
  EXPECT_EQ(in2([](Writer& w) { w.verbatim("text"); }), "$4\r\ntext\r\n");
}

TEST(Writer, WritesFiveIntegersAtOnce) {
  EXPECT_EQ(in2([](Writer& w) { w.integers({0, 16, 15, -1, 2}); }), "*5\r\n:0\r\n:16\r\n:15\r\n:-1\r\n:2\r\n");
  EXPECT_EQ(in3([](Writer& w) {
              w.integers({INT64_MIN, INT64_MAX, 9, 10, INT64_MIN});
            }),
            "*5\r\n:-9223372036854775808\r\n:9223372036854775807\r\n:9\r\n:10\r\n:-9223372036854775808\r\n");
}

TEST(Writer, WritesMapsNullsAndTextsAsResp3Does) {
  EXPECT_EQ(in3([](Writer& w) { w.map(7); }), "%7\r\n");
  EXPECT_EQ(in3([](Writer& w) { w.null(); }), "_\r\n");
  EXPECT_EQ(in3([](Writer& w) { w.verbatim("text"); }), "=8\r\ntxt:text\r\n");
  EXPECT_EQ(in3([](Writer& w) { w.array(0); }), "*0\r\n");
}

TEST(Writer, LetsNoTextBreakOutOfItsLine) {
  EXPECT_EQ(in2([](Writer& w) { w.error("ERR a\r\n+OK\r\n"); }), "-ERR a  +OK  \r\n");
  for (int byte = 0; byte < 256; ++byte) {
    const std::string text = std::string("ERR ") + static_cast<char>(byte) + "x";
    for (const std::string& line : {in2([&](Writer& w) { w.error(text); }), in3([&](Writer& w) { w.simple(text); })}) {
      EXPECT_EQ(line.size(), 9u) << byte;
      EXPECT_EQ(line.find_first_of("\r\n"), 7u) << byte;
      EXPECT_FALSE(line[5] >= 0 && line[5] < ' ') << byte;
    }
  }
}

TEST(Writer, CutsALongLineBetweenCharacters) {
  const std::string ascii = in2([](Writer& w) { w.error(std::string(5000, 'x')); });
  EXPECT_EQ(ascii.size(), kLineReplyMax + 3);
  std::string umlauts = "x";
  while (umlauts.size() < 5000) umlauts += "\xC3\xBC";
  const std::string cut = in2([&](Writer& w) { w.error(umlauts); });
  EXPECT_EQ(cut.substr(cut.size() - 4), "\xC3\xBC\r\n");
  EXPECT_LE(cut.size(), kLineReplyMax + 3);
  EXPECT_EQ(in2([](Writer& w) { w.error(std::string(5000, '\x80')); }).size(),
            kLineReplyMax);  // no UTF-8: cut anywhere
}

TEST(Writer, WritesACommandAsBulks) {
  std::string out;
  append_command(out, std::vector<std::string_view>{"ECHO", "a b"});
  EXPECT_EQ(out, "*2\r\n$4\r\nECHO\r\n$3\r\na b\r\n");
}

TEST(Writer, IsReadBackByTheReplyParser) {
  for (const Protocol protocol : {Protocol::resp2, Protocol::resp3}) {
    const std::string out = written(protocol, [](Writer& w) {
      w.array(3);
      w.map(1);
      w.bulk("key");
      w.null();
      w.verbatim("text");
      w.error("ERR x");
    });
    ReplyParser parser;
    const ParsedReply reply = parser.parse(out);
    ASSERT_EQ(reply.status, Status::done) << reply.reason;
    EXPECT_EQ(reply.consumed, out.size());
    ASSERT_EQ(reply.value.items.size(), 3u);
    EXPECT_EQ(reply.value.items[0].type, protocol == Protocol::resp3 ? Type::map : Type::array);
    EXPECT_EQ(reply.value.items[0].items[1].type, Type::null);
    EXPECT_EQ(reply.value.items[1].text, "text");
    EXPECT_EQ(reply.value.items[2].type, Type::error);
  }
}

}  // namespace
}  // namespace weir::resp
