// Tests which changes are in effect, undos, precedence, and which clients a ban matches.
#include "control/overlay.h"

#include <gtest/gtest.h>

namespace weir::control {
namespace {

constexpr Micros kStart{1'800'000'000'000'000};

Change mode(std::uint64_t id, std::string rule, std::string value, std::optional<Micros> until = {}) {
  return {.id = id, .kind = ChangeKind::mode, .until = until, .rule = std::move(rule), .value = std::move(value)};
}
Change undo(std::uint64_t id, std::uint64_t undoes) { return {.id = id, .kind = ChangeKind::undo, .undoes = undoes}; }

std::string active(const std::vector<Change>& changes) {
  std::string out;
  const auto all = standings(changes, kStart);
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].active) out += std::to_string(changes[i].id) + ' ';
  }
  return out;
}

Policy policy_of(const std::string& text) {
  const auto policy = parse_policy(text, "p");
  EXPECT_TRUE(policy) << policy.error().message;
  return *policy;
}

TEST(Overlay, AnUndoCanBeUndone) {
  EXPECT_EQ(active({mode(3, "a", "off"), undo(4, 3)}), "4 ");
  EXPECT_EQ(active({mode(3, "a", "off"), undo(4, 3), undo(5, 4)}), "3 5 ");
  EXPECT_EQ(active({mode(3, "a", "off"), undo(4, 2)}), "3 4 ") << "the undone change is no longer in the list";
  EXPECT_EQ(standings(std::vector<Change>{mode(3, "a", "off"), undo(4, 3)}, kStart)[0].undone_by, 4U);
}

TEST(Overlay, ChangesExpire) {
  EXPECT_EQ(active({mode(1, "a", "off", kStart), mode(2, "a", "off", kStart + Micros{1})}), "2 ");
  const std::vector<Change> changes = {mode(1, "a", "off", kStart + Micros{9}),
                                       mode(2, "b", "off", kStart + Micros{5})};
  EXPECT_EQ(overlay_of(changes, kStart).next_end, kStart + Micros{5});
}

TEST(Overlay, TheLastOfSeveralChangesTakesPrecedence) {
  const Policy base = policy_of("rules: [{name: a, per: ip, limit: 1/s, mode: 30%}, {name: b, per: ip, limit: 1/s}]");
  std::vector<Change> changes = {mode(1, "a", "off"), mode(2, "a", "enforce"), mode(3, "gone", "off")};
  Policy made = *compose(base, overlay_of(changes, kStart));
  EXPECT_EQ(made.rules[0].mode, Mode::enforce);
  EXPECT_EQ(made.rules[0].percent, 100);
  EXPECT_EQ(made.rules[1], base.rules[1]);
  changes.push_back(undo(4, 2));
  EXPECT_EQ(compose(base, overlay_of(changes, kStart))->rules[0].mode, Mode::off)
      << "the change before it applies again";
  changes.push_back({.id = 5, .kind = ChangeKind::kill_switch, .value = "on"});
  made = *compose(base, overlay_of(changes, kStart));
  EXPECT_EQ(made.rules[0].mode, Mode::off);
  EXPECT_EQ(made.rules[1].mode, Mode::off);
  changes.push_back({.id = 6, .kind = ChangeKind::kill_switch, .value = "off"});
  EXPECT_EQ(compose(base, overlay_of(changes, kStart))->rules[1].mode, Mode::enforce);
}

Result<Match> banned(const Request& request) {
  const auto ban = ban_policy("ban-1", request, {.who = "alice", .reason = "\"quoted\"\n# no comment"}, kStart);
  if (!ban) return fail(ban.error());
  EXPECT_EQ(policy_of(to_yaml(*ban)), *ban) << "the journal stores the text";
  return ban->rules.front().match;
}

TEST(Ban, MatchesTheNamedClient) {
  const auto ip = banned({.ip = "192.0.2.1"});
  ASSERT_TRUE(ip) << ip.error().message;
  EXPECT_EQ(ip->all.front().any_of, std::vector<std::string>{"192.0.2.1"});
  EXPECT_EQ(banned({.ip = "2001:db8::5"})->all.front().any_of, std::vector<std::string>{"2001:db8::/64"});
  EXPECT_EQ(banned({.ip = "203.0.113.0/24"})->all.front().any_of, std::vector<std::string>{"203.0.113.0/24"});
  EXPECT_EQ(banned({.ip = "::ffff:192.0.2.1"})->all.front().any_of, std::vector<std::string>{"192.0.2.1"});
  EXPECT_TRUE(banned({.api_key = "secret"})->all.front().any_of.front().starts_with("sha256:"));
  EXPECT_EQ(banned({.path = "/a/b?x=1"})->all.front().any_of, std::vector<std::string>{"/a/b"});
  EXPECT_EQ(banned({.user = "m", .tenant = "t"})->all.size(), 2U);
  const Attribute header{"X-Org", "acme"};
  EXPECT_EQ(banned({.headers = {&header, 1}})->all.front().name, "x-org");
}

TEST(Ban, RefusesPatternsThatMatchSeveralClients) {
  EXPECT_FALSE(banned({.user = "*"}));
  EXPECT_FALSE(banned({.user = "a*b"}));
  EXPECT_FALSE(banned({.path = "/a/{id}"}));
  EXPECT_FALSE(banned({.ip = "not an address"}));
  EXPECT_FALSE(banned({}));
}

TEST(Ban, MatchesUnusualNamesLiterally) {
  for (const std::string& user : std::vector<std::string>{"<img src=x onerror=alert(1)>", "a: b", "- x", "\"", "'", "#",
                                                          "{a}", "[b]", "null", "true", "7", " x ", "\xC3\xBC", "%"}) {
    const auto match = banned({.user = user});
    ASSERT_TRUE(match) << user << match.error().message;
    EXPECT_EQ(match->all.front().any_of, std::vector<std::string>{user});
  }
}

}  // namespace
}  // namespace weir::control
