// Tests that the keys of rules are decoded to the attributes they were made of.
#include "policy/key_name.h"

#include <gtest/gtest.h>

#include "algorithm/limit.h"
#include "policy/policy_reader.h"
#include "policy/rulebook.h"

namespace weir::policy {
namespace {

std::string as_is(std::string_view value) { return escaped(value); }

// Returns the name of the key that a rule with this `per` makes for the request.
std::string named(const std::string& per, const Request& request, const std::string& top = "") {
  const auto compile = [](const Quota& quota) { return algorithm::compile_limit(quota, nullptr); };
  const std::string text = top + "rules:\n  - {name: r, per: " + per + ", limit: [5/s, 100/h]}\n";
  std::vector<TextProblem> problems;
  const auto book = Rulebook::make(read_policy(text, problems, compile), compile);
  EXPECT_EQ(problem_lines("test", problems), "");
  const Policy& policy = (*book)->policy();
  Facts facts(request, (*book)->reading());
  Bill bill;
  (*book)->bill(facts, 0, bill);
  EXPECT_EQ(bill.charges.size(), 2U);
  if (bill.charges.size() != 2) return {};
  std::string names[2];
  for (std::size_t i = 0; i < 2; ++i) {
    const auto body = key_body(bill.charges[i].key, bill.limits[i]->suffix);
    names[i] = key_name(body, policy.rules[0].per, policy.identity, as_is);
  }
  EXPECT_EQ(names[0], names[1]);  // the same client in every window
  return names[0];
}

TEST(KeyName, NamesEveryAttribute) {
  EXPECT_EQ(named("ip", {.ip = "192.0.2.1"}), "ip:192.0.2.1");
  EXPECT_EQ(named("ip/24", {.ip = "192.0.2.1"}), "ip:192.0.2.0/24");
  EXPECT_EQ(named("ip", {.ip = "2001:db8::1"}), "ip:2001:db8::/64");
  EXPECT_EQ(named("[user, ip]", {.user = "42", .ip = "192.0.2.1"}), "user:42,ip:192.0.2.1");
  EXPECT_EQ(named("global", {.user = "42"}), "all");
  EXPECT_EQ(named("[tenant, plan, method, host]", {.tenant = "t", .plan = "p", .method = "GET", .host = "example.org"}),
            "tenant:t,plan:p,method:get,host:example.org");
  EXPECT_EQ(named("[user, path]", {.user = "42", .path = "/api/7"}), "user:42,path:*");
  EXPECT_EQ(named("[user, path]", {.user = "42", .path = "/api/7"}, "templates: [\"/api/{id}\"]\n"),
            "user:42,path:/api/{id}");
  const Attribute header{"X-Org", "acme"};
  EXPECT_EQ(named("header:x-org", {.headers = {&header, 1}}), "header:x-org=acme");
  EXPECT_EQ(named("api_key", {.api_key = "secret"}), "api_key:sha256:2bb80d537b1da3e3");
}

TEST(KeyName, NamesTheIdentity) {
  EXPECT_EQ(named("identity", {.user = "42", .ip = "192.0.2.1"}), "user:42");
  EXPECT_EQ(named("identity", {.ip = "192.0.2.1"}), "ip:192.0.2.1");
  EXPECT_EQ(named("identity", {.ip = "192.0.2.9"}, "identity: [ip/24]\n"), "ip:192.0.2.0/24");
}

TEST(KeyName, EscapesControlBytes) {
  EXPECT_EQ(named("user", {.user = "a\x1b[2J\nb,c\\\xc3\xa9"}), "user:a\\x1b[2J\\x0ab\\x2cc\\x5c\\xc3\\xa9");
}

TEST(KeyName, ShowsTheHashOfALongValue) {
  const std::string user(200, 'u');
  EXPECT_EQ(named("user", {.user = user}).substr(0, 12), "user:sha256:");
}

TEST(KeyName, AcceptsAnyBytes) {
  const std::vector<Dimension> per = {{weir::AttributeKind::identity}, {weir::AttributeKind::ip}};
  std::string body("\x0e[identity, ip]", 15);
  EXPECT_EQ(key_name(body, per, {}, as_is), "...");
  EXPECT_EQ(key_name(body + '\x09', per, {}, as_is), "...");
  EXPECT_EQ(key_name(body + std::string("\x00\x02"
                                        "42\x05",
                                        5),
                     per, {}, as_is),
            "user:42,...");
  EXPECT_EQ(key_name("other", per, {}, as_is), "");
  for (int byte = 0; byte < 256; ++byte) {
    body += static_cast<char>(byte);
    static_cast<void>(key_name(body, per, {}, as_is));
    static_cast<void>(key_body(body, "12"));
  }
}

}  // namespace
}  // namespace weir::policy
