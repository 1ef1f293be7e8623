// Tests the edge cases of Redis and our bounds, and that split and whole input give the same result.
#include "resp/request.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "resp/number.h"
#include "resp/writer.h"

namespace weir::resp {
namespace {

using Words = std::vector<std::string>;
using namespace std::string_literals;

// What a connection would receive: the commands that were parsed, and the error that ended it.
struct Received {
  std::vector<Words> commands;
  std::string error;
  std::size_t left = 0;  // bytes that wait for more

  friend bool operator==(const Received&, const Received&) = default;
};

void PrintTo(const Received& received, std::ostream* out) {
  for (const Words& words : received.commands) {
    *out << "[";
    for (const std::string& word : words) *out << " '" << word.substr(0, 60) << "'";
    *out << " ]";
  }
  *out << " error '" << received.error << "' left " << received.left;
}

class Connection {
 public:
  void feed(std::string_view bytes) {
    if (!received_.error.empty()) return;
    pending_.append(bytes);
    while (true) {
      const ParsedRequest request = parser_.parse(pending_);
      if (request.status == Status::need_more) break;
      if (request.status == Status::bad) {
        received_.error = std::string(request.reason);
        pending_.clear();
        break;
      }
      ASSERT_GT(request.consumed, 0u);
      ASSERT_LE(request.consumed, pending_.size());
      received_.commands.emplace_back(request.args.begin(), request.args.end());
      pending_.erase(0, request.consumed);
    }
  }
  Received result() {
    received_.left = pending_.size();
    return received_;
  }

 private:
  RequestParser parser_;
  std::string pending_;
  Received received_;
};

Received receive(std::string_view bytes) {
  Connection connection;
  connection.feed(bytes);
  return connection.result();
}

std::string error_of(std::string_view bytes) { return receive(bytes).error; }

Words only_command(std::string_view bytes) {
  const Received received = receive(bytes);
  EXPECT_EQ(received.error, "");
  EXPECT_EQ(received.commands.size(), 1u) << bytes;
  return received.commands.empty() ? Words{} : received.commands.front();
}

TEST(Request, ReadsAnArrayOfBulkStrings) {
  EXPECT_EQ(only_command("*2\r\n$4\r\nECHO\r\n$5\r\na\r\nbc\r\n"), (Words{"ECHO", "a\r\nbc"}));
  EXPECT_EQ(only_command("*2\r\n$4\r\nECHO\r\n$0\r\n\r\n"), (Words{"ECHO", ""}));
  EXPECT_EQ(only_command("*1\r\n$3\r\n\0\r\n\r\n"s), (Words{"\0\r\n"s}));
}

TEST(Request, ReadsPipelinedRequestsOneAfterTheOther) {
  const Received received = receive("*1\r\n$4\r\nPING\r\nPING hello\r\n*1\r\n$4\r\nQUIT\r\n*1");
  EXPECT_EQ(received.commands, (std::vector<Words>{{"PING"}, {"PING", "hello"}, {"QUIT"}}));
  EXPECT_EQ(received.left, 2u);
}

TEST(Request, IgnoresEmptyRequests) {
  for (const char* nothing : {"\r\n", "\n", "   \r\n", "*0\r\n", "*-1\r\n", "*-7\r\n"}) {
    EXPECT_EQ(only_command(nothing), Words{}) << nothing;
  }
}

TEST(Request, RefusesACountThatIsNoNumber) {
  for (const char* bad : {"*x\r\n", "*\r\n", "*1 \r\n", "*01\r\n", "*+1\r\n", "*-0\r\n", "*--1\r\n", "*1\n",
                          "*99999999999999999999\r\n", "**\r\n"}) {
    EXPECT_EQ(error_of(bad), "Protocol error: invalid multibulk length") << bad;
  }
}

TEST(Request, RefusesTooManyArguments) {
  EXPECT_EQ(error_of("*65\r\n"), "Protocol error: invalid multibulk length: 65 arguments, at most 64 are accepted");
  std::string most = "*64\r\n";
  for (int i = 0; i < 64; ++i) most += "$1\r\na\r\n";
  EXPECT_EQ(only_command(most).size(), 64u);
  std::string line;
  for (int i = 0; i < 64; ++i) line += "a ";
  EXPECT_EQ(only_command(line + "\r\n").size(), 64u);
  EXPECT_EQ(error_of(line + "a\r\n"),
            "Protocol error: invalid multibulk length: over 64 arguments, at most 64 are accepted");
}

TEST(Request, RefusesAnythingButABulkInAnArray) {
  EXPECT_EQ(error_of("*1\r\n:1\r\n"), "Protocol error: expected '$', got ':'");
  EXPECT_EQ(error_of("*2\r\n$1\r\na\r\n*1\r\n"), "Protocol error: expected '$', got '*'");
}

TEST(Request, RefusesALengthThatIsNoNumberOrTooLarge) {
  for (const char* bad : {"*1\r\n$-1\r\n", "*1\r\n$x\r\n", "*1\r\n$\r\n", "*1\r\n$007\r\n", "*1\r\n$1\n"}) {
    EXPECT_EQ(error_of(bad), "Protocol error: invalid bulk length") << bad;
  }
  EXPECT_EQ(error_of("*1\r\n$536870913\r\n"),
            "Protocol error: invalid bulk length: 536870913 bytes, at most 1048576 are accepted");
  EXPECT_EQ(error_of("*1\r\n$1048577\r\n"),
            "Protocol error: invalid bulk length: 1048577 bytes, at most 1048576 are accepted");
}

TEST(Request, RefusesABulkThatIsLongerThanItsLength) {
  EXPECT_EQ(error_of("*1\r\n$4\r\nPINGS\r\n"), "Protocol error: bulk string without CRLF at its end");
}

TEST(Request, TakesTheLargestBulkAndRefusesTheLargestRequestPlusOne) {
  const std::string large(kBulkMax, 'x');
  std::string bytes;
  append_command(bytes, std::vector<std::string_view>{"ECHO", large});
  EXPECT_EQ(only_command(bytes), (Words{"ECHO", large}));
  const std::string medium(kLineMax, 'y');
  bytes.clear();
  append_command(bytes, std::vector<std::string_view>{large, medium});
  EXPECT_EQ(error_of(bytes), "Protocol error: too big request: at most 1114112 bytes are accepted");
  bytes.clear();
  append_command(bytes, std::vector<std::string_view>{large, std::string_view(medium).substr(100)});
  EXPECT_EQ(only_command(bytes).size(), 2u);
}

TEST(Request, RefusesALineThatNeverEnds) {
  const std::string digits(kLineMax, '1');
  EXPECT_EQ(error_of(std::string(kLineMax + 1, 'a')), "Protocol error: too big inline request");
  EXPECT_EQ(error_of("*" + digits), "Protocol error: too big mbulk count string");
  EXPECT_EQ(error_of("*1\r\n$" + digits), "Protocol error: too big bulk count string");
  EXPECT_EQ(receive(std::string(kLineMax, 'a')).left, kLineMax);
  EXPECT_EQ(only_command(std::string(kLineMax, 'a') + "\n").size(), 1u);
  EXPECT_EQ(error_of(std::string(kLineMax + 1, 'a') + "\n"), "Protocol error: too big inline request");
}

TEST(Request, ReadsInlineWordsWithQuotesAndEscapes) {
  EXPECT_EQ(only_command("PING\r\n"), Words{"PING"});
  EXPECT_EQ(only_command("  PING \t hello \n"), (Words{"PING", "hello"}));
  EXPECT_EQ(only_command(R"(ECHO "a b\n\r\t\b\a\x41\x4z\q\"")"
                         "\r\n"),
            (Words{"ECHO", "a b\n\r\t\b\aAx4zq\""}));
  EXPECT_EQ(only_command(R"(ECHO 'it\'s \n' "")"
                         "\r\n"),
            (Words{"ECHO", "it's \\n", ""}));
  EXPECT_EQ(only_command("se\"t k\" 'v'\r\n"), (Words{"set k", "v"}));
  EXPECT_EQ(only_command("\xC3\xA9t\xC3\xA9 \xFF\r\n"), (Words{"\xC3\xA9t\xC3\xA9", "\xFF"}));
}

TEST(Request, RefusesUnbalancedQuotes) {
  for (const char* bad : {"ECHO \"a\r\n", "ECHO 'a\r\n", "ECHO \"a\"b\r\n", "ECHO 'a'b\r\n", "ECHO \"a\\\"\r\n"}) {
    EXPECT_EQ(error_of(bad), "Protocol error: unbalanced quotes in request") << bad;
  }
}

TEST(Request, RefusesAtTheFirstByteWhatIsNotResp) {
  EXPECT_EQ(error_of("\x16\x03\x01\x02"), "Protocol error: this looks like TLS, but this port speaks plain RESP");
  EXPECT_NE(error_of("\x01"), "");
  EXPECT_NE(error_of("\0"s), "");
  EXPECT_EQ(error_of("PING\0x\r\n"s), "Protocol error: NUL byte in inline request");
}

// Each message, in every way to split it in two and byte by byte, must give the same result as in one piece.
TEST(Request, ReadsTheSameHoweverTheBytesAreSplit) {
  const std::vector<std::string> messages = {
      "*2\r\n$4\r\nECHO\r\n$5\r\na\r\nbc\r\n",
      "*1\r\n$4\r\nPING\r\nPING hello\r\n\r\n*0\r\n*-1\r\n*1\r\n$4\r\nQUIT\r\n",
      "CL.THROTTLE \"user 1\" 15 30 60 'x y' \"\\x41\"\r\nPING\n",
      "*1\r\n$-1\r\nPING\r\n",
      "*1\r\n:1\r\n",
      "PING\r\n*x\r\nPING\r\n",
      "PING\r\nECHO \"a\r\nPING\r\n",
      "*1\r\n$4\r\nPINGS\r\n",
      "PING\r\n\x16\x03\x01",
      "*65\r\n$1\r\n",
      "*2\r\n$1\r\na\r\n$9999999\r\n",
  };
  for (const std::string& message : messages) {
    const Received whole = receive(message);
    Connection bytewise;
    for (const char c : message) bytewise.feed({&c, 1});
    EXPECT_EQ(bytewise.result(), whole) << message;
    for (std::size_t cut = 0; cut <= message.size(); ++cut) {
      Connection connection;
      connection.feed(std::string_view(message).substr(0, cut));
      connection.feed(std::string_view(message).substr(cut));
      EXPECT_EQ(connection.result(), whole) << message << " cut at " << cut;
    }
  }
}

// Needs no clock: the parser does not notice a line end that is inserted before its position.
TEST(Request, SearchesNoByteOfALineTwice) {
  for (const std::string start : {"", "*", "*1\r\n$"}) {
    RequestParser parser;
    ASSERT_EQ(parser.parse(start + "11111111").status, Status::need_more);
    EXPECT_EQ(parser.parse(start + "1\r\n1111111").status, Status::need_more) << start;
  }
}

TEST(Request, ReadsTheLargestBulkInSmallPieces) {
  const std::string large(kBulkMax, '\n');
  std::string bytes;
  append_command(bytes, std::vector<std::string_view>{"ECHO", large});
  RequestParser parser;
  for (std::size_t size = 1; size < bytes.size(); size += 8) {
    ASSERT_EQ(parser.parse(std::string_view(bytes).substr(0, size)).status, Status::need_more);
  }
  EXPECT_EQ(parser.parse(bytes).status, Status::done);
}

TEST(Request, GivesUnauthenticatedClientsSmallerBounds) {
  std::string many = "*11\r\n";
  for (int i = 0; i < 11; ++i) many += "$1\r\na\r\n";
  const std::string large = "*1\r\n$16385\r\n" + std::string(16'385, 'x') + "\r\n";
  const std::string most = "*10\r\n" + many.substr(5, 9 * 7) + "$16384\r\n" + std::string(16'384, 'x') + "\r\n";
  RequestParser parser;
  parser.set_trust(Trust::stranger);
  EXPECT_EQ(parser.parse(many).reason, "Protocol error: unauthenticated multibulk length");
  EXPECT_EQ(parser.parse(large).reason, "Protocol error: unauthenticated bulk length");
  EXPECT_EQ(parser.parse(most).args.size(), 10u);
  parser.set_trust(Trust::known);
  EXPECT_EQ(parser.parse(many).args.size(), 11u);
  EXPECT_EQ(parser.parse(large).args.size(), 1u);
}

TEST(Request, DistinguishesInlineRequestsFromArrays) {
  RequestParser parser;
  EXPECT_TRUE(parser.parse("PING a\r\n").is_inline);
  EXPECT_FALSE(parser.parse("*1\r\n$4\r\nPING\r\n").is_inline);
}

TEST(Request, StartsAgainAfterAnError) {
  RequestParser parser;
  EXPECT_EQ(parser.parse("*2\r\n$1\r\na\r\n:").status, Status::bad);
  const ParsedRequest next = parser.parse("*1\r\n$4\r\nPING\r\n");
  ASSERT_EQ(next.status, Status::done);
  EXPECT_EQ(next.args.size(), 1u);
}

TEST(Number, HasOneSpellingOnly) {
  EXPECT_EQ(parse_integer("0"), 0);
  EXPECT_EQ(parse_integer("-12"), -12);
  EXPECT_EQ(parse_integer("9223372036854775807"), INT64_MAX);
  EXPECT_EQ(parse_integer("-9223372036854775808"), INT64_MIN);
  for (const char* bad : {"", "-", "+1", "01", "-0", " 1", "1 ", "1x", "0x1", "9223372036854775808"}) {
    EXPECT_EQ(parse_integer(bad), std::nullopt) << bad;
  }
}

}  // namespace
}  // namespace weir::resp
