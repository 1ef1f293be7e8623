// Tests which spellings of a path match the same rule, and which do not; then queries.
//
// PATH-1: rack-attack before 4.3.1 let /login/ pass a throttle for /login. The table contains that case and similar
// ones.
#include "policy/path.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/nearest.h"
#include "seed.h"
#include "slow_path.h"

namespace weir::policy {
namespace {

using namespace std::string_view_literals;

std::string normal(std::string_view target, PathCase letters = PathCase::folded) {
  std::string scratch = "left from before";
  return std::string(normal_path(target, letters, scratch));
}

struct Spelling {
  std::string_view target, path;
};

TEST(Path, HasOneFormForAllSpellingsOfAPage) {
  for (const std::string_view target :
       {"/login",         "/login/",       "/login//",       "//login",       "///login",    "/LOGIN",
        "/Login/",        "/./login",      "/login/.",       "/login/./",     "/x/../login", "/login/x/..",
        "/../login",      "/login%2f",     "/login%2F",      "%2flogin",      "/%2flogin",   "/%6cogin",
        "/%4cOGIN",       "/%2e/login",    "/x/%2E./login",  "/x/..%2flogin", "\\login",     "/\\login",
        "/login\\",       "/x\\..\\login", "/x/..%5clogin",  "/login;",       "/;x/login",   "/login/;x",
        "/.;x/login",     "/x/..;/login",  "/x/.%2e;/login", "/login?",       "/login?x=1",  "/login/?x=1",
        "/login?x=/../y", "/login#top",    "/login#top?x",   "/login?x#top",  "login",       "./login",
        "../login",       "http:///login"}) {
    EXPECT_EQ(normal(target), "/login") << target;
  }
  for (const std::string_view target :
       {"/../../../login", "/a/b/../../login", "/a/b/../../../login", "/x/%2e%2e/login", "/x%2f..%2flogin",
        "/login;jsessionid=1", "/login;a=1;b=2/", "/login%3bjsessionid=1", "/x/..;a=b/login", "/x/%2e%2e%3b/login",
        "http://host/login", "HTTP://HOST/LOGIN", "http://[::1]:80/login", "http://host\\login",
        "ws+x-1.0://host/login"}) {
    EXPECT_EQ(normal(target), "/login") << target;
  }
  EXPECT_EQ(normal("https://user:secret@host:8443//login/?x=1"), "/login");
  EXPECT_EQ(normal("/login/..?x/login"), "/");
  EXPECT_EQ(normal("http://host/http://other/login"), "/http:/other/login");
}

TEST(Path, DistinguishesDifferentPages) {
  for (const std::string_view target : {"/", "//", "/.", "/..", "/;x", "?x=1", "#top", "/?x=1", "/#top", "http://host",
                                        "http://host?x=/login", "http://host#/login"}) {
    EXPECT_EQ(normal(target), "/") << target;
  }
  const Spelling spellings[] = {
      {"*", "/*"},
      {"/login%20", "/login "},
      {"/login%3fx=1", "/login?x=1"},
      {"/login%23top", "/login#top"},
      {"/login%252f", "/login%2f"},
      {"/x/%252e%252e/login", "/x/%2e%2e/login"},
      {"/login%", "/login%"},
      {"/login%2", "/login%2"},
      {"/login%zz", "/login%zz"},
      {"/login%2g", "/login%2g"},
      {"/login%%2f", "/login%"},
      {"/login%u002f", "/login%u002f"},
      {"/login%00", "/login\0"sv},
      {"/login%0a%0D", "/login\n\r"},
      {"/login%c0%af", "/login\xc0\xaf"},
      {"/%C3%89", "/\xc3\x89"},
      {"/login+x", "/login+x"},
      {"/...", "/..."},
      {"/a/.../login", "/a/.../login"},
      {"/.well-known/x", "/.well-known/x"},
      {"/..x/login", "/..x/login"},
      {"/x../login", "/x../login"},
      {"/x./login", "/x./login"},
      {"/a/../b/./c//d", "/b/c/d"},
      {"/api;v=1/users;id=2/x", "/api/users/x"},
      {"/a;b%2f../login", "/login"},
      {"http:/login", "/http:/login"},
      {"http:login", "/http:login"},
      {"://host/login", "/:/host/login"},
      {"1http://host/login", "/1http:/host/login"},
      {"/http://host/login", "/http:/host/login"},
  };
  for (const auto& [target, path] : spellings) EXPECT_EQ(normal(target), path) << target;
}

TEST(Path, KeepsUpperCaseIfAsked) {
  EXPECT_EQ(normal("/API/Login", PathCase::kept), "/API/Login");
  EXPECT_EQ(normal("//API/%4cogin/", PathCase::kept), "/API/Login");
  EXPECT_EQ(normal("HTTPS://host/API", PathCase::kept), "/API");
}

TEST(Path, IsEmptyIfItIsUnknown) { EXPECT_EQ(normal(""), ""); }

TEST(Path, IsAViewOfATargetThatIsNormalAlready) {
  for (const std::string_view target : {"/", "/?x", "/api/search", "/api/v1/users/12345/orders?x=1", "/.a/..b#x"}) {
    std::string scratch;
    const std::string_view path = normal_path(target, PathCase::folded, scratch);
    EXPECT_EQ(path.data(), target.data()) << target;
    EXPECT_TRUE(scratch.empty()) << target;
  }
  std::string scratch;
  const std::string_view upper = "/API";
  EXPECT_EQ(normal_path(upper, PathCase::kept, scratch).data(), upper.data());
  EXPECT_EQ(normal_path(upper, PathCase::folded, scratch).data(), scratch.data());
}

TEST(Path, AgreesWithASlowReaderAndDoesNotChangeWhenNormalizedAgain) {
  auto random = test::seeded();
  const std::string_view parts[] = {"/",  "/", ".",   "..",  "a", "B",  "%2e", "%2f", "%5C",
                                    "\\", ";", "%3b", "%25", "%", "2f", "?",   "#",   " "};
  for (int round = 0; round < 100'000; ++round) {
    std::string target = test::pick(random, 0, 3) > 0 ? "/" : "";
    for (auto count = test::pick(random, 0, 9); count > 0; --count) {
      target += parts[static_cast<std::size_t>(test::pick(random, 0, std::ssize(parts) - 1))];
    }
    for (const PathCase letters : {PathCase::folded, PathCase::kept}) {
      const std::string path = normal(target, letters);
      ASSERT_EQ(path, test::slow_read(target, letters == PathCase::kept).path) << target;
      ASSERT_EQ(path.find(';'), path.npos) << target;
      if (path.find_first_of("%?#") == path.npos) {
        ASSERT_EQ(normal(path, letters), path) << target;
      }
    }
  }
}

TEST(Path, ResolvesVeryManySegments) {  // a quadratic algorithm would take minutes
  std::string target;
  for (int i = 0; i < 200'000; ++i) target += "/a";
  for (int i = 0; i < 199'999; ++i) target += "/..";
  EXPECT_EQ(normal(target + "/B"), "/a/b");
  std::string seesaw;
  for (int i = 0; i < 200'000; ++i) seesaw += "/a/..";
  EXPECT_EQ(normal(seesaw), "/");
}

TEST(Path, SegmentsCanBeTakenFromBothEnds) {
  std::string_view path = "/a/bc/d";
  EXPECT_EQ(take_first_segment(path), "a");
  EXPECT_EQ(path, "/bc/d");
  EXPECT_EQ(take_last_segment(path), "d");
  EXPECT_EQ(path, "/bc");
  std::string_view same = path;
  EXPECT_EQ(take_first_segment(path), "bc");
  EXPECT_EQ(path, "");
  EXPECT_EQ(take_last_segment(same), "bc");
  EXPECT_EQ(same, "");
}

TEST(Query, BeginsAfterTheFirstQuestionMarkAndEndsBeforeTheFragment) {
  EXPECT_EQ(query_of("/a"), "");
  EXPECT_EQ(query_of("/a?"), "");
  EXPECT_EQ(query_of("/a?x=1"), "x=1");
  EXPECT_EQ(query_of("/a?x=1?y"), "x=1?y");
  EXPECT_EQ(query_of("/a?x=1#y"), "x=1");
  EXPECT_EQ(query_of("/a#y?x=1"), "");
  EXPECT_EQ(query_of("http://host?x"), "x");
  EXPECT_EQ(query_of(""), "");
}

std::vector<std::string> values(std::string_view query, std::string_view name) {
  std::vector<std::string> all;
  std::string scratch;
  for (QueryValues each(query, name); const auto value = each.next(scratch);) all.emplace_back(*value);
  return all;
}

TEST(Query, HasTheValuesOfAParameterDecodedAndInOrder) {
  using Values = std::vector<std::string>;
  EXPECT_EQ(values("a=1&b=2&a=3", "a"), (Values{"1", "3"}));
  EXPECT_EQ(values("a=1&a&a=", "a"), (Values{"1", "", ""}));
  EXPECT_EQ(values("a=b=c", "a"), (Values{"b=c"}));
  EXPECT_EQ(values("aa=1&A=2&ba=3", "a"), Values{});
  EXPECT_EQ(values("%61=1&%6%31=2", "a"), (Values{"1"}));
  EXPECT_EQ(values("a+b=1&a%20b=2", "a b"), (Values{"1", "2"}));
  EXPECT_EQ(values("a=x+y%2Bz%26%3d%00", "a"), (Values{std::string("x y+z&=\0", 8)}));
  EXPECT_EQ(values("a=100%&a=%zz&a=%4", "a"), (Values{"100%", "%zz", "%4"}));
  EXPECT_EQ(values("&&a=1&&", "a"), (Values{"1"}));
  EXPECT_EQ(values("&&", ""), Values{});
  EXPECT_EQ(values("=1&=2", ""), (Values{"1", "2"}));
  EXPECT_EQ(values("", "a"), Values{});
}

TEST(Query, FindsTheFirstValueAndAnyMatchingValue) {
  std::string scratch;
  EXPECT_EQ(query_value("b=1&a=x%20y&a=z", "a", scratch), "x y");
  EXPECT_EQ(query_value("b=1", "a", scratch), std::nullopt);
  const auto is_z = [](std::string_view value) { return value == "z"; };
  EXPECT_TRUE(any_query_value("a=x&a=%7a", "a", scratch, is_z));
  EXPECT_FALSE(any_query_value("a=x&b=z", "a", scratch, is_z));
}

}  // namespace
}  // namespace weir::policy
