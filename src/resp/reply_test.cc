// Tests every type of reply and every bound, and that split and whole input give the same values.
#include "resp/reply.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace weir::resp {
namespace {

// Returns the value in a readable form: ("a" 1 null).
std::string show(const Value& value) {
  switch (value.type) {
    case Type::simple:
      return "+" + value.text;
    case Type::error:
      return "-" + value.text;
    case Type::integer:
      return std::to_string(value.integer);
    case Type::bulk:
      return '"' + value.text + '"';
    case Type::null:
      return "null";
    case Type::boolean:
      return value.integer != 0 ? "true" : "false";
    case Type::real:
      return "," + value.text;
    case Type::big_number:
      return "big" + value.text;
    case Type::array:
    case Type::map:
    case Type::set:
    case Type::push:
      break;
  }
  std::string out = value.type == Type::array ? "("
                    : value.type == Type::map ? "{"
                    : value.type == Type::set ? "~"
                                              : ">";
  for (const Value& item : value.items) out += show(item) + " ";
  return out + ")";
}

std::string read(std::string_view bytes) {
  ReplyParser parser;
  const ParsedReply reply = parser.parse(bytes);
  if (reply.status == Status::bad) return "bad: " + reply.reason;
  if (reply.status == Status::need_more) return "more";
  return show(reply.value) +
         (reply.consumed == bytes.size() ? "" : " left " + std::to_string(bytes.size() - reply.consumed));
}

struct Example {
  std::string bytes;
  std::string shown;
};

const std::vector<Example>& examples() {
  static const std::vector<Example> all = {
      {"+OK\r\n", "+OK"},
      {"-ERR no\r\n", "-ERR no"},
      {":-42\r\n", "-42"},
      {":+7\r\n", "7"},
      {"$5\r\na\r\nbc\r\n", "\"a\r\nbc\""},
      {"$0\r\n\r\n", "\"\""},
      {"$-1\r\n", "null"},
      {"*-1\r\n", "null"},
      {"_\r\n", "null"},
      {"*0\r\n", "()"},
      {"*5\r\n:0\r\n:16\r\n:15\r\n:-1\r\n:2\r\n", "(0 16 15 -1 2 )"},
      {"*2\r\n*1\r\n*0\r\n$1\r\nx\r\n", "((() ) \"x\" )"},
      {"#t\r\n", "true"},
      {"#f\r\n", "false"},
      {",1.5\r\n", ",1.5"},
      {",-inf\r\n", ",-inf"},
      {",nan\r\n", ",nan"},
      {"(-123456789012345678901234567890\r\n", "big-123456789012345678901234567890"},
      {"!5\r\nERR x\r\n", "-ERR x"},
      {"=8\r\ntxt:text\r\n", "\"text\""},
      {"%2\r\n+a\r\n:1\r\n+b\r\n*1\r\n_\r\n", "{+a 1 +b (null ) )"},
      {"~2\r\n:1\r\n:2\r\n", "~1 2 )"},
      {">2\r\n+message\r\n:1\r\n", ">+message 1 )"},
      {"|1\r\n+ttl\r\n:5\r\n*2\r\n:1\r\n|0\r\n:2\r\n", "(1 2 )"},
  };
  return all;
}

TEST(Reply, ReadsEveryType) {
  for (const Example& example : examples()) EXPECT_EQ(read(example.bytes), example.shown) << example.bytes;
}

TEST(Reply, ReadsOneValueAndLeavesTheRest) { EXPECT_EQ(read("+OK\r\n:1\r\n"), "+OK left 4"); }

TEST(Reply, ReadsTheSameHoweverTheBytesAreSplit) {
  for (const Example& example : examples()) {
    for (std::size_t cut = 0; cut < example.bytes.size(); ++cut) {
      ReplyParser parser;
      EXPECT_EQ(parser.parse(std::string_view(example.bytes).substr(0, cut)).status, Status::need_more);
      const ParsedReply reply = parser.parse(example.bytes);
      ASSERT_EQ(reply.status, Status::done) << example.bytes << " cut at " << cut;
      EXPECT_EQ(show(reply.value), example.shown);
      EXPECT_EQ(reply.consumed, example.bytes.size());
    }
    ReplyParser parser;
    for (std::size_t size = 0; size < example.bytes.size(); ++size) {
      ASSERT_EQ(parser.parse(std::string_view(example.bytes).substr(0, size)).status, Status::need_more);
    }
    EXPECT_EQ(show(parser.parse(example.bytes).value), example.shown);
  }
}

// As for requests: the parser does not notice a line end that is inserted before its position.
TEST(Reply, SearchesNoByteOfALineTwice) {
  ReplyParser parser;
  ASSERT_EQ(parser.parse("+11111111").status, Status::need_more);
  EXPECT_EQ(parser.parse("+1\r\n1111111").status, Status::need_more);
}

TEST(Reply, RefusesWhatIsNotAReply) {
  for (const char* bad : {"HTTP/1.1 400 Bad Request\r\n", "\x16\x03", "\n", "+OK\n", "#y\r\n", "_x\r\n", ":x\r\n",
                          ":\r\n", ",\r\n", ",1x\r\n", "(1x\r\n"}) {
    EXPECT_EQ(read(bad).substr(0, 4), "bad:") << bad;
  }
  for (const char* bad :
       {"$x\r\n", "$-2\r\n", "$?\r\n", "$3\r\nabcd\r\n", "=2\r\nab\r\n", "*-2\r\n", "*x\r\n", "*?\r\n", "%-1\r\n"}) {
    EXPECT_EQ(read(bad).substr(0, 4), "bad:") << bad;
  }
}

TEST(Reply, BoundsDepthCountAndSize) {
  std::string deep;
  for (std::size_t i = 0; i < kReplyDepthMax; ++i) deep += "*1\r\n";
  EXPECT_EQ(read(deep), "more");
  EXPECT_EQ(read(deep + "*1\r\n"), "bad: the reply is nested too deeply");
  EXPECT_EQ(read("*65537\r\n").substr(0, 4), "bad:");
  std::string many = "*2\r\n*65535\r\n";
  for (int i = 0; i < 65'535; ++i) many += ":1\r\n";
  EXPECT_EQ(read(many), "bad: the reply has too many values");
  EXPECT_EQ(read("$8388609\r\n").substr(0, 4), "bad:");
  EXPECT_EQ(read("+" + std::string(kLineMax + 1, 'x')).substr(0, 4), "bad:");

  const std::string blob = "$4194304\r\n" + std::string(std::size_t{4} << 20, 'x') + "\r\n";
  EXPECT_EQ(read("*2\r\n" + blob + blob), "bad: the reply is larger than 8388608 bytes");
  EXPECT_EQ(read("*2\r\n" + blob + blob.substr(0, blob.size() - 1)), "bad: the reply is larger than 8388608 bytes");
}

TEST(Reply, StartsAgainAfterAnError) {
  ReplyParser parser;
  EXPECT_EQ(parser.parse("*2\r\n:1\r\n?").status, Status::bad);
  const ParsedReply reply = parser.parse("+OK\r\n");
  ASSERT_EQ(reply.status, Status::done);
  EXPECT_EQ(show(reply.value), "+OK");
}

}  // namespace
}  // namespace weir::resp
