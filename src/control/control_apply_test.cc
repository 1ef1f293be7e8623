// Tests what an applied policy may contain, and what only the file may: the database of plans and its query. What
// apply_policy() refuses, validate() refuses with the same message.
#include "control/control.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <utility>

#include "control_fixture.h"

namespace weir::control {
namespace {

constexpr const char* kPlainRules = "rules: [{name: api, per: user, limit: 1000/hour}]\n";
constexpr const char* kPlanRules =
    "plans: {source: sqlite:plans.db, default: free, tiers: {free: 5/hour}}\n"
    "rules: [{name: api, per: user, limit: plan}]\n";

struct ControlApply : ControlFixture {
  void restart_with(const std::string& config) {
    folder.write("w.yaml", config);
    restart();
  }
};

// A client that may change rules must not choose which database is opened or created.
TEST_F(ControlApply, OnlyTheFileMayNameThePlanDatabase) {
  restart_with(kPlanRules);
  const std::string elsewhere = "plans: {source: 'sqlite:" + folder.at("elsewhere.db") +
                                "', default: free, tiers: {free: 9/hour}}\n" +
                                "rules: [{name: api, per: user, limit: plan}]\n";
  const std::string asked =
      "plans: {source: sqlite:plans.db, query: SELECT $1, default: free, tiers: {free: 9/hour}}\n"
      "rules: [{name: api, per: user, limit: plan}]\n";
  const std::string none = "rules: [{name: api, per: user, limit: 9/hour}]\n";
  for (const auto& [text, word] : {std::pair{elsewhere, "source"}, {asked, "query"}, {none, "source"}}) {
    const std::string why =
        "`" + std::string(word) + "` of `plans` can be changed in the config file only; keep its value here";
    const auto made = control->apply_policy(text, Force::yes, alice);
    ASSERT_FALSE(made) << text;
    EXPECT_EQ(made.error().code, ErrorCode::out_of_range);
    EXPECT_EQ(made.error().message, why);
    const auto found = control->validate(text);
    EXPECT_FALSE(found.ok);
    EXPECT_EQ(found.error, why);
  }
  EXPECT_FALSE(std::filesystem::exists(folder.at("elsewhere.db")));
  EXPECT_EQ(control->changes(9).size(), 0U);
  EXPECT_TRUE(control->apply_policy(std::string(kPlanRules).replace(std::string(kPlanRules).find("5/"), 2, "9/"),
                                    Force::yes, alice));
}

// As from an older version that applied it, or from a server whose file names another source.
TEST_F(ControlApply, DoesNotOpenThePlanSourceOfAnOlderChange) {
  Change change{.id = 1, .at = clock->now(), .kind = ChangeKind::policy, .what = "config with 1 rule"};
  change.text = "plans: {source: 'sqlite:" + folder.at("elsewhere.db") + "', default: free, tiers: {free: 9/hour}}\n" +
                "rules: [{name: api, per: user, limit: plan}]\n";
  folder.write("j", to_line(change));
  restart_with(kPlanRules);
  EXPECT_FALSE(std::filesystem::exists(folder.at("elsewhere.db")));
  EXPECT_TRUE(std::filesystem::exists(folder.at("plans.db")));
  EXPECT_EQ(gate->policy().plans.source, "sqlite:plans.db");
  EXPECT_EQ(gate->policy().plans.tiers[0].limits[0].text, "9/hour");
}

TEST_F(ControlApply, ValidateAndApplyReportTheSameErrors) {
  restart_with(kPlainRules);
  for (const char* text :
       {"store: redis://127.0.0.1:6379\nrules: [{name: a, limit: 1/s}]", "import: {envoy: /etc}\n",
        "plans: {source: 'sqlite:/x.db', default: free, tiers: {free: 1/s}}\nrules: [{name: a, limit: 1/s}]"}) {
    const auto made = control->apply_policy(text, Force::yes, alice);
    const auto found = control->validate(text);
    ASSERT_FALSE(made) << text;
    EXPECT_FALSE(found.ok) << text;
    EXPECT_EQ(found.error, made.error().message) << text;
  }
  options = {};
  restart_with(kPlainRules);
  EXPECT_FALSE(control->validate("rules: [{name: a, limit: 1/s}]").ok) << "without rules, no config can be applied";
}

}  // namespace
}  // namespace weir::control
