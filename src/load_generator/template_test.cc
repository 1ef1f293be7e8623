// Tests requests as sent: keys in place, correct lengths, and every key in use.
#include "load_generator/template.h"

#include <gtest/gtest.h>

#include <set>

namespace weir::load_generator {
namespace {

Keys in_turn(std::uint64_t count = 1'000) { return Keys({.count = count, .order = Keys::Order::in_turn}); }

std::string filled(const Template& made, Keys& keys) {
  std::string out;
  made.append_to(out, keys);
  return out;
}

std::string key(std::uint64_t number) {
  char digits[kKeyDigits];
  write_key(digits, number);
  return {digits, kKeyDigits};
}

TEST(Keys, AreElevenDigits) {
  EXPECT_EQ(key(0), "00000000000");
  EXPECT_EQ(key(7), "00000000007");
  EXPECT_EQ(key(12'345'678'901), "12345678901");
  EXPECT_EQ(key(100'000'000), "00100000000");
  EXPECT_EQ(key(kKeysMax), "99999999999");
}

TEST(Keys, AtRandomAreAllDrawnAndNoOthers) {
  Keys keys({.count = 100});
  std::set<std::uint64_t> met;
  for (int i = 0; i < 2'000; ++i) met.insert(keys.next());
  EXPECT_EQ(met.size(), 100U);
  EXPECT_EQ(*met.rbegin(), 99U);
}

TEST(Keys, OfTwoThreadsInOrderAreDrawnOnceEach) {
  std::multiset<std::uint64_t> met;
  for (const std::uint64_t thread : {0U, 1U}) {
    Keys keys({.count = 10, .order = Keys::Order::in_turn, .first = thread, .step = 2});
    for (int i = 0; i < 5; ++i) met.insert(keys.next());
  }
  EXPECT_EQ(met, (std::multiset<std::uint64_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
}

TEST(Templates, WriteTheSameKeyIntoAllHolesOfAPiece) {
  Keys keys = in_turn();
  const Template made("a {n} b {n};");
  EXPECT_EQ(filled(made, keys), "a 00000000000 b 00000000000;");
  EXPECT_EQ(filled(made, keys), "a 00000000001 b 00000000001;");
}

TEST(Templates, AppendToTheBuffer) {
  Keys keys = in_turn();
  std::string out = "x";
  const Template made("<{key}>");
  made.append_to(out, keys);
  made.append_to(out, keys);
  EXPECT_EQ(out, "x<tenant:0042:route:v1:user:00000000000><tenant:0042:route:v1:user:00000000001>");
}

TEST(Templates, OfRespCommandsCountTheBytesOfTheFilledKey) {
  Keys keys = in_turn();
  EXPECT_EQ(filled(resp_template("INCR  c:{n}"), keys), "*2\r\n$4\r\nINCR\r\n$13\r\nc:00000000000\r\n");
  EXPECT_EQ(filled(resp_template("ECHO \"a b\" x"), keys), "*3\r\n$4\r\nECHO\r\n$3\r\na b\r\n$1\r\nx\r\n");
}

TEST(Templates, OfHttpRequestsWithoutBodyHaveNoLength) {
  Keys keys = in_turn();
  const Template made = http_template({.host = "h", .path = "/auth", .headers = {"X-User: {n}"}});
  EXPECT_EQ(filled(made, keys), "GET /auth HTTP/1.1\r\nHost: h\r\nX-User: 00000000000\r\n\r\n");
}

TEST(Templates, OfBatchesDrawAKeyForEachCheckAndCountTheBytes) {
  Keys keys = in_turn();
  const Template made = http_template({.method = "POST", .host = "h", .path = "/v1/checks", .body = "{n}", .batch = 2});
  EXPECT_EQ(filled(made, keys),
            "POST /v1/checks HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\nContent-Length: 36\r\n\r\n"
            "{\"checks\":[00000000000,00000000001]}");
}

}  // namespace
}  // namespace weir::load_generator
