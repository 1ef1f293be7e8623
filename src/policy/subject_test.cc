// Tests the subjects of keys that a rulebook made, and the texts that parse back to them.
#include "policy/subject.h"

#include <gtest/gtest.h>

#include <random>
#include <utility>

#include "algorithm/limit.h"
#include "base/sha256.h"
#include "policy/key_name.h"
#include "policy/policy_reader.h"
#include "policy/rulebook.h"
#include "seed.h"

namespace weir::policy {
namespace {

// Returns the subject of a request under a rule with this `per`.
std::string id_of(const std::string& per, const Request& request, const std::string& identity = "[user, api_key, ip]") {
  const auto compile = [](const Quota& quota) { return algorithm::compile_limit(quota, nullptr); };
  std::vector<TextProblem> problems;
  Policy policy =
      read_policy("identity: " + identity + "\nrules: [{name: one, per: " + per + ", limit: 9/h}]", problems, compile);
  EXPECT_EQ(problem_lines("t", problems), "");
  const auto book = Rulebook::make(std::move(policy), compile);
  if (!book) return "wrong: " + book.error().message;
  Facts facts(request, (*book)->reading());
  KeyArena arena;
  const auto keys = (*book)->keys_of(0, facts, arena);
  if (!keys) return "wrong: " + keys.error().message;
  SubjectBuffer buffer;
  const std::string_view body = key_body(keys->front(), (*book)->limit(0).suffix);
  return std::string(subject_of(body, *(*book)->rule(0).per, (*book)->policy().identity, buffer));
}

std::string text_of(const std::string& per, const Request& request,
                    const std::string& identity = "[user, api_key, ip]") {
  const std::string id = id_of(per, request, identity);
  const std::string text = subject_text(id);
  const auto back = parse_subject(text);
  EXPECT_TRUE(back && *back == id) << text;
  return text;
}

TEST(Subject, IsTheFirstAttributeThatIdentifiesAClient) {
  const Attribute headers[] = {{"x-org", "acme"}};
  const Attribute entries[] = {{"org", "a=b,"}};
  const Request request{.user = "42",
                        .api_key = "secret",
                        .ip = "192.0.2.77",
                        .tenant = "acme",
                        .method = "GET",
                        .path = "/x",
                        .headers = headers,
                        .entries = entries};
  EXPECT_EQ(text_of("user", request), "user:42");
  EXPECT_EQ(text_of("[path, method, tenant, user]", request), "tenant:acme");
  EXPECT_EQ(text_of("[header:x-org, ip]", request), "ip:192.0.2.77");
  EXPECT_EQ(text_of("ip/24", request), "ip:192.0.2.0/24");
  EXPECT_EQ(text_of("api_key", request), "api_key:sha256:" + base::hex(base::sha256("secret")));
  EXPECT_EQ(text_of("[method, header:x-org]", request), "header:x-org=acme");
  EXPECT_EQ(text_of("entry:org", request), "entry:org=a=b\\x2c");
  EXPECT_EQ(text_of("[path, method]", request), "*");
  EXPECT_EQ(text_of("global", request), "*");
}

TEST(Subject, OfAnIdentityIsTheAttributeThatWasUsed) {
  const Attribute headers[] = {{"x-org", "acme"}};
  EXPECT_EQ(text_of("identity", {.user = "42", .ip = "192.0.2.1"}), "user:42");
  EXPECT_EQ(text_of("[path, identity]", {.ip = "192.0.2.1", .path = "/"}), "ip:192.0.2.1");
  EXPECT_EQ(text_of("identity", {.ip = "192.0.2.77"}, "[user, ip/24]"), "ip:192.0.2.0/24");
  EXPECT_EQ(text_of("identity", {.headers = headers}, "['header:x-org', ip]"), "header:x-org=acme");
  EXPECT_EQ(text_of("[identity, user]", {.user = "42", .ip = "192.0.2.1"}, "[ip]"), "ip:192.0.2.1");
}

TEST(Subject, NetworksOfDifferentSizeAreDifferent) {
  EXPECT_EQ(text_of("ip", {.ip = "2001:db8::1"}), "ip:2001:db8::/64");
  EXPECT_EQ(text_of("ip/32/128", {.ip = "2001:db8::1"}), "ip:2001:db8::1/128");
  EXPECT_NE(id_of("ip/24", {.ip = "192.0.2.0"}), id_of("ip", {.ip = "192.0.2.0"}));
  EXPECT_EQ(*parse_subject("ip:2001:db8::7"), id_of("ip", {.ip = "2001:db8::1"}));
  EXPECT_EQ(*parse_subject("ip:192.0.2.7/24"), id_of("ip/24", {.ip = "192.0.2.1"}));
}

TEST(Subject, AnApiKeyIsFoundByItselfAndByItsHash) {
  const std::string id = id_of("api_key", {.api_key = "secret"});
  EXPECT_EQ(*parse_subject("api_key:secret"), id);
  EXPECT_EQ(*parse_subject("api_key:sha256:" + base::hex(base::sha256("secret"))), id);
}

TEST(Subject, TextsParseBackWhateverBytesWereSent) {
  std::mt19937_64 random = test::seeded();
  for (int i = 0; i < 2'000; ++i) {
    std::string value(1 + random() % 90, '\0');
    for (char& c : value) c = random() % 3 == 0 ? static_cast<char>(random()) : "\\x=:,09af "[random() % 11];
    if (i % 7 == 0) value = "sha256:" + value;
    const std::string text = text_of("user", {.user = value});
    EXPECT_EQ(text.find('\n'), text.npos);
    EXPECT_EQ(*parse_subject(subject_text(hashed_subject(id_of("user", {.user = value})))),
              hashed_subject(id_of("user", {.user = value})));
  }
}

TEST(Subject, AHashedSubjectRevealsNoValue) {
  for (const char* const subject : {"user:42", "ip:192.0.2.1", "ip:2001:db8::/64", "header:x-org=acme", "tenant:a"}) {
    const std::string id = hashed_subject(*parse_subject(subject));
    EXPECT_EQ(subject_text(id).find(std::string(subject).substr(3)), std::string::npos) << subject_text(id);
    EXPECT_NE(subject_text(id).find("sha256:"), std::string::npos);
    EXPECT_EQ(hashed_subject(id), id);
    EXPECT_EQ(*parse_subject(subject_text(id)), id);
  }
  EXPECT_EQ(hashed_subject(""), "");
  EXPECT_NE(hashed_subject(*parse_subject("ip:192.0.2.0/24")), hashed_subject(*parse_subject("ip:192.0.2.0")));
}

TEST(Subject, RefusesInvalidTextsAndShowsTheForm) {
  for (const char* const text : {"", "42", "user:", "usr:42", "ip:nobody", "ip:192.0.2.1/33", "header:x-org", "path:/x",
                                 "identity:42", "api_key:sha256:12", "header:=x", "plan:free"}) {
    const auto parsed = parse_subject(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_NE(parsed.error().message.find("is not a subject"), std::string::npos);
  }
}

TEST(Subject, OfATruncatedKeyIsEmpty) {
  const std::string id = id_of("[path, identity]", {.user = "42", .path = "/"});
  EXPECT_EQ(id, *parse_subject("user:42"));
  SubjectBuffer buffer;
  const std::vector<Dimension> per = {{weir::AttributeKind::path}, {weir::AttributeKind::identity}};
  EXPECT_EQ(subject_of("", per, {}, buffer), "");
  EXPECT_EQ(subject_of(std::string_view("\1p\0", 3), per, {}, buffer), "");
  EXPECT_EQ(subject_of(std::string_view("\1p\0\0", 4), per, {}, buffer), "");
  EXPECT_EQ(subject_of(std::string_view("\1p\0\0\5ab", 7), per, {}, buffer), "");
}

}  // namespace
}  // namespace weir::policy
