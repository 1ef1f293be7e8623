// Tests every kind of change: made, stored, undone, ended by itself; and a file that changes meanwhile.
#include "control/control.h"

#include <gtest/gtest.h>

#include <sys/resource.h>

#include <chrono>
#include <condition_variable>
#include <csignal>
#include <thread>

#include "control_fixture.h"

namespace weir::control {
namespace {

constexpr const char* kRules =
    "rules:\n"
    "  - {name: login, match: {path: /login}, per: ip, limit: 2/hour}\n"
    "  - {name: api, per: user, limit: 1000/hour}\n";

struct ControlTest : ControlFixture {
  void SetUp() override {
    folder.write("w.yaml", kRules);
    restart();
  }
  void TearDown() override { log::set_log_level(log::LogLevel::info); }

  Mode mode_of(const std::string& rule) const {
    for (const Rule& one : gate->policy().rules) {
      if (one.name == rule) return one.mode;
    }
    ADD_FAILURE() << "there is no rule " << rule;
    return Mode::off;
  }
  bool passes(const Request& request) const {
    const auto answer = gate->peek(request);
    EXPECT_TRUE(answer);
    return answer && answer->allowed;
  }
  Result<Made> undo(std::optional<std::uint64_t> id = {}) {
    std::uint64_t undoes = 0;
    return control->undo(id, alice, undoes);
  }
  // The line of a change that bans the user `u` + `id` for an hour.
  std::string ban_line(std::uint64_t id, const std::string& rule) const {
    const std::string user = "u" + std::to_string(id);
    const Micros until = clock->now() + Micros{3'600'000'000};
    const std::string text = to_yaml(*ban_policy(rule, {.user = user}, alice, until));
    return to_line({.id = id, .kind = ChangeKind::ban, .until = until, .rule = rule, .text = text});
  }
};

TEST_F(ControlTest, AModeChangeIsAppliedStoredAndUndone) {
  const auto made = control->set_mode("login", "off", {}, alice);
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(made->changes, std::vector<std::string>{"changed: login"});
  EXPECT_EQ(mode_of("login"), Mode::off);
  restart();
  EXPECT_EQ(mode_of("login"), Mode::off);
  EXPECT_EQ(control->status().changes_active, 1U);
  const auto listed = control->changes(10);
  ASSERT_EQ(listed.size(), 1U);
  EXPECT_EQ(listed[0].change.by, alice);
  EXPECT_EQ(listed[0].change.what, "rule login: off");
  EXPECT_TRUE(listed[0].standing.active);
  const auto rules = control->rules();
  EXPECT_EQ(rules[0].mode, "off");
  EXPECT_EQ(rules[0].configured_mode, "enforce");
  ASSERT_TRUE(undo());
  EXPECT_EQ(mode_of("login"), Mode::enforce);
  EXPECT_EQ(undo(made->id).error().code, ErrorCode::out_of_range) << "a change can be undone only once";
  EXPECT_EQ(undo().error().code, ErrorCode::not_found) << "no change is in effect";
  restart();
  EXPECT_EQ(mode_of("login"), Mode::enforce);
  EXPECT_EQ(control->changes(10).size(), 2U);
  ASSERT_TRUE(undo(2)) << "an undo can be undone";
  EXPECT_EQ(mode_of("login"), Mode::off);
}

TEST_F(ControlTest, RefusesUnknownRulesAndModes) {
  const auto made = control->set_mode("logn", "off", {}, alice);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().message, "there is no rule 'logn', did you mean login?");
  EXPECT_FALSE(control->set_mode("login", "on", {}, alice));
  EXPECT_EQ(folder.read("j"), "");
}

TEST_F(ControlTest, ATemporaryChangeExpiresEvenWhileNoProcessRuns) {
  ASSERT_TRUE(control->set_mode("login", "off", Micros{600'000'000}, alice));
  clock->advance(Micros{599'000'000});
  control->tick();
  EXPECT_EQ(mode_of("login"), Mode::off);
  clock->advance(Micros{1'000'000});
  control->tick();
  EXPECT_EQ(mode_of("login"), Mode::enforce);
  EXPECT_EQ(control->status().changes_active, 0U);
  EXPECT_FALSE(undo(1));

  ASSERT_TRUE(control->set_kill_switch(true, Micros{5'000'000}, alice));
  EXPECT_TRUE(control->status().kill_switch);
  clock->advance(Micros{6'000'000});
  restart();
  EXPECT_FALSE(control->status().kill_switch);
  EXPECT_EQ(mode_of("login"), Mode::enforce);
}

TEST_F(ControlTest, TheKillSwitchAllowsEveryRequest) {
  ASSERT_TRUE(control->ban({.user = "mallory"}, Micros{3'600'000'000}, alice));
  EXPECT_FALSE(passes({.user = "mallory"}));
  ASSERT_TRUE(control->set_kill_switch(true, {}, alice));
  EXPECT_TRUE(passes({.user = "mallory"}));
  EXPECT_EQ(mode_of("login"), Mode::off);
  ASSERT_TRUE(undo());
  EXPECT_FALSE(passes({.user = "mallory"}));
  EXPECT_EQ(mode_of("login"), Mode::enforce);
}

TEST_F(ControlTest, ABanLastsForItsDurationAndSurvivesARestart) {
  const auto ban = control->ban({.ip = "192.0.2.1"}, Micros{3'600'000'000}, alice);
  ASSERT_TRUE(ban) << ban.error().message;
  EXPECT_EQ(ban->rule, "ban-1");
  EXPECT_TRUE(gate->rule_counts().back().by_hand) << "no metric has its name";
  EXPECT_EQ(ban->what, "ban ip:192.0.2.1");
  EXPECT_FALSE(passes({.ip = "192.0.2.1"}));
  EXPECT_TRUE(passes({.ip = "192.0.2.2"}));
  restart();
  EXPECT_FALSE(passes({.ip = "192.0.2.1"}));
  EXPECT_EQ(control->status().rules, 3U);
  clock->advance(Micros{3'601'000'000});
  EXPECT_TRUE(passes({.ip = "192.0.2.1"})) << "the ban ends on time, before any tick";
  control->tick();
  EXPECT_EQ(control->status().rules, 2U);
  ASSERT_TRUE(control->ban({.user = "m"}, Micros{60'000'000}, alice));
  ASSERT_TRUE(undo());
  EXPECT_TRUE(passes({.user = "m"}));
}

TEST_F(ControlTest, RefusesMoreBansThanTheMaximum) {
  std::string text;
  for (std::uint64_t id = 1; id <= kBansMax; ++id) text += ban_line(id, "ban-" + std::to_string(id));
  folder.write("j", text);
  restart();
  EXPECT_FALSE(passes({.user = "u1000"}));
  EXPECT_EQ(control->ban({.user = "m"}, Micros{60'000'000}, alice).error().code, ErrorCode::out_of_range);
  ASSERT_TRUE(undo(7));
  EXPECT_TRUE(control->ban({.user = "m"}, Micros{60'000'000}, alice));
}

// A printed policy may be longer than its source text; it must take effect all the same.
TEST_F(ControlTest, ChangesAndRestartsWorkWithAConfigOfTheMaximumSize) {
  constexpr std::size_t kSome = 2'000;
  const std::string reason((kPolicyBytesMax - 20) / kSome - 90, 'x');
  std::string text = "rules:\n";
  for (std::size_t i = 0; i < kSome; ++i) {
    const std::string n = std::to_string(10'000 + i);
    text += "  - {name: rule-" + n + ", match: {path: /p" + n + "}, per: ip, limit: 9/hour, reason: " + reason + "}\n";
  }
  ASSERT_LE(text.size(), kPolicyBytesMax);
  folder.write("w.yaml", text);
  restart();
  const auto killed = control->set_kill_switch(true, {}, alice);
  ASSERT_TRUE(killed) << killed.error().message;
  EXPECT_GT(control->policy_text().size(), kPolicyBytesMax);
  restart();
  EXPECT_TRUE(control->status().kill_switch);
  EXPECT_EQ(mode_of("rule-10007"), Mode::off);
  ASSERT_TRUE(control->ban({.user = "mallory"}, Micros{3'600'000'000}, alice));
  ASSERT_TRUE(undo(killed->id));
  restart();
  EXPECT_EQ(control->status().rules, kSome + 1);
  EXPECT_FALSE(passes({.user = "mallory"}));
  folder.write("w.yaml", text + std::string(kPolicyBytesMax, '#'));
  EXPECT_FALSE(control->reload()) << "the maximum size still applies to files";
}

TEST_F(ControlTest, AnAppliedPolicyOverridesTheFileUntilItIsUndone) {
  const std::string text =
      "rules: [{name: login, match: {path: /login}, per: ip, limit: 3/hour}, {name: api, per: user, limit: 999/hour}]";
  const auto made = control->apply_policy(text, Force::no, alice);
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(gate->policy().rules[0].limits[0].text, "3/hour");
  EXPECT_EQ(control->status().file_waits_for, made->id);
  folder.write("w.yaml", std::string(kRules) + "  - {name: more, per: ip, limit: 9/s}\n");
  ASSERT_TRUE(control->reload());
  EXPECT_EQ(gate->policy().rules.size(), 2U) << "the applied config overrides the file";
  restart();
  EXPECT_EQ(gate->policy().rules[0].limits[0].text, "3/hour");
  ASSERT_TRUE(undo());
  EXPECT_EQ(gate->policy().rules.size(), 3U) << "the file is in effect again";
  EXPECT_EQ(control->status().file_waits_for, 0U);
}

TEST_F(ControlTest, MaxChangeAppliesToFilesAndPoliciesButNotToTheKillSwitch) {
  const std::string cut =
      "rules: [{name: login, match: {path: /login}, per: ip, limit: 2/hour}, {name: api, per: user, limit: 1/hour}]";
  EXPECT_EQ(control->apply_policy(cut, Force::no, alice).error().code, ErrorCode::out_of_range);
  folder.write("w.yaml", cut);
  const auto reloaded = control->reload();
  ASSERT_FALSE(reloaded);
  EXPECT_NE(reloaded.error().message.find("cut from 1000/hour to 1/hour"), std::string::npos);
  EXPECT_FALSE(control->status().last_reload.ok);
  EXPECT_EQ(control->status().reloads_failed, 1U);
  EXPECT_TRUE(control->apply_policy(cut, Force::yes, alice));
  EXPECT_EQ(gate->policy().rules[1].limits[0].text, "1/hour");
  EXPECT_TRUE(control->set_kill_switch(true, {}, alice));
  EXPECT_TRUE(control->set_kill_switch(false, {}, alice));
}

TEST_F(ControlTest, AnInvalidFileChangesNothing) {
  ASSERT_TRUE(control->set_mode("login", "shadow", {}, alice));
  for (const std::string& text :
       std::vector<std::string>{"", "rules: []", "rules:\n  - {name: a, limt: 1/s}\n", std::string(2 << 20, ' ')}) {
    folder.write("w.yaml", text);
    EXPECT_FALSE(control->reload());
    EXPECT_EQ(mode_of("login"), Mode::shadow);
  }
  EXPECT_EQ(control->status().reloads_failed, 4U);
  folder.write("w.yaml", kRules);
  ASSERT_TRUE(control->reload());
  EXPECT_TRUE(control->status().last_reload.ok);
  EXPECT_EQ(control->status().reloads_ok, 1U);
  ASSERT_TRUE(control->reload(ReloadWhen::if_changed));
  EXPECT_EQ(control->status().reloads_ok, 1U) << "the file has not changed";
  std::filesystem::remove(folder.at("w.yaml"));
  EXPECT_FALSE(control->reload(ReloadWhen::if_changed));
  EXPECT_EQ(control->status().reloads_failed, 5U);
  EXPECT_TRUE(control->reload(ReloadWhen::if_changed)) << "the file is still missing, so nothing is reported again";
  EXPECT_EQ(control->status().reloads_failed, 5U);
}

TEST_F(ControlTest, AModeChangeWaitsUntilItsRemovedRuleReturns) {
  folder.write("w.yaml", std::string(kRules) + "  - {name: more, per: ip, limit: 9/s}\n");
  ASSERT_TRUE(control->reload());
  ASSERT_TRUE(control->set_mode("more", "off", {}, alice));
  folder.write("w.yaml", kRules);
  ASSERT_TRUE(control->reload());
  const auto listed = control->changes(1);
  EXPECT_FALSE(listed[0].standing.active);
  EXPECT_FALSE(listed[0].has_rule);
  EXPECT_EQ(control->status().changes_active, 0U);
  EXPECT_EQ(undo().error().code, ErrorCode::not_found) << "no active change is left to undo";
  folder.write("w.yaml", std::string(kRules) + "  - {name: more, per: ip, limit: 9/s}\n");
  ASSERT_TRUE(control->reload());
  EXPECT_EQ(mode_of("more"), Mode::off);
}

TEST_F(ControlTest, ALogLevelIsAppliedAndExpires) {
  ASSERT_TRUE(control->change_log_level("debug", Micros{60'000'000}, alice));
  EXPECT_EQ(log::log_level(), log::LogLevel::debug);
  EXPECT_EQ(control->status().log_level, log::LogLevel::debug);
  clock->advance(Micros{61'000'000});
  control->tick();
  EXPECT_EQ(log::log_level(), log::LogLevel::info);
  EXPECT_FALSE(control->change_log_level("loud", {}, alice));
}

TEST_F(ControlTest, AResetIsRecordedAndCannotBeUndone) {
  ASSERT_TRUE(control->set_mode("login", "off", {}, alice));
  ASSERT_TRUE(control->reset("login", {.ip = "192.0.2.1"}, "reset login: ip:192.0.2.1", alice));
  EXPECT_EQ(control->changes(1)[0].change.kind, ChangeKind::reset);
  EXPECT_FALSE(undo(2));
  ASSERT_TRUE(undo()) << "undo skips the reset and undoes the mode change";
  EXPECT_EQ(mode_of("login"), Mode::enforce);
}

TEST_F(ControlTest, DoesNotResetIfTheJournalCannotBeWritten) {
  const Request request{.ip = "192.0.2.1", .path = "/login"};
  ASSERT_TRUE(gate->check(request) && gate->check(request));
  EXPECT_FALSE(passes(request));
  EXPECT_EQ(control->reset("logn", request, "reset", alice).error().code, ErrorCode::not_found);
  EXPECT_EQ(control->reset("api", request, "reset", alice).error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(folder.read("j"), "") << "invalid resets are not recorded";
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, SIG_IGN);
  const rlimit tight{20, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &tight);
  const auto reset = control->reset("login", request, "reset", alice);
  setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_FALSE(reset);
  EXPECT_FALSE(passes(request)) << "the reset was not done, as on a full disk";
  EXPECT_TRUE(*control->reset("login", request, "reset", alice));
  EXPECT_TRUE(passes(request));
}

TEST_F(ControlTest, ABanOfManyClientsRequiresForce) {
  const Attribute header{"X-Token", "hunter2"};
  for (const Request& request : {Request{.ip = "0.0.0.0/0"}, Request{.ip = "10.0.0.0/7"}, Request{.ip = "::/0"},
                                 Request{.ip = "2001:d00::/24"}, Request{.plan = "free"}, Request{.path = "/login"}}) {
    const auto ban = control->ban(request, Micros{60'000'000}, alice);
    ASSERT_FALSE(ban) << request.ip << request.path;
    EXPECT_EQ(ban.error().code, ErrorCode::out_of_range) << ban.error().message;
    EXPECT_NE(ban.error().message.find("\"force\":true"), std::string::npos) << ban.error().message;
    EXPECT_TRUE(control->ban(request, Micros{60'000'000}, alice, Force::yes));
    ASSERT_TRUE(undo());
  }
  for (const Request& request : {Request{.ip = "10.0.0.0/8"}, Request{.ip = "2001:db8::/32"}, Request{.tenant = "t"},
                                 Request{.user = "m", .path = "/login"}, Request{.headers = {&header, 1}}}) {
    const auto ban = control->ban(request, Micros{60'000'000}, alice);
    ASSERT_TRUE(ban) << ban.error().message;
    EXPECT_FALSE(passes(request.ip.empty() ? request : Request{.ip = request.ip.substr(0, request.ip.find('/'))}));
    EXPECT_EQ(ban->what.find("hunter2"), std::string::npos) << ban->what;
  }
}

// The parser reads no text with that many brackets, so the journal could not be read again.
TEST_F(ControlTest, ABanThatTheJournalCannotStoreIsRefused) {
  const std::string user(1'010, '[');
  const auto ban = control->ban({.user = user}, Micros{60'000'000}, alice);
  ASSERT_FALSE(ban);
  EXPECT_EQ(ban.error().code, ErrorCode::invalid_argument) << ban.error().message;
  EXPECT_EQ(folder.read("j"), "") << "nothing is recorded";
  EXPECT_TRUE(control->ban({.user = "m"}, Micros{60'000'000}, alice));
}

TEST_F(ControlTest, TwoProcessesOnOneJournalAgree) {
  Gate other_gate(limiter);
  Control other(limiter, other_gate, options);
  ASSERT_TRUE(other.start());
  ASSERT_TRUE(control->set_mode("login", "off", {}, alice));
  other.tick();
  EXPECT_EQ(other_gate.policy(), gate->policy());
  std::uint64_t undoes = 0;
  ASSERT_TRUE(other.undo({}, alice, undoes));
  EXPECT_EQ(undoes, 1U);
  control->tick();
  EXPECT_EQ(mode_of("login"), Mode::enforce);
}

TEST_F(ControlTest, TwoProcessesThatBanConcurrentlyAgree) {
  Gate other_gate(limiter);
  Control other(limiter, other_gate, options);
  ASSERT_TRUE(other.start());
  const auto ban_all = [&](Control& by, const std::string& prefix) {
    for (int i = 0; i < 20; ++i) {
      const std::string user = prefix + std::to_string(i);
      const auto ban = by.ban({.user = user}, Micros{3'600'000'000}, alice);
      ASSERT_TRUE(ban) << ban.error().message;
      EXPECT_EQ(ban->rule, "ban-" + std::to_string(ban->id));
    }
  };
  {
    const std::jthread meanwhile([&] { ban_all(other, "b"); });
    ban_all(*control, "a");
  }
  control->tick();
  other.tick();
  EXPECT_EQ(gate->policy().rules.size(), 42U);
  EXPECT_EQ(gate->policy(), other_gate.policy());
  restart();
  EXPECT_EQ(gate->policy(), other_gate.policy());
}

TEST_F(ControlTest, AppliesChangesOfAnotherProcessAfterAFailedChange) {
  Gate other_gate(limiter);
  Control other(limiter, other_gate, options);
  ASSERT_TRUE(other.start());
  ASSERT_TRUE(other.set_mode("login", "off", {}, alice));
  EXPECT_FALSE(undo(77)) << "the failed undo has read the journal";
  control->tick();
  EXPECT_EQ(mode_of("login"), Mode::off);
}

TEST_F(ControlTest, ABanGetsAFreeRuleName) {
  folder.write("w.yaml", std::string(kRules) + "  - {name: ban-1, per: ip, limit: 9/s}\n");
  ASSERT_TRUE(control->reload());
  const auto ban = control->ban({.user = "m"}, Micros{3'600'000'000}, alice);
  ASSERT_TRUE(ban) << ban.error().message;
  EXPECT_EQ(ban->rule, "ban-1-2");
  EXPECT_EQ(mode_of("ban-1-2"), Mode::enforce);
  EXPECT_FALSE(passes({.user = "m"}));
}

// As in a journal that two processes wrote at once.
TEST_F(ControlTest, StartsWithTwoBansOfTheSameName) {
  folder.write("j", ban_line(1, "ban-1") + ban_line(2, "ban-1"));
  restart();
  EXPECT_FALSE(passes({.user = "u1"}));
  EXPECT_FALSE(passes({.user = "u2"}));
  EXPECT_TRUE(control->ban({.user = "u3"}, Micros{60'000'000}, alice));
  ASSERT_TRUE(undo(1));
  EXPECT_TRUE(passes({.user = "u1"}));
  EXPECT_FALSE(passes({.user = "u2"}));
}

// A clock that advances at every reading.
class CreepingClock : public Clock {
 public:
  explicit CreepingClock(Micros start) : now_(start) {}
  Micros now() const override { return now_ += step; }
  Micros step{0};

 private:
  mutable Micros now_;
};

TEST_F(ControlTest, ATemporaryChangeExpiresEvenIfItsEndPassesWhileItIsMade) {
  const auto creeping = std::make_shared<CreepingClock>(Micros{1'800'000'000'000'000});
  Limiter slow(LimiterOptions{creeping, 1000});
  Gate slow_gate(slow);
  Control slow_control(slow, slow_gate, {.file = options.file});
  ASSERT_TRUE(slow_control.start());
  for (int step_ms = 50; step_ms < 1'200; step_ms += 50) {
    creeping->step = Micros{step_ms * 1'000};
    ASSERT_TRUE(slow_control.set_mode("login", "off", Micros{1'000'000}, alice));
    for (int i = 0; i < 50; ++i) slow_control.tick();
    EXPECT_EQ(slow_gate.policy().rules[0].mode, Mode::enforce) << step_ms;
  }
}

TEST_F(ControlTest, DoesNotStartWithADamagedJournal) {
  ASSERT_TRUE(control->set_mode("login", "off", {}, alice));
  ASSERT_TRUE(control->set_mode("api", "off", {}, alice));
  std::string text = folder.read("j");
  text[20] = static_cast<char>(text[20] ^ 1);
  folder.write("j", text);
  Gate other_gate(limiter);
  Control other(limiter, other_gate, options);
  const auto started = other.start();
  ASSERT_FALSE(started);
  EXPECT_TRUE(started.error().message.starts_with(folder.at("j") + ":1: the line is damaged"))
      << started.error().message;
}

TEST_F(ControlTest, WithoutAConfigOnlyTheLogLevelCanBeChanged) {
  options = {};
  restart();
  EXPECT_FALSE(control->set_mode("login", "off", {}, alice));
  EXPECT_FALSE(control->set_kill_switch(true, {}, alice));
  EXPECT_FALSE(control->ban({.user = "m"}, Micros{60'000'000}, alice));
  EXPECT_FALSE(control->reload());
  EXPECT_TRUE(control->change_log_level("warn", {}, alice));
}

TEST_F(ControlTest, ValidatingChangesNothing) {
  const auto good = control->validate("rules: [{name: login, match: {path: /login}, per: ip, limit: 1/day}]");
  EXPECT_TRUE(good.ok);
  EXPECT_FALSE(good.changes.empty());
  EXPECT_FALSE(good.refused.empty());
  const auto bad = control->validate("rules:\n  - {name: a, limt: 1/s}\n");
  EXPECT_FALSE(bad.ok);
  EXPECT_TRUE(bad.error.starts_with("config:2:")) << bad.error;
  EXPECT_EQ(gate->policy().rules.size(), 2U);
}

TEST(Lasting, ParsesDurationsWithUnits) {
  EXPECT_EQ(parse_lasting("10min")->count(), 600'000'000);
  EXPECT_EQ(parse_lasting("1h")->count(), 3'600'000'000);
  EXPECT_EQ(parse_lasting("7d")->count(), 7 * 86'400'000'000);
  for (const char* text : {"", "soon", "-1h", "0s", "1h burst 5", "calendar_day", "99999999999999y"}) {
    EXPECT_FALSE(parse_lasting(text)) << text;
  }
}

// A list of changes that does not answer until the test lets it.
class SlowList final : public SharedChanges {
 public:
  Result<Lines> since(std::uint64_t /*number*/) override {
    std::unique_lock lock(mutex_);
    is_asked_ = true;
    changed_.notify_all();
    was_let_go_ = changed_.wait_for(lock, std::chrono::seconds(20), [this] { return !is_slow_; });
    return fail(ErrorCode::unavailable, "away");
  }
  Result<bool> append(std::uint64_t, std::uint64_t, const std::string&) override { return false; }
  Result<void> drop(const std::vector<std::uint64_t>&) override { return {}; }

  void be_slow() {
    const std::lock_guard lock(mutex_);
    is_slow_ = true;
    is_asked_ = false;
  }
  void wait_until_asked() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return is_asked_; });
  }
  // False: its wait timed out.
  bool let_go() {
    std::unique_lock lock(mutex_);
    is_slow_ = false;
    changed_.notify_all();
    return was_let_go_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_slow_ = false, is_asked_ = false, was_let_go_ = true;
};

TEST_F(ControlTest, CountsChangesThatTheFleetDoesNotHaveYet) {
  const auto alone = control->set_mode("login", "off", {}, alice);
  EXPECT_TRUE(control->is_shared(alone->id)) << "without a fleet, every change counts as shared";
  SlowList list;
  options.shared = &list;
  restart();
  const auto made = control->set_mode("login", "shadow", {}, alice);
  ASSERT_TRUE(made);
  EXPECT_FALSE(control->is_shared(made->id));
  control->tick();
  EXPECT_EQ(control->status().own_changes, 2U);
  control.reset();
}

TEST_F(ControlTest, ReadersDoNotWaitForAFleetThatDoesNotAnswer) {
  SlowList list;
  options.shared = &list;
  restart();
  list.be_slow();
  std::jthread ticking([this] { control->tick(); });
  list.wait_until_asked();
  EXPECT_TRUE(control->changes(10).empty());
  EXPECT_EQ(control->rules().size(), 2U);
  EXPECT_TRUE(list.let_go()) << "the readers must not have waited for the list";
  ticking.join();
  control.reset();
}

}  // namespace
}  // namespace weir::control
