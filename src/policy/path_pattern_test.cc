// Tests patterns: what they match, the error for each mistake, and that text and value convert both ways.
//
// On all small patterns and paths, matches() is compared with a slow matcher that tries everything. On the same small
// worlds, covers() must never claim too much.
#include "policy/path_pattern.h"

#include <gtest/gtest.h>

namespace weir::policy {
namespace {

using Strings = std::vector<std::string>;

PathPattern pattern(std::string_view text, PathCase letters = PathCase::folded) {
  auto parsed = PathPattern::parse(text, letters);
  EXPECT_TRUE(parsed) << text << ": " << parsed.error().message;
  return parsed ? *parsed : *PathPattern::parse("/did-not-parse", letters);
}

bool matches(std::string_view text, std::string_view path) { return pattern(text).matches(path); }

TEST(PathPattern, MatchesASegmentByLiteralStarAndName) {
  EXPECT_TRUE(matches("/api/search", "/api/search"));
  EXPECT_FALSE(matches("/api/search", "/api/searches"));
  EXPECT_FALSE(matches("/api/search", "/api"));
  EXPECT_FALSE(matches("/api/search", "/api/search/x"));
  for (const std::string_view text : {"/users/*", "/users/{id}"}) {
    EXPECT_TRUE(matches(text, "/users/7"));
    EXPECT_FALSE(matches(text, "/users"));
    EXPECT_FALSE(matches(text, "/users/7/x"));
    EXPECT_FALSE(matches(text, "/user/7"));
  }
}

TEST(PathPattern, MatchesWithinASegmentByStars) {
  EXPECT_TRUE(matches("/img-*.png", "/img-1.png"));
  EXPECT_TRUE(matches("/img-*.png", "/img-.png"));
  EXPECT_FALSE(matches("/img-*.png", "/img-1.png.gz"));
  EXPECT_FALSE(matches("/img-*.png", "/img-1/x.png"));
  EXPECT_FALSE(matches("/a*a", "/a"));  // the two ends may not overlap
  EXPECT_TRUE(matches("/*a*b*", "/xaxbx"));
  EXPECT_TRUE(matches("/*a*b*", "/ab"));
  EXPECT_FALSE(matches("/*a*b*", "/ba"));
  EXPECT_TRUE(matches("/*ab*b", "/ababb"));
  EXPECT_FALSE(matches("/*ab*ab", "/xab"));
  EXPECT_TRUE(matches("/x/v*/y", "/x/v1/y"));
}

TEST(PathPattern, MatchesAnyNumberOfSegmentsByTwoStars) {
  for (const std::string_view path : {"/api", "/api/x", "/api/x/y"}) EXPECT_TRUE(matches("/api/**", path)) << path;
  for (const std::string_view path : {"/", "/apis", "/x/api"}) EXPECT_FALSE(matches("/api/**", path)) << path;
  for (const std::string_view path : {"/", "/x", "/x/y"}) EXPECT_TRUE(matches("/**", path)) << path;
  for (const std::string_view path : {"/a/z", "/a/b/z", "/a/z/z"}) EXPECT_TRUE(matches("/a/**/z", path)) << path;
  for (const std::string_view path : {"/a", "/z", "/a/z/b", "/b/a/z"}) EXPECT_FALSE(matches("/a/**/z", path)) << path;
  EXPECT_FALSE(matches("/a/**/a", "/a"));
  EXPECT_TRUE(matches("/**/a/b/**/c", "/a/a/b/c"));
  EXPECT_FALSE(matches("/**/a/b/**/b", "/a/b"));
}

TEST(PathPattern, TheRootMatchesOnlyTheRoot) {
  EXPECT_TRUE(matches("/", "/"));
  EXPECT_FALSE(matches("/", "/a"));
  EXPECT_FALSE(matches("/*", "/"));
}

TEST(PathPattern, MatchesNoUnknownPath) {
  for (const std::string_view text : {"/", "/**", "/*", "/{x}/**"}) {
    EXPECT_FALSE(matches(text, "")) << text;
    EXPECT_FALSE(matches(text, "a")) << text;
  }
  EXPECT_EQ(pattern("/**/{x}").capture("", "x"), std::nullopt);
}

TEST(PathPattern, HasACanonicalText) {
  const std::pair<std::string_view, std::string_view> texts[] = {
      {"/", "/"},
      {"//", "/"},
      {"/Login/", "/login"},
      {"//API///x", "/api/x"},
      {"\\api\\x", "/api/x"},
      {"/a%2fb", "/a/b"},
      {"/%41", "/a"},
      {"/a/**/**/b", "/a/**/b"},
      {"/**/**", "/**"},
      {"/a%2A", "/a%2a"},
      {"/%7bid%7d", "/%7bid%7d"},
      {"/a%3Fb%23", "/a%3fb%23"},
      {"/100%", "/100%25"},
      {"/a%252fb", "/a%252fb"},
      {"/a b", "/a%20b"},
      {"/caf\xc3\xa9", "/caf%c3%a9"},
      {"/users/{id}/*/A*b%2A*/**", "/users/{id}/*/a*b%2a*/**"},
  };
  for (const auto& [text, canonical] : texts) {
    const PathPattern parsed = pattern(text);
    EXPECT_EQ(parsed.text(), canonical);
    EXPECT_EQ(pattern(canonical), parsed);
    EXPECT_EQ(pattern(canonical).segments(), parsed.segments());
  }
  EXPECT_EQ(pattern("/Login/%41*B", PathCase::kept).text(), "/Login/A*B");
  EXPECT_FALSE(pattern("/a") == pattern("/b"));
}

TEST(PathPattern, AnEscapedCharacterMatchesItself) {
  EXPECT_TRUE(matches("/a%2a", "/a*"));
  EXPECT_FALSE(matches("/a%2a", "/ab"));
  EXPECT_TRUE(matches("/%2a*", "/*x"));
  EXPECT_FALSE(matches("/%2a*", "/x*"));
  EXPECT_TRUE(matches("/%7bid%7d", "/{id}"));
  EXPECT_TRUE(matches("/a%3fb", "/a?b"));
  EXPECT_TRUE(matches("/a%252fb", "/a%2fb"));
}

TEST(PathPattern, KnowsWhetherItIsExact) {
  EXPECT_TRUE(pattern("/").is_exact());
  EXPECT_EQ(pattern("/").exact_path(), "/");
  EXPECT_TRUE(pattern("/A%2a/b/").is_exact());
  EXPECT_EQ(pattern("/A%2a/b/").exact_path(), "/a*/b");
  for (const std::string_view text : {"/*", "/a*", "/**", "/{x}", "/a/*/b"}) EXPECT_FALSE(pattern(text).is_exact());
}

TEST(PathPattern, CapturesTheSegmentOfAName) {
  const PathPattern orders = pattern("/users/{id}/orders/{order_2}");
  EXPECT_EQ(orders.names(), (Strings{"id", "order_2"}));
  EXPECT_EQ(orders.capture("/users/7/orders/9", "id"), "7");
  EXPECT_EQ(orders.capture("/users/7/orders/9", "order_2"), "9");
  EXPECT_EQ(orders.capture("/users/7/orders/9", "nobody"), std::nullopt);
  EXPECT_EQ(orders.capture("/users/7/orders", "id"), std::nullopt);
  EXPECT_EQ(pattern("/id").capture("/id", "id"), std::nullopt);
}

TEST(PathPattern, CapturesTheLeftmostPossibleSegment) {
  EXPECT_EQ(pattern("/**/a/{x}/**").capture("/a/b/a/c", "x"), "b");
  EXPECT_EQ(pattern("/**/a/{x}").capture("/a/b/a/c", "x"), "c");
  EXPECT_EQ(pattern("/**/{x}/**/{y}/**").capture("/a/b/c", "y"), "b");
  EXPECT_EQ(pattern("/**/{x}/b/**").capture("/a/c/b/b", "x"), "c");  // the first place tried, at a, does not fit
  EXPECT_EQ(pattern("/{w}/**/{z}").capture("/a/b/c", "z"), "c");
}

struct Mistake {
  std::string text;
  std::int32_t column;
  std::string says;
  ErrorCode code = ErrorCode::invalid_argument;
};

// Every quoted form after "write" must be a valid pattern.
void expect_offers_patterns(const std::string& message) {
  std::size_t at = message.rfind("write ");
  ASSERT_NE(at, message.npos) << message;
  for (at = message.find('\'', at); at != message.npos; at = message.find('\'', at + 1)) {
    const std::size_t end = message.find('\'', at + 1);
    ASSERT_NE(end, message.npos) << message;
    const std::string offered = message.substr(at + 1, end - at - 1);
    EXPECT_TRUE(PathPattern::parse((offered.starts_with('/') ? "" : "/") + offered, PathCase::folded)) << message;
    at = end;
  }
}

TEST(PathPattern, ErrorsNameTheColumnAndTheFix) {
  std::string long_one = "/", deep, accents = "/";
  for (int i = 0; i < 1024; ++i) long_one += 'a';
  for (int i = 0; i < 65; ++i) deep += "/a";
  for (int i = 0; i < 200; ++i) accents += "\xc3\xa9";
  const Mistake mistakes[] = {
      {"", 1, "'/**' for every path"},
      {"api/x", 1, "write '/api/x'"},
      {"**", 1, "write '/**'"},
      {"http://host/API?x", 1, "write '/api'"},
      {"{id}y", 1, "write '/api/login'"},
      {"/search?q=1", 8, "a query is matched by `query`; write '/search'"},
      {"/a#b", 3, "a fragment is never sent; write '/a'"},
      {"/a;b=1/c", 3, "write '/a/c'"},
      {"/a%3bb", 3, "';'"},
      {"/a/../b", 4, "write '/b'"},
      {"/./b", 2, "write '/b'"},
      {"/a/%2e%2E/b", 4, "'..'"},
      {"/a/x{id}y", 5, "a name stands for a whole segment, not for a part of 'x{id}y': write '/{id}', or '/x*y'"},
      {"/{id}y", 6, "or '/*y'"},
      {"/{a}{b}", 5, "write '/{a}', or '/*%7bb%7d'"},
      {"/a/{}", 4, "write '/{id}'"},
      {"/a/{id", 4, "'{' without '}': write '/{id}'"},
      {"/a/id}", 6, "'}' without '{'"},
      {"/}{", 2, "'}' without '{'"},
      {"/{User-Id}", 3, "'User-Id' is not a name (a-z, 0-9 and _, not a digit first): write '/{user_id}'"},
      {"/{1}", 3, "write '/{_1}'"},
      {"/{*}", 3, "write '/{_}'"},
      {"/{\xc3\xa9}", 3, "'\\xc3\\xa9' is not a name"},
      {"/{id}/{id}", 8, "a second '{id}' in one path pattern: write '/{id_2}'"},
      {"/a/img**x", 7, "write '/img*x' within one, or '/**' for more"},
      {"/***", 2, "write '/*'"},
      {"/**/a/**/b/**/c/**/d/**", 22, "more than 4 '**'", ErrorCode::out_of_range},
      {long_one, 1025, "1025 bytes is too long: at most 1024", ErrorCode::out_of_range},
      {deep, 130, "more than 64 segments", ErrorCode::out_of_range},
      {accents, 1, "1201 bytes", ErrorCode::out_of_range},
  };
  for (const Mistake& mistake : mistakes) {
    const auto parsed = PathPattern::parse(mistake.text, PathCase::folded);
    ASSERT_FALSE(parsed) << mistake.text;
    const Error& error = parsed.error();
    EXPECT_EQ(error.column, mistake.column) << mistake.text << ": " << error.message;
    EXPECT_EQ(error.code, mistake.code) << error.message;
    EXPECT_NE(error.message.find(mistake.says), std::string::npos) << error.message;
    EXPECT_LT(error.message.size(), 420u) << error.message;
    for (const char c : error.message) EXPECT_TRUE(c >= 0x20 && c < 0x7f) << error.message;
    if (mistake.code == ErrorCode::invalid_argument) expect_offers_patterns(error.message);
  }
}

TEST(PathPattern, AcceptsPatternsOfTheMaximumSize) {
  EXPECT_EQ(pattern("/" + std::string(1023, 'a')).text().size(), 1024u);
  std::string deep;
  for (int i = 0; i < 64; ++i) deep += "/a";
  EXPECT_EQ(pattern(deep).segments().size(), 64u);
  EXPECT_EQ(pattern("/**/a/**/b/**/c/**").segments().size(), 7u);
  EXPECT_EQ(pattern("/**/**/a/**/b/**/c/**/**/**").segments().size(), 7u);  // adjacent `**` count once
}

// The small world: all patterns and paths over a few words.

std::vector<std::string> all_of(const std::vector<std::string>& words, int segments_max) {
  std::vector<std::string> all = {""}, longest = {""};
  for (int i = 0; i < segments_max; ++i) {
    std::vector<std::string> longer;
    for (const std::string& text : longest) {
      for (const std::string& word : words) longer.push_back(text + "/" + word);
    }
    all.insert(all.end(), longer.begin(), longer.end());
    longest = std::move(longer);
  }
  all.front() = "/";
  return all;
}

Strings split(std::string_view path) {
  Strings segments;
  for (const char c : path) {
    if (c == '/') segments.emplace_back();
    if (c != '/') segments.back() += c;
  }
  if (path == "/") segments.clear();
  return segments;
}

bool slow_glob(std::string_view glob, std::string_view text) {
  if (glob.empty()) return text.empty();
  if (glob.front() == '*') return slow_glob(glob.substr(1), text) || (!text.empty() && slow_glob(glob, text.substr(1)));
  return !text.empty() && glob.front() == text.front() && slow_glob(glob.substr(1), text.substr(1));
}

bool slow_match(const Strings& words, std::size_t i, const Strings& path, std::size_t j) {
  if (i == words.size()) return j == path.size();
  if (words[i] == "**")
    return slow_match(words, i + 1, path, j) || (j < path.size() && slow_match(words, i, path, j + 1));
  if (j == path.size()) return false;
  return (words[i].front() == '{' || slow_glob(words[i], path[j])) && slow_match(words, i + 1, path, j + 1);
}

// A name may appear only once in a pattern, so each {x} after the first gets another name.
std::string with_own_names(std::string text) {
  char next = 'u';
  for (char& c : text) {
    if (c == 'x') c = next++;
  }
  return text;
}

TEST(PathPattern, AgreesWithASlowMatcherOnEverySmallPatternAndPath) {
  const auto paths = all_of({"a", "b", "ab"}, 4);
  std::vector<Strings> split_paths;
  for (const std::string& path : paths) split_paths.push_back(split(path));
  std::size_t hits = 0;
  for (const std::string& text : all_of({"a", "b", "*", "a*", "**", "{x}"}, 4)) {
    const PathPattern parsed = pattern(with_own_names(text));
    const Strings words = split(text);
    for (std::size_t i = 0; i < paths.size(); ++i) {
      const bool expected = slow_match(words, 0, split_paths[i], 0);
      ASSERT_EQ(parsed.matches(paths[i]), expected) << text << " on " << paths[i];
      hits += expected ? 1 : 0;
    }
  }
  EXPECT_GT(hits, 10'000u);
}

TEST(PathPattern, AgreesWithASlowMatcherOnEverySmallGlob) {
  Strings globs = {""}, texts = {""};
  const auto lengthen = [](Strings& all, std::string_view letters, std::size_t length) {
    for (std::size_t i = 0; all[i].size() < length; ++i) {
      for (const char c : letters) all.push_back(all[i] + c);
    }
  };
  lengthen(globs, "ab*", 5);
  lengthen(texts, "ab", 6);
  for (const std::string& glob : globs) {
    if (glob.empty() || glob.find("**") != glob.npos) continue;
    const PathPattern parsed = pattern("/" + glob);
    for (const std::string& text : texts) {
      if (text.empty()) continue;
      ASSERT_EQ(parsed.matches("/" + text), slow_glob(glob, text)) << glob << " on " << text;
    }
  }
}

TEST(PathPattern, CoversNarrowerPatterns) {
  const auto covers = [](std::string_view a, std::string_view b) { return pattern(a).covers(pattern(b)); };
  for (const std::string_view text : {"/", "/a", "/*", "/a*b", "/**", "/a/**/b/**", "/{x}"}) {
    EXPECT_TRUE(covers("/**", text)) << text;
    EXPECT_TRUE(covers(text, text)) << text;
  }
  EXPECT_TRUE(covers("/api/**", "/api"));
  EXPECT_TRUE(covers("/api/**", "/api/*/x/**"));
  EXPECT_TRUE(covers("/users/*", "/users/{id}"));
  EXPECT_TRUE(covers("/users/{id}", "/users/*"));
  EXPECT_TRUE(covers("/users/*", "/users/me"));
  EXPECT_TRUE(covers("/img-*", "/img-*.png"));
  EXPECT_TRUE(covers("/*a*", "/*b*a*"));
  EXPECT_TRUE(covers("/**/*", "/*/**"));
  EXPECT_TRUE(covers("/*/**", "/**/*"));
  EXPECT_TRUE(covers("/**/b/**", "/a/**/b"));
  EXPECT_FALSE(covers("/api", "/api/**"));
  EXPECT_FALSE(covers("/users/me", "/users/*"));
  EXPECT_FALSE(covers("/img-*.png", "/img-*"));
  EXPECT_FALSE(covers("/*", "/**"));
  EXPECT_FALSE(covers("/**/*", "/**"));
  EXPECT_FALSE(covers("/a*", "/*"));
  EXPECT_FALSE(covers("/a/**/b", "/**/b"));
}

TEST(PathPattern, NeverClaimsToCoverWhatItDoesNotMatch) {
  const auto paths = all_of({"a", "b", "ab", "c"}, 4);
  std::vector<PathPattern> patterns;
  std::vector<std::vector<bool>> matched;
  for (const std::string& text : all_of({"a", "*b", "*", "a*", "**"}, 3)) {
    patterns.push_back(pattern(text));
    auto& row = matched.emplace_back();
    for (const std::string& path : paths) row.push_back(patterns.back().matches(path));
  }
  std::size_t claimed = 0, true_in_small = 0;
  for (std::size_t a = 0; a < patterns.size(); ++a) {
    for (std::size_t b = 0; b < patterns.size(); ++b) {
      bool holds = true;
      for (std::size_t i = 0; holds && i < paths.size(); ++i) holds = !matched[b][i] || matched[a][i];
      const bool covers = patterns[a].covers(patterns[b]);
      ASSERT_TRUE(holds || !covers) << patterns[a].text() << " covers " << patterns[b].text();
      claimed += covers ? 1 : 0;
      true_in_small += holds ? 1 : 0;
    }
  }
  EXPECT_EQ(claimed, true_in_small);  // covers() is certain about all patterns this small
}

// Trying every placement would not finish in reasonable time.
TEST(PathPattern, IsFastWhereBacktrackingIsSlow) {
  std::string path, deep = "/**";
  for (int i = 0; i < 4000; ++i) path += "/a";
  for (int i = 0; i < 29; ++i) deep += "/a";
  const PathPattern segments = pattern(deep + "/b/**" + deep + "/**/b");
  const PathPattern stars = pattern("/*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b");
  const std::string word = "/" + std::string(8000, 'a');
  EXPECT_FALSE(segments.matches(path));
  EXPECT_FALSE(segments.matches(path + "/b"));
  EXPECT_FALSE(stars.matches(word));
}

}  // namespace
}  // namespace weir::policy
