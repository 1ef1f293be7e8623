// Tests the body of a check: what is accepted, and the error for each mistake.
#include "protocol/check_json.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weir::protocol {
namespace {

// The result of parsing, with the texts that it refers to.
struct Read {
  std::string body;
  JsonTexts texts;
  CheckItem item;
  Result<void> result;

  explicit Read(std::string_view text, CheckShape shape = CheckShape::check)
      : body(text), result(parse_check(body, shape, item, texts)) {}
};

std::string error_of(std::string_view body, CheckShape shape = CheckShape::check) {
  const Read read(body, shape);
  return read.result ? "no error" : read.result.error().message;
}

// Expects that the message contains each of these.
void expect_error(std::string_view body, std::initializer_list<std::string_view> parts) {
  const std::string message = error_of(body);
  for (const std::string_view part : parts) {
    EXPECT_NE(message.find(part), std::string::npos) << body.substr(0, 200) << "\n  error: " << message;
  }
}

TEST(CheckJson, ReadsAllFourMembers) {
  const Read read(R"({"key":"job:7","limit":"10/s burst 50","algorithm":"leaky_meter","cost":5})");
  ASSERT_TRUE(read.result) << read.result.error().message;
  EXPECT_EQ(read.item.key, "job:7");
  EXPECT_EQ(read.item.cost, 5);
  EXPECT_EQ(read.item.algorithm, Algorithm::leaky_meter);
  EXPECT_EQ(read.item.limit, "10/s burst 50");
  EXPECT_FALSE(read.item.by_rules);
}

TEST(CheckJson, NeedsOnlyKeyAndLimit) {
  const Read read(" { \"limit\" : \"100/minute\",\n \"key\" : \"u\" } \r\n");
  ASSERT_TRUE(read.result) << read.result.error().message;
  EXPECT_EQ(read.item.cost, 1);
  EXPECT_FALSE(read.item.algorithm);
}

TEST(CheckJson, ReadsEscapesAndEveryCharacterOfAKey) {
  const Read read(R"({"key":"a\"\\\/\u00e9\ud83d\ude00\u0000z","\u006cimit":"1/s"})");
  ASSERT_TRUE(read.result) << read.result.error().message;
  EXPECT_EQ(read.item.key, std::string("a\"\\/\xC3\xA9\xF0\x9F\x98\x80\0z", 12));
}

TEST(CheckJson, TakesACostOfAnySignUpTo2To53) {
  EXPECT_EQ(Read(R"({"key":"u","limit":"1/s","cost":0})").item.cost, 0);
  EXPECT_EQ(Read(R"({"key":"u","limit":"1/s","cost":-9007199254740992})").item.cost, -(std::int64_t{1} << 53));
  for (const char* cost : {"9007199254740993", "-9007199254740993", "9223372036854775807", "9223372036854775808",
                           "18446744073709551616", "-99999999999999999999", "123456789012345678901234567890"}) {
    expect_error(std::string(R"({"key":"u","limit":"1/s","cost":)") + cost + "}", {"\"cost\"", cost, "2^53"});
  }
}

TEST(CheckJson, TakesAWholeNumberThatIsWrittenWithAPoint) {
  EXPECT_EQ(Read(R"({"key":"u","limit":"1/s","cost":3087.00})").item.cost, 3087);
}

TEST(CheckJson, RefusesACostThatIsNoWholeNumber) {
  for (const char* cost : {"1.5", "1.01", "1e3", "-0.1", "1.0e1"}) {
    expect_error(std::string(R"({"key":"u","limit":"1/s","cost":)") + cost + "}",
                 {"\"cost\" must be a whole number", "found the number", cost});
  }
}

TEST(CheckJson, NamesAMemberOfTheWrongType) {
  expect_error(R"({"key":7,"limit":"1/s"})", {"\"key\" must be a string", "found the number 7"});
  expect_error(R"({"key":"u","limit":100})", {"\"limit\" must be a string such as \"100/minute\"", "the number 100"});
  expect_error(R"({"key":"u","limit":null})", {"\"limit\"", "found null"});
  expect_error(R"({"key":"u","limit":["1/s"]})", {"\"limit\"", "found an array"});
  expect_error(R"({"key":{"a":1},"limit":"1/s"})", {"\"key\"", "found an object"});
  expect_error(R"({"key":true,"limit":"1/s"})", {"\"key\"", "found true"});
  expect_error(R"({"key":"u","limit":"1/s","cost":"1"})", {"\"cost\"", "found the string '1'"});
  expect_error(R"({"key":"u","limit":"1/s","algorithm":18446744073709551615})", {"\"algorithm\"", "the number 184467"});
}

TEST(CheckJson, SuggestsTheMemberThatWasMeant) {
  expect_error(R"({"key":"u","limt":"1/s"})", {"unknown member 'limt'", "did you mean \"limit\"?"});
  expect_error(R"({"Key":"u","limit":"1/s"})", {"unknown member 'Key'", "did you mean \"key\"?"});
  expect_error(R"({"key":"u","limit":"1/s","frobnicate":1})", {"unknown member 'frobnicate'", "known are"});
  expect_error("{\"" + std::string(100'000, 'x') + "\":1}", {"unknown member", "known are"});
}

TEST(CheckJson, RefusesAMemberGivenTwice) {
  expect_error(R"({"key":"u","limit":"1/s","key":"v"})", {"\"key\" is given twice"});
  expect_error(R"({"key":"u","cost":1,"limit":"1/s","\u0063ost":1})", {"\"cost\" is given twice"});
}

TEST(CheckJson, NamesWhatIsMissing) {
  expect_error("{}", {"\"key\" is missing"});
  expect_error(R"({"key":"u"})", {"\"limit\" is missing"});
  expect_error("", {"the body is empty", "such as {"});
  expect_error(" \n", {"the body is empty"});
}

TEST(CheckJson, RefusesWhatIsNotOneObject) {
  for (const char* body : {"[]", "[1,2]", "1", "\"text\"", "null", "true", "1.5", "18446744073709551615"}) {
    expect_error(body, {"the body must be an object such as"});
  }
  for (const char* body : {"{", "{\"key\"", "{\"key\":\"u\",}", "{'key':'u'}", "key=u&limit=1", "\x16\x03\x01",
                           "{\"key\":\"\xff\"}", "{\"key\":\"a\nb\"}", "nul"}) {
    expect_error(body, {"the body is not JSON", "at byte"});
  }
  expect_error(R"({"key":"u","limit":"1/s"}{})", {"unexpected text after the object, from byte 26"});
  expect_error(R"({"key":"u","limit":"1/s"} x)", {"unexpected text after the object, from byte"});
}

TEST(CheckJson, BoundsTheKey) {
  expect_error(R"({"key":"","limit":"1/s"})", {"\"key\": the key is empty"});
  const std::string longest(4096, 'k');
  EXPECT_EQ(error_of("{\"key\":\"" + longest + "\",\"limit\":\"1/s\"}"), "no error");
  expect_error("{\"key\":\"" + longest + "k\",\"limit\":\"1/s\"}", {"\"key\": the key has 4097 bytes", "at most 4096"});
  expect_error("{\"key\":\"" + std::string(1'000'000, 'k') + "\",\"limit\":\"1/s\"}", {"the key has 1000000 bytes"});
}

TEST(CheckJson, NamesTheAlgorithmThatWasMeant) {
  expect_error(R"({"key":"u","limit":"1/s","algorithm":"tokenbucket"})", {"\"algorithm\": ", "token_bucket"});
}

TEST(CheckJson, BoundsAnId) {
  EXPECT_EQ(Read(R"({"key":"u","limit":"1/s","id":"order-7"})").item.id, "order-7");
  expect_error(R"({"key":"u","limit":"1/s","id":""})", {"\"id\" has 0 bytes; give 1 to 64"});
  expect_error(R"({"key":"u","limit":"1/s","id":")" + std::string(65, 'i') + "\"}", {"\"id\" has 65 bytes"});
}

TEST(CheckJson, KnowsWhatEachKindOfBodyNeeds) {
  EXPECT_EQ(error_of(R"({"id":"7","key":"u","limit":"1/s","cost":3})", CheckShape::settle), "no error");
  EXPECT_EQ(error_of(R"({"id":"7","user":"42"})", CheckShape::settle), "no error");
  EXPECT_NE(error_of(R"({"key":"u","limit":"1/s"})", CheckShape::settle).find("\"id\" is missing"), std::string::npos);
  EXPECT_NE(error_of(R"({"id":"7"})", CheckShape::settle).find("\"key\" is missing"), std::string::npos);
  EXPECT_EQ(error_of(R"({"key":"u","limit":"2 concurrent"})", CheckShape::acquire), "no error");
  EXPECT_NE(error_of(R"({"key":"u"})", CheckShape::acquire).find("\"limit\" is missing"), std::string::npos);
  EXPECT_NE(error_of(R"({"user":"u"})", CheckShape::acquire).find("unknown member 'user'"), std::string::npos);
  EXPECT_EQ(error_of(R"({"key":"u","id":"7"})", CheckShape::release), "no error");
  EXPECT_NE(error_of(R"({"key":"u"})", CheckShape::release).find("\"id\" is missing"), std::string::npos);
  EXPECT_NE(error_of(R"({"key":"u","id":"7","limit":"1/s"})", CheckShape::release).find("unknown member"),
            std::string::npos);
}

TEST(CheckJson, ReportsDeepNestingLikeAnyWrongType) {
  expect_error(std::string(100'000, '['), {"must be an object"});
  std::string nested = "{\"key\":";
  for (int i = 0; i < 50'000; ++i) nested += "{\"a\":";
  expect_error(nested, {"\"key\" must be a string"});
}

TEST(CheckJson, ReadsARequestForTheRules) {
  const Read read(
      R"({"user":"42","api_key":"k","ip":"192.0.2.1","tenant":"acme","plan":"free","method":"GET","host":"h",)"
      R"("path":"/a?b=c","headers":{"x-org":"acme","X-Two":"2"},"entries":{"remote":"1"},"cost":3})");
  ASSERT_TRUE(read.result) << read.result.error().message;
  ASSERT_TRUE(read.item.by_rules);
  const Request request = read.item.request();
  EXPECT_EQ(request.user, "42");
  EXPECT_EQ(request.api_key, "k");
  EXPECT_EQ(request.ip, "192.0.2.1");
  EXPECT_EQ(request.tenant, "acme");
  EXPECT_EQ(request.plan, "free");
  EXPECT_EQ(request.method, "GET");
  EXPECT_EQ(request.host, "h");
  EXPECT_EQ(request.path, "/a?b=c");
  ASSERT_EQ(request.headers.size(), 2U);
  EXPECT_EQ(request.headers[1].name, "X-Two");
  EXPECT_EQ(request.headers[1].value, "2");
  ASSERT_EQ(request.entries.size(), 1U);
  EXPECT_EQ(request.entries[0].name, "remote");
  EXPECT_EQ(request.cost, 3);
}

TEST(CheckJson, TakesALimitOrTheRulesButNotBoth) {
  expect_error(R"({"key":"u","limit":"1/s","user":"42"})", {"\"user\" is for rules", "one or the other"});
  expect_error(R"({"user":"42","algorithm":"token_bucket"})", {"\"user\" is for rules"});
}

TEST(CheckJson, RefusesHeadersThatAreNoTexts) {
  expect_error(R"({"headers":"x"})", {"\"headers\" must be an object of strings", "found the string 'x'"});
  expect_error(R"({"headers":{"a":1}})", {"\"headers\" must be an object of strings", "found the number 1"});
  expect_error(R"({"entries":{"a":{"b":"c"}}})", {"\"entries\"", "found an object"});
  expect_error(R"({"user":{"a":"b"}})", {"\"user\"", "found an object"});
  std::string many = R"({"headers":{)";
  for (int i = 0; i < 257; ++i) many += (i > 0 ? ",\"h" : "\"h") + std::to_string(i) + "\":\"\"";
  expect_error(many + "}}", {"more than 256"});
}

// Returns the keys of a list, `wrong` for each invalid check, and finally the error of the whole list.
std::string list_of(std::string_view body) {
  JsonTexts texts;
  CheckList list(body, texts);
  CheckItem item;
  std::optional<Error> wrong;
  std::string out;
  while (true) {
    const auto more = list.next(item, wrong);
    if (!more) return out + "! " + more.error().message;
    if (!*more) return out;
    out += wrong ? "wrong " : std::string(item.by_rules ? item.user : item.key) + " ";
  }
}

TEST(CheckList, ReadsAnArrayWithAndWithoutAName) {
  EXPECT_EQ(list_of(R"([{"key":"a","limit":"1/s"},{"user":"b"} , {"key":"c","limit":"1/s"}])"), "a b c ");
  EXPECT_EQ(list_of(R"( { "checks" : [ {"key":"a","limit":"1/s"} ] } )"), "a ");
  EXPECT_EQ(list_of("[]"), "");
  EXPECT_EQ(list_of(R"({"checks":[]})"), "");
}

TEST(CheckList, ContinuesAfterAnInvalidCheck) {
  EXPECT_EQ(list_of(R"([{"key":"a","limit":"1/s"},7,{"kye":[{"a":[1,"]"]}]},"x",null,{"key":"c","limit":"1/s"}])"),
            "a wrong wrong wrong wrong c ");
}

TEST(CheckList, RefusesABodyThatIsNotAList) {
  for (const char* body : {"", " "}) EXPECT_EQ(list_of(body).substr(0, 19), "! the body is empty") << body;
  for (const char* body : {"7", "\"x\"", "null"}) {
    EXPECT_EQ(list_of(body).substr(0, 36), "! the body must be an array of check") << body;
  }
  EXPECT_EQ(list_of("{}").substr(0, 21), "! \"checks\" is missing");
  EXPECT_EQ(list_of(R"({"check":[]})").substr(0, 25), "! unknown member 'check';");
  EXPECT_EQ(list_of(R"({"checks":{}})"), "! \"checks\" must be an array, found an object");
  EXPECT_EQ(list_of(R"({"checks":[],"x":1})").substr(0, 20), "! unknown member 'x'");
  EXPECT_EQ(list_of("[] x").substr(0, 34), "! unexpected text after the checks");
  EXPECT_EQ(list_of(std::string("[]\0", 3)).substr(0, 34), "! unexpected text after the checks");
  for (const char* body : {"[", "[{", "[1,", "[1 2]", "[{\"key\":\"\xff\"}]", "{\"checks\":[]", "[,]", "[1,]"}) {
    EXPECT_NE(list_of(body).find("! the body is not JSON"), std::string::npos) << body;
  }
  EXPECT_NE(list_of("[" + std::string(100, '[')).find("nesting is too deep"), std::string::npos);
}

}  // namespace
}  // namespace weir::protocol
