// A lane on a real Redis: batches, answers, single refusals, and deadlines.

#include "fleet/lane.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "fleet/redis_key.h"
#include "fleet/write_back.h"
#include "redis_fleet.h"
#include "redis_server.h"

namespace weir {
namespace {

using What = ScriptRequest::What;

class LaneTest : public ::testing::Test, public Asker {
 protected:
  void SetUp() override {
    auto server = test::RedisServer::start();
    ASSERT_TRUE(server) << server.error().message;
    server_ = *std::move(server);
    open({.deadline = kPatient});
  }
  static constexpr Micros kPatient{3'000'000};  // machines that run tests are busy

  void open(LaneOptions options) {
    lane_ = std::make_unique<Lane>(redis::parse_url("redis://" + server_->address()).value(), std::move(options));
  }

  void on_done(Ask& ask) override {
    states_.push_back(ask.state);
    decisions_.push_back(ask.decisions[0]);
    errors_.push_back(ask.error);
    lane_->give(ask);
  }
  void ask(const Charge& charge, What what = What::charge) {
    Ask& ask = lane_->make();
    ask.fill(what, {&charge, 1});
    if (!lane_->submit(ask, *this, redis::steady_now())) on_done(ask);
  }
  // Handles once what has arrived.
  void look() {
    lane_->flush(redis::steady_now());
    pollfd watched{lane_->descriptor(), POLLIN, 0};
    poll(&watched, 1, 1);
    lane_->turn(redis::steady_now());
  }
  // Runs until `count` questions are done.
  void drive(std::size_t count, Micros most = Micros{5'000'000}) {
    const Micros end = redis::steady_now() + most;
    while (states_.size() < count && redis::steady_now() < end) look();
    ASSERT_EQ(states_.size(), count);
  }
  void clear() {
    states_.clear();
    decisions_.clear();
    errors_.clear();
  }
  // Makes the connection and learns the server's time.
  void warm_up() {
    const Micros begun = redis::steady_now(), end = begun + Micros{60'000'000};
    while ((states_.empty() || states_.back() != Ask::State::answered) && redis::steady_now() < end) {
      const std::size_t before = states_.size();
      ask({.key = "warm", .limit = &limit_, .cost = 0});  // fails at once if the breaker is open
      drive(before + 1);
      look();
    }
    ASSERT_FALSE(states_.empty());
    ASSERT_EQ(states_.back(), Ask::State::answered);
    clear();
    warm_up_took_ = redis::steady_now() - begun;
  }

  const Limit limit_ = compile("100/hour", Algorithm::fixed_window).value();
  std::unique_ptr<test::RedisServer> server_;
  std::vector<Ask::State> states_;
  std::vector<Decision> decisions_;
  std::vector<std::string> errors_;
  std::unique_ptr<Lane> lane_;
  Micros warm_up_took_{0};
};

TEST_F(LaneTest, GathersQuestionsIntoFewCalls) {
  warm_up();
  const auto before = lane_->counts();
  for (int i = 0; i < 300; ++i) ask({.key = "k", .limit = &limit_});
  drive(300);
  EXPECT_LE(lane_->counts().calls - before.calls, 3u);
  for (std::size_t i = 0; i < 300; ++i) {
    ASSERT_EQ(states_[i], Ask::State::answered);
    EXPECT_EQ(decisions_[i].allowed, i < 100) << "in the order they came";
  }
}

// Of 400 questions, flush() sends two calls. The third goes out as soon as one of them is answered.
TEST_F(LaneTest, AFullCallGoesOutWithTheAnswerToTheOneBefore) {
  warm_up();
  for (int i = 0; i < 400; ++i) {
    const std::string key = std::to_string(i);
    ask({.key = key, .limit = &limit_});
  }
  lane_->flush(redis::steady_now());
  const Micros end = redis::steady_now() + Micros{5'000'000};
  while (states_.size() < 3 * kScriptKeysMax && redis::steady_now() < end) {
    pollfd watched{lane_->descriptor(), POLLIN, 0};
    poll(&watched, 1, 1);
    lane_->turn(redis::steady_now());
  }
  EXPECT_GE(states_.size(), 3 * kScriptKeysMax);
  drive(400);
}

// Each write-back has an id, but a single ticket in Redis records that all write-backs of a call were applied.
TEST_F(LaneTest, WriteBacksOfACallShareATicket) {
  warm_up();
  const std::size_t before = test::call_redis(server_->port(), {"KEYS", "*"}).items.size();
  const auto calls = lane_->counts().calls;
  constexpr int kPairs = 40;
  for (int i = 0; i < kPairs; ++i) {
    const std::string key = "k" + std::to_string(i), id = "id" + std::to_string(i);
    const Charge unsynced{.key = key, .limit = &limit_, .cost = 5}, one{.key = key, .limit = &limit_};
    Ask& back = lane_->make();
    back.fill(What::write_back, {&unsynced, 1}, id, kWriteBackLasts);
    back.is_tied = true;
    ASSERT_TRUE(lane_->submit(back, *this, redis::steady_now()));
    ask(one);
  }
  drive(2 * kPairs);
  for (std::size_t i = 0; i < states_.size(); ++i) {
    ASSERT_EQ(states_[i], Ask::State::answered) << i;
    EXPECT_EQ(decisions_[i].remaining, 94) << i;
  }
  EXPECT_EQ(test::call_redis(server_->port(), {"KEYS", "*"}).items.size() - before,
            kPairs + (lane_->counts().calls - calls));
}

TEST_F(LaneTest, NobodyWaitsForAServerThatIsGone) {
  open({.deadline = Micros{60'000'000}});
  warm_up();
  server_->kill();
  std::vector<std::string> keys;
  for (int i = 0; i < 600; ++i) keys.push_back(std::to_string(i));
  for (const std::string& key : keys) ask({.key = key, .limit = &limit_});
  drive(600, Micros{20'000'000});
  for (const Ask::State state : states_) EXPECT_EQ(state, Ask::State::failed);
}

TEST_F(LaneTest, FindsTheOneThatIsNotUnderstood) {
  warm_up();
  std::string name;
  append_redis_key(name, "weir:", 'f', "bad", "bad");
  test::call_redis(server_->port(), {"SET", name, std::string(44, 'x')});
  for (const char* key : {"a", "bad", "b"}) ask({.key = key, .limit = &limit_});
  drive(3);
  int refused = 0;
  for (std::size_t i = 0; i < 3; ++i) {
    if (states_[i] != Ask::State::refused) continue;
    ++refused;
    EXPECT_NE(errors_[i].find("not a limit state of this version"), std::string::npos) << errors_[i];
  }
  EXPECT_EQ(refused, 1);
  EXPECT_FALSE(lane_->is_open(-1)) << "the server is well";
}

TEST_F(LaneTest, GivesUpInTimeAndChargesNothingLate) {
  open({});
  warm_up();
  server_->pause();
  for (int i = 0; i < 5; ++i) ask({.key = "k", .limit = &limit_});
  drive(5);
  for (const Ask::State state : states_) EXPECT_EQ(state, Ask::State::failed);
  for (int i = 0; i < 20 && !lane_->is_open(-1); ++i) {
    clear();
    ask({.key = "k", .limit = &limit_});
    drive(1);
  }
  EXPECT_TRUE(lane_->is_open(-1));
  clear();
  ask({.key = "k", .limit = &limit_});
  EXPECT_EQ(states_.size(), 1u) << "behind an open breaker nobody waits";
  // The server's time is known to within half a round trip. Beyond that, a call is certainly late.
  std::this_thread::sleep_for(std::chrono::microseconds(warm_up_took_.count()));
  server_->resume();
  for (const Micros end = redis::steady_now() + Micros{60'000'000}; lane_->is_open(-1) && redis::steady_now() < end;) {
    look();
  }
  EXPECT_FALSE(lane_->is_open(-1));
  open({.deadline = kPatient});
  clear();
  warm_up();
  ask({.key = "k", .limit = &limit_, .cost = 0});
  drive(1);
  EXPECT_EQ(decisions_[0].remaining, 100) << "what came too late charged nothing";
}

TEST_F(LaneTest, HasABoundOnQuestionsUnderWay) {
  open({.deadline = kPatient, .asks_max = 10});
  for (int i = 0; i < 15; ++i) ask({.key = "k", .limit = &limit_});
  EXPECT_EQ(states_.size(), 5u);
  EXPECT_EQ(lane_->counts().unsent, 5u);
  drive(15);
}

TEST_F(LaneTest, FailsWhoeverWaitsWhenItIsClosed) {
  server_->pause();
  for (int i = 0; i < 3; ++i) ask({.key = "k", .limit = &limit_});
  lane_->flush(redis::steady_now());
  lane_->close();
  EXPECT_EQ(states_.size(), 3u);
  ask({.key = "k", .limit = &limit_});
  EXPECT_EQ(states_.back(), Ask::State::failed);
  server_->resume();
}

// With a clock of the test's own: a server that is slow once, and then is fast.
TEST_F(LaneTest, RefusesAtOnceWhatWouldWaitInVain) {
  constexpr Micros kDeadline{10'000'000};
  open({.deadline = kDeadline, .client = {.silence = 10 * kDeadline}});
  warm_up();
  constexpr int kCall = static_cast<int>(kScriptKeysMax);
  Micros now = redis::steady_now();
  const auto ask_many = [&](int count) {
    for (int i = 0; i < count; ++i) {
      const std::string key = "k" + std::to_string(i);
      const Charge charge{.key = key, .limit = &limit_};
      Ask& ask = lane_->make();
      ask.fill(What::charge, {&charge, 1});
      if (!lane_->submit(ask, *this, now)) on_done(ask);
    }
    lane_->flush(now);
  };
  const auto wait_for = [&](std::size_t count, Micros took) {
    now += took;
    for (int i = 0; i < 5'000 && states_.size() < count; ++i) {
      pollfd watched{lane_->descriptor(), POLLIN, 0};
      poll(&watched, 1, 1);
      lane_->turn(now);
      lane_->flush(now);
    }
    ASSERT_EQ(states_.size(), count);
  };
  ask_many(kCall);
  wait_for(kCall, kDeadline * 3 / 4);  // so another call would be answered after three quarters of its deadline
  EXPECT_EQ(lane_->counts().unsent, 0u);
  clear();
  ask_many(6 * kCall);
  EXPECT_GE(lane_->counts().unsent, static_cast<std::uint64_t>(2 * kCall));
  EXPECT_LE(lane_->counts().unsent, static_cast<std::uint64_t>(5 * kCall)) << "a call may always be filled";
  EXPECT_FALSE(lane_->is_open(-1)) << "the server is well";
  wait_for(6 * kCall, Micros{1'000});
  for (int i = 0; i < 10; ++i) {
    clear();
    ask_many(kCall);
    wait_for(kCall, Micros{1'000});
  }
  const std::uint64_t before = lane_->counts().unsent;
  clear();
  ask_many(6 * kCall);
  EXPECT_EQ(lane_->counts().unsent, before) << "it is fast again";
  wait_for(6 * kCall, Micros{1'000});
}

TEST_F(LaneTest, DialsOftenEnoughToBeBackWithinASecond) {
  warm_up();
  server_->kill();
  Micros now = redis::steady_now();
  const auto pass = [&](int tenths) {
    for (int i = 0; i < tenths; ++i) lane_->turn(now += Micros{100'000});
  };
  pass(50);  // until every backoff has grown
  for (int i = 0; i < 50; ++i) {
    const std::uint64_t before = lane_->client().counters().dials;
    pass(6);
    EXPECT_GT(lane_->client().counters().dials, before);
  }
}

TEST_F(LaneTest, HearsOfALossOnceHoweverOftenItDials) {
  int losses = 0;
  LaneOptions options{.deadline = kPatient};
  options.client.on_event = [&](const redis::Event& event) {
    if (event.kind == redis::Event::Kind::lost) ++losses;
  };
  open(options);
  warm_up();
  server_->kill();
  Micros now = redis::steady_now();
  const std::uint64_t before = lane_->client().counters().dials;
  for (int i = 0; i < 1'000 && lane_->client().counters().dials < before + 20; ++i) {
    lane_->turn(now += Micros{100'000});
  }
  EXPECT_GE(lane_->client().counters().dials, before + 20);
  EXPECT_TRUE(lane_->is_open(-1));
  EXPECT_EQ(losses, 2) << "the connection, and that none can be made";
}

// A call is as urgent as its most urgent question, so a new question would be refused with the old one. The first
// call is always refused: it teaches us the server's time.
TEST_F(LaneTest, ARetriedQuestionSharesNoCallWithANewOne) {
  ask({.key = "old", .limit = &limit_});
  for (int i = 0; i < 5'000 && lane_->counts().late == 0; ++i) {
    lane_->flush(redis::steady_now());
    pollfd watched{lane_->descriptor(), POLLIN, 0};
    poll(&watched, 1, 1);
    lane_->turn(redis::steady_now());
  }
  ASSERT_EQ(lane_->counts().late, 1u);
  ASSERT_EQ(lane_->counts().calls, 1u) << "the old one waits to be sent again";
  for (int i = 0; i < 3; ++i) ask({.key = "new", .limit = &limit_});
  lane_->flush(redis::steady_now());
  EXPECT_EQ(lane_->counts().calls, 3u) << "one for the old question, one for all new ones";
  drive(4);
  for (const Ask::State state : states_) EXPECT_EQ(state, Ask::State::answered);
}

class LaneOnClusterTest : public LaneTest {
 protected:
  void SetUp() override {
    auto cluster = test::RedisCluster::start();
    ASSERT_TRUE(cluster) << cluster.error().message;
    cluster_ = *std::move(cluster);
    const auto target = redis::parse_url("redis+cluster://" + cluster_->addresses());
    lane_ = std::make_unique<Lane>(target.value(), LaneOptions{.deadline = kPatient});
  }
  // Finds a key on each master, by asking until each has answered once.
  std::map<std::uint64_t, std::string> keys_of_masters() {
    std::map<std::uint64_t, std::string> keys;
    for (int i = 0; i < 1'000 && keys.size() < 3; ++i) {
      const std::string key = "k" + std::to_string(i);
      clear();
      ask({.key = key, .limit = &limit_});
      drive(1);
      if (states_.back() == Ask::State::answered) keys.emplace(lane_->client().owner_of(lane_->slot_of(key)), key);
    }
    clear();
    return keys;
  }
  std::unique_ptr<test::RedisCluster> cluster_;
};

// While a slot migrates, Redis refuses calls whose keys lie on both servers (TRYAGAIN).
class LaneOnMigratingSlotTest : public LaneOnClusterTest {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(LaneOnClusterTest::SetUp());
    ASSERT_EQ(keys_of_masters().size(), 3u) << "all are asked";
    for (int i = 0; subject_.empty(); ++i) {
      const std::string subject = "u" + std::to_string(i);
      if (lane_->slot_of(subject) < 5'000) subject_ = subject;  // the first master's
    }
    from_ = cluster_->master(0).port();
    to_ = cluster_->master(1).port();
    slot_ = std::to_string(lane_->slot_of(subject_));
    charge_all({"a"});
    ASSERT_EQ(states_, std::vector{Ask::State::answered});
    clear();
    const std::string from_id = test::call_redis(from_, {"CLUSTER", "MYID"}).text;
    const std::string to_id = test::call_redis(to_, {"CLUSTER", "MYID"}).text;
    test::call_redis(to_, {"CLUSTER", "SETSLOT", slot_, "IMPORTING", from_id});
    test::call_redis(from_, {"CLUSTER", "SETSLOT", slot_, "MIGRATING", to_id});
  }
  // One question for each key. All are in the same slot, so they go in one call.
  void charge_all(const std::vector<std::string>& names) {
    std::deque<std::string> keys;
    for (const std::string& name : names) {
      keys.push_back("{" + subject_ + "}" + name);
      ask({.key = keys.back(), .limit = &limit_});
    }
    drive(states_.size() + names.size());
  }
  std::int64_t keys_on(std::uint16_t port) const {
    return test::call_redis(port, {"CLUSTER", "COUNTKEYSINSLOT", slot_}).integer;
  }

  std::string subject_, slot_;
  std::uint16_t from_ = 0, to_ = 0;
};

TEST_F(LaneOnMigratingSlotTest, ACallIsSplitIntoSingleKeysThatFollowAsk) {
  const auto before = lane_->counts();
  for (int round = 0; round < 5; ++round) charge_all({"a", "b", "c"});
  ASSERT_EQ(states_.size(), 15u);
  for (std::size_t i = 0; i < states_.size(); ++i) {
    EXPECT_EQ(states_[i], Ask::State::answered) << i << ": " << errors_[i];
    EXPECT_EQ(decisions_[i].remaining, 99 - static_cast<std::int64_t>(i / 3) - (i % 3 == 0 ? 1 : 0)) << i;
  }
  EXPECT_EQ(keys_on(from_), 1) << "what was there is charged there";
  EXPECT_EQ(keys_on(to_), 2) << "what was not is charged where the slot goes";
  EXPECT_EQ(lane_->counts().timeouts, before.timeouts);
  EXPECT_EQ(lane_->counts().breaker_openings, before.breaker_openings);
}

// A check must not be decided without the unsynced charges that it carries.
TEST_F(LaneOnMigratingSlotTest, AWriteBackAndItsCheckFailTogether) {
  const std::string key = "{" + subject_ + "}a";
  const Charge unsynced{.key = key, .limit = &limit_, .cost = 5}, one{.key = key, .limit = &limit_};
  const auto submit_both = [&] {
    Ask& back = lane_->make();
    back.fill(What::write_back, {&unsynced, 1}, "some id", kWriteBackLasts);
    back.is_tied = true;
    ASSERT_TRUE(lane_->submit(back, *this, redis::steady_now()));
    Ask& check = lane_->make();
    check.fill(What::charge, {&one, 1});
    ASSERT_TRUE(lane_->submit(check, *this, redis::steady_now()));
    drive(2);
  };
  submit_both();
  EXPECT_EQ(states_, (std::vector{Ask::State::failed, Ask::State::failed}));
  clear();
  test::call_redis(from_, {"CLUSTER", "SETSLOT", slot_, "STABLE"});
  test::call_redis(to_, {"CLUSTER", "SETSLOT", slot_, "STABLE"});
  submit_both();
  ASSERT_EQ(states_, (std::vector{Ask::State::answered, Ask::State::answered}));
  EXPECT_EQ(decisions_[1].remaining, 93) << "the first charge, the five and this one";
}

// One question with keys on both servers cannot be split. Its failure says nothing about the server.
TEST_F(LaneOnMigratingSlotTest, ATornQuestionFailsAndItsServerIsStillAsked) {
  charge_all({"b"});
  clear();
  const auto target = redis::parse_url("redis+cluster://" + cluster_->addresses());
  lane_ = std::make_unique<Lane>(target.value(), LaneOptions{.deadline = Micros{300'000}});
  const std::string a = "{" + subject_ + "}a", b = "{" + subject_ + "}b";
  ask({.key = a, .limit = &limit_, .cost = 0});  // so that the server's time is known
  drive(1);
  clear();
  const Charge both[] = {{.key = a, .limit = &limit_}, {.key = b, .limit = &limit_}};
  for (int i = 0; i < 5; ++i) {
    Ask& torn = lane_->make();
    torn.fill(What::charge, both);
    ASSERT_TRUE(lane_->submit(torn, *this, redis::steady_now()));
    ASSERT_NO_FATAL_FAILURE(drive(static_cast<std::size_t>(i) + 1));
  }
  for (const Ask::State state : states_) EXPECT_EQ(state, Ask::State::failed);
  EXPECT_FALSE(lane_->is_any_open()) << "five failures in a row of the server would open its breaker";
  clear();
  test::call_redis(from_, {"MIGRATE", "127.0.0.1", std::to_string(to_), redis_name("weir:", both[0]), "0", "1000"});
  EXPECT_EQ(keys_on(to_), 2);
  for (int i = 0; i < 100 && (states_.empty() || states_.back() != Ask::State::answered); ++i) {
    Ask& whole = lane_->make();
    whole.fill(What::charge, both);
    if (!lane_->submit(whole, *this, redis::steady_now())) on_done(whole);
    ASSERT_NO_FATAL_FAILURE(drive(static_cast<std::size_t>(i) + 1));
    look();
  }
  EXPECT_EQ(states_.back(), Ask::State::answered) << "when both are in one place";
}

// A question is refused (TRYAGAIN) and sent again, and its deadline passes before the second reply. That reply
// belongs to no question any more. It must not end the call of the next question, which would then wait forever.
TEST_F(LaneOnMigratingSlotTest, ALateReplyToARetriedQuestionLeavesTheNextOneAlone) {
  charge_all({"b"});
  clear();
  const auto target = redis::parse_url("redis+cluster://" + cluster_->addresses());
  lane_ = std::make_unique<Lane>(target.value(), LaneOptions{.deadline = Micros{300'000}});
  const std::string a = "{" + subject_ + "}a", b = "{" + subject_ + "}b";
  ask({.key = a, .limit = &limit_, .cost = 0});  // so that the server's time is known
  drive(1);
  clear();
  const Charge both[] = {{.key = a, .limit = &limit_}, {.key = b, .limit = &limit_}};
  Ask& torn = lane_->make();
  torn.fill(What::charge, both);
  ASSERT_TRUE(lane_->submit(torn, *this, redis::steady_now()));
  while (states_.empty() && lane_->client().counters().retries == 0) look();
  cluster_->master(0).pause();
  drive(1);
  EXPECT_EQ(states_, std::vector{Ask::State::failed});
  ask({.key = a, .limit = &limit_});
  lane_->flush(redis::steady_now());
  cluster_->master(0).resume();
  drive(2);
}

TEST_F(LaneOnClusterTest, ALostServerIsNotAskedAndTheOthersAre) {
  const auto keys = keys_of_masters();
  ASSERT_EQ(keys.size(), 3u);
  const std::uint64_t failed = lane_->counts().failed;
  cluster_->master(0).kill();
  for (int i = 0; i < 3'000 && !lane_->is_any_open(); ++i) look();
  EXPECT_EQ(lane_->counts().failed, failed) << "nobody had to wait to find out";
  int open = 0;
  for (const auto& [owner, key] : keys) {
    clear();
    if (lane_->is_open(lane_->slot_of(key))) {
      ++open;
      ask({.key = key, .limit = &limit_});
      EXPECT_EQ(states_.size(), 1u) << "done at once";
    } else {
      ask({.key = key, .limit = &limit_});
      drive(1);
      EXPECT_EQ(states_[0], Ask::State::answered);
    }
  }
  EXPECT_EQ(open, 1);
}

}  // namespace
}  // namespace weir
