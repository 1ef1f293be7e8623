// Tests readings by hand-made cases, and on random targets against a slow reader and models of well-known servers.
#include "policy/path_readings.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "path_readers.h"
#include "seed.h"
#include "slow_path.h"

namespace weir::policy {
namespace {

using Paths = std::vector<std::string>;

std::vector<PathReading> path_readings(std::string_view target, PathCase letters) {
  std::string scratch;
  const std::string_view normal = normal_path(target, letters, scratch);
  std::vector<PathReading> out;
  if (!find_readings(target, normal, letters, out)) out = {{std::string(normal), query_of(target)}};
  return out;
}

Paths paths(std::string_view target, PathCase letters = PathCase::folded) {
  Paths out;
  for (const PathReading& reading : path_readings(target, letters)) out.push_back(reading.path);
  return out;
}

bool reads(std::string_view target, std::string_view path) {
  const Paths all = paths(target);
  return std::ranges::find(all, path) != all.end();
}

TEST(PathReadings, OfAPlainPathAreOne) {
  for (const char* const target :
       {"/", "/api/login", "/API/Login", "/api//login/", "/a%20b/%C3%A9?x=/../y", "/100%25/%", "/.well-known/x",
        "/a/..b/c.", "/a.b/...", "http://host/api/login", "/a?b=;\\%2f"}) {
    EXPECT_EQ(paths(target).size(), 1U) << target;
    std::string scratch;
    EXPECT_EQ(paths(target)[0], normal_path(target, PathCase::folded, scratch)) << target;
  }
}

TEST(PathReadings, FindALoginThatSomeServerServes) {
  for (const char* const target :
       {"//static/api/login", "//x/api/login",     "///x/api/login",    "/\\x/api/login",     "\\\\x\\api\\login",
        "/x\\y/../api/login", "/api/%5c/../login", "/x/..%2fapi/login", "/api;v=1/login;x",   "/api/login%00.png",
        "/api%c0%aflogin",    "/%2e%2e/api/login", "/x/%2e./api/login", "//api/login",        "/api/login#",
        "/api/login#/x",      "/api\\login",       "/%61pi/login",      "/api%3bx/login",     "//x%2fapi/login",
        "//x%5capi/login",    "/%2fx/api/login",   "x:/api/login",      "http:/api/login",    "http:\\api\\login",
        "http:api/login",     "x:%2fapi/login",    "/api/login\xA0",    "/api/login\x85\xA0", "/api/login\t",
        "/api/login/..;/..;"}) {
    EXPECT_TRUE(reads(target, "/api/login")) << target;
  }
  for (const char* const target :
       {"/health#/../api/login", "/api/x//../../login", "/api/x/;/../../login", "/api/x%2f..%2flogin",
        "/x/%c0%ae%c0%ae/api/login", "/static/..;/api/login", "/static%5c..%5capi%5clogin", "http://h\\x/../api/login",
        "http://host//x/api/login", "//x%2fy/api%2flogin", "http://h%2fapi/login", "http://h;x/../api/login",
        "http://\\x%2fapi/login", "http:///x/api/login", "http:////x/api/login", "http:/\\x/api/login",
        "/api/login/..;/..%3b"}) {
    EXPECT_TRUE(reads(target, "/api/login")) << target;
  }
}

TEST(PathReadings, EndBeforeTrailingBlanksThatAreNotPartOfACharacter) {
  EXPECT_EQ(paths("/caf\xC3\xA9\xA0"), (Paths{"/caf\xC3\xA9\xA0", "/caf\xC3\xA9"}));
  EXPECT_EQ(paths("/voil\xC3\xA0"), (Paths{"/voil\xC3\xA0"}));
  EXPECT_EQ(paths("/voil%c3%a0"), (Paths{"/voil\xC3\xA0"}));
  EXPECT_EQ(paths("/wait\xE2\x80\x85"), (Paths{"/wait\xE2\x80\x85"}));
  EXPECT_EQ(paths("/a%20\xA0"), (Paths{"/a \xA0", "/a", "/a "}));
  EXPECT_EQ(paths("/a\xA0/b"), (Paths{"/a\xA0/b"}));
}

TEST(PathReadings, FindALoginBehindAGatewayThatRewritesThePath) {
  const char* const targets[] = {
      "/api/x\\y/../z\\..\\login",       // nginx resolves `..` and keeps `\`, which is a slash in Node
      "/x/..//y/api/login",              // Envoy resolves `..` and keeps the empty segment; Node takes y for a host
      "/api/q//x\\\\..\\..\\..\\login",  // HAProxy merges `//` and keeps `\\`, of which Node removes one
      "/api/login/./..",                 // HAProxy resolves `..` and keeps `.`, which `..` removes
      "/api%%32flogin",                  // HAProxy decodes %32 and nothing else
      "/api%252flogin",                  // nginx by `proxy_pass http://app$uri`, and Apache in part
      "/api%25%32flogin",                // the same nginx config
      "/api/login%3fx",
      "/api/login%23x",
      "/api/login%20",     // the same nginx config; Node and Python read until the blank
      "/api/login%09%a0",  // the same nginx config; Python
      "//x//y/api/login",  // Node behind Node: each removes a host
  };
  for (const char* const target : targets) EXPECT_TRUE(reads(target, "/api/login")) << target;
}

TEST(PathReadings, OfOrdinaryPathsAreFew) {
  for (const char* const target :
       {"/a/../b", "//a/b", "/a//b", "/a;v=1/b", "/projects/group%2fname", "/a/./b", "/files/a%5cb", "/x//../y",
        "/a/b/", "/search/#/..?q=1", "//a/../b", "/a;v=1/../b"}) {
    EXPECT_GE(paths(target).size(), 1U) << target;
    EXPECT_LE(paths(target).size(), 4U) << target;
  }
}

TEST(PathReadings, AreDifferentAndTheNormalOneIsFirst) {
  EXPECT_EQ(paths("/health#/../api/login"), (Paths{"/health", "/api/login", "/health#/../api/login"}));
  EXPECT_EQ(paths("//x/Login"), (Paths{"/x/login", "/login"}));
  EXPECT_EQ(paths("//x/Login", PathCase::kept), (Paths{"/x/Login", "/Login"}));
  EXPECT_EQ(paths("/a;b=1/c"), (Paths{"/a/c", "/a;b=1/c"}));
  EXPECT_EQ(paths("/projects/group%2fname"), (Paths{"/projects/group/name", "/projects/group%2fname"}));
  EXPECT_EQ(paths("/a/../b"), (Paths{"/b", "/a/../b"}));
}

TEST(PathReadings, HaveAQueryEach) {
  const auto readings = path_readings("/search/#/..?q=1", PathCase::folded);
  const std::vector<PathReading> expected = {{"/search", ""}, {"/search", "q=1"}, {"/search/#/..", "q=1"}};
  EXPECT_EQ(readings, expected);
  const std::vector<PathReading> behind = {{"/a", "x=1"}, {"/a", "x=1#&user=bob"}};
  EXPECT_EQ(path_readings("/a?x=1#&user=bob", PathCase::folded), behind);
}

TEST(PathReadings, AreNoneIfThereAreTooMany) {
  EXPECT_TRUE(path_readings("/a;b\\c%2fd/../e%5cf%3bg/#/h//../i%00j%c0%afk", PathCase::folded).empty());
  // Few readings, but finding them takes long.
  std::string target = "/#;\\%5c%3b%2f%00%c0%af/./%2e";
  for (int i = 0; i < 20; ++i) target += "/..";
  target += std::string(8'000, 'a');
  EXPECT_TRUE(path_readings(target, PathCase::folded).empty());
}

std::string random_target(auto& random) {
  static constexpr std::string_view kParts[] = {
      "/",    "/",        "/",      "api", "login",    "x",         "..",           ".",        "/../",     "%2e%2e",
      "%2E",  "//",       "\\",     "%5c", "%2F",      ";",         ";v=1",         "%3b",      "#",        "%23",
      "%00",  "%c0%af",   "%c0%ae", "?",   "?q=1",     "%",         "%zz",          "%25",      "2f",       "%32",
      "%3f",  "%252e",    "A",      "%61", "\xC0\xAF", "%e0%80%af", "%f0%80%80%ae", "\xC3\xA9", "http://h", "http:",
      "\xA0", "\xC3\xA0", "%20",    "%09", "%a0",      "%85"};
  std::string out = test::pick(random, 0, 9) > 0 ? "/" : "";
  for (auto count = test::pick(random, 0, 8); count > 0; --count) {
    out += kParts[static_cast<std::size_t>(test::pick(random, 0, std::ssize(kParts) - 1))];
  }
  return out;
}

TEST(PathReadings, AgreeWithASlowReader) {
  auto random = test::seeded();
  int compared = 0, several = 0;
  for (int round = 0; round < 4'000; ++round) {
    const std::string target = random_target(random);
    const bool is_kept = test::pick(random, 0, 3) == 0;
    const auto slow = test::slow_readings(target, is_kept);
    if (!slow || target.empty()) continue;
    std::vector<PathReading> expected;
    for (const test::SlowReading& reading : *slow) expected.push_back({reading.path, reading.query});
    if (expected.size() > kPathReadingsMax) expected.clear();
    const PathCase letters = is_kept ? PathCase::kept : PathCase::folded;
    ASSERT_EQ(path_readings(target, letters), expected) << target;
    std::string scratch;
    const std::string_view normal = normal_path(target, letters, scratch);
    if (!expected.empty()) {
      ASSERT_EQ(normal, expected[0].path) << target;
    }
    ++compared;
    several += expected.size() > 1;
  }
  EXPECT_GT(compared, 2'000);
  EXPECT_GT(several, 400);
}

TEST(PathReadings, IncludeThatOfEveryKnownServer) {
  auto random = test::seeded();
  int held = 0;
  for (int round = 0; round < 20'000; ++round) {
    const std::string target = random_target(random);
    const Paths all = paths(target);
    if (all.empty()) continue;  // denied
    for (const test::NamedReader& reader : test::kPathReaders) {
      const auto path = reader.read(target);
      if (!path) continue;
      ASSERT_TRUE(std::ranges::find(all, *path) != all.end()) << reader.name << " reads " << *path << " in " << target;
      ++held;
    }
  }
  EXPECT_GT(held, 20'000);
}

}  // namespace
}  // namespace weir::policy
