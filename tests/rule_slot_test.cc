// Where keys of rules are in a Redis Cluster: all limits of one client in one slot, those of different clients in
// different ones. The store finds the client in the key by itself (src/fleet/redis_key.h), so this test uses keys that
// a rulebook made.

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "algorithm/limit.h"
#include "fleet/redis_key.h"
#include "policy/policy_reader.h"
#include "policy/rulebook.h"

namespace weir {
namespace {

constexpr const char* kRules = R"yaml(
identity: [user, "header:x-team", ip]
templates: ["/api/{version}/*"]
rules:
  - {name: burst, per: user, limits: [10/s, 1000/h]}
  - {name: wide, per: identity, limit: 9/min}
  - {name: routes, per: [user, path, method], limits: [5/s, 100/day]}
  - {name: everybody, per: global, limits: [10000/s, 100000/h]}
)yaml";

// The tags of all that a request is charged to.
std::vector<std::uint32_t> tags_of(const Request& request) {
  const auto compile = [](const Quota& quota) { return algorithm::compile_limit(quota, nullptr); };
  std::vector<policy::TextProblem> problems;
  const auto book = policy::Rulebook::make(policy::read_policy(kRules, problems, compile), compile);
  EXPECT_EQ(policy::problem_lines("t", problems), "");
  policy::Facts facts(request, (*book)->reading());
  policy::Bill bill;
  (*book)->bill(facts, 0, bill);
  std::vector<std::uint32_t> tags;
  for (const Charge& charge : bill.charges) tags.push_back(fleet::redis_tag(fleet::subject_of(charge.key)));
  return tags;
}

TEST(RuleSlot, IsOneForAllLimitsOfAClient) {
  const auto tags = tags_of({.user = "42", .method = "GET", .path = "/api/v1/x"});
  ASSERT_EQ(tags.size(), 7u);
  EXPECT_EQ(std::set(tags.begin(), tags.begin() + 5), std::set{fleet::redis_tag("42")});
  EXPECT_EQ(std::set(tags.begin() + 5, tags.end()), std::set{fleet::redis_tag("everybody")})
      << "which all of them share";
}

TEST(RuleSlot, IsThatOfTheNamedIdentity) {
  const std::vector<Attribute> headers = {{"x-team", "blue"}};
  const auto tags = tags_of({.headers = headers});
  ASSERT_EQ(tags.size(), 3u);
  EXPECT_EQ(tags[0], fleet::redis_tag("blue")) << "not that of the header's name";
}

TEST(RuleSlot, DiffersFromClientToClient) {
  std::set<std::uint32_t> tags;
  for (int i = 0; i < 1'000; ++i) tags.insert(tags_of({.user = "user " + std::to_string(i)}).front());
  EXPECT_GT(tags.size(), 900u);
}

}  // namespace
}  // namespace weir
