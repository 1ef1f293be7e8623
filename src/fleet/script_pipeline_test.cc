// A pipeline on a real Redis: batches, answers, single refusals, and deadlines.

#include "fleet/script_pipeline.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <chrono>
#include <map>
#include <optional>
#include <thread>

#include "fleet/redis_key.h"
#include "fleet/write_back.h"
#include "redis_fleet.h"
#include "redis_server.h"

namespace weir::fleet {
namespace {

class ScriptPipelineTest : public ::testing::Test, public Requester {
 protected:
  void SetUp() override {
    auto server = test::RedisServer::start();
    ASSERT_TRUE(server) << server.error().message;
    server_ = *std::move(server);
    url_ = "redis://" + server_->address();
    open({.deadline = kPatient});
  }
  static constexpr Micros kPatient{3'000'000};  // machines that run tests are busy

  void open(PipelineOptions options) {
    pipeline_ = std::make_unique<ScriptPipeline>(base::redis::parse_url(url_).value(), std::move(options));
  }

  void on_done(ScriptRequest& request) override {
    states_.push_back(request.state);
    decisions_.push_back(request.decisions[0]);
    errors_.push_back(request.error);
    delete static_cast<KeptRequest*>(&request);
  }
  // Returns false if it has failed at once.
  bool submit(const ScriptRequest& request, Micros now = redis::steady_now()) {
    auto* const kept = new KeptRequest(request);
    if (pipeline_->submit(*kept, *this, now)) return true;
    on_done(*kept);
    return false;
  }
  void ask(const Charge& charge, What what = What::charge) { submit({.what = what, .charges = {&charge, 1}}); }
  // Handles once what arrives within a millisecond.
  void receive(std::optional<Micros> now = {}) {
    pollfd watched{pipeline_->descriptor(), POLLIN, 0};
    poll(&watched, 1, 1);
    pipeline_->turn(now.value_or(redis::steady_now()));
  }
  void look() {
    pipeline_->flush(redis::steady_now());
    receive();
  }
  // Runs until `count` requests are done.
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
    while ((states_.empty() || states_.back() != State::answered) && redis::steady_now() < end) {
      const std::size_t before = states_.size();
      ask({.key = "warm", .limit = &limit_, .cost = 0});  // fails at once if the breaker is open
      drive(before + 1);
      look();
    }
    ASSERT_FALSE(states_.empty());
    ASSERT_EQ(states_.back(), State::answered);
    clear();
    warm_up_took_ = redis::steady_now() - begun;
  }

  const Limit limit_ = compile("100/hour", Algorithm::fixed_window).value();
  std::string url_;
  std::unique_ptr<test::RedisServer> server_;
  std::vector<State> states_;
  std::vector<Decision> decisions_;
  std::vector<std::string> errors_;
  std::unique_ptr<ScriptPipeline> pipeline_;
  Micros warm_up_took_{0};
};

TEST_F(ScriptPipelineTest, BatchesRequestsIntoFewCalls) {
  warm_up();
  const auto before = pipeline_->counts();
  for (int i = 0; i < 300; ++i) ask({.key = "k", .limit = &limit_});
  drive(300);
  EXPECT_LE(pipeline_->counts().calls - before.calls, 3u);
  for (std::size_t i = 0; i < 300; ++i) {
    ASSERT_EQ(states_[i], State::answered);
    EXPECT_EQ(decisions_[i].allowed, i < 100) << "in the order they came";
  }
}

// Of 400 requests, flush() sends two calls. The third goes out as soon as one of them is answered.
TEST_F(ScriptPipelineTest, SendsAFullCallAsSoonAsAReplyArrives) {
  warm_up();
  for (int i = 0; i < 400; ++i) {
    const std::string key = std::to_string(i);
    ask({.key = key, .limit = &limit_});
  }
  pipeline_->flush(redis::steady_now());
  const Micros end = redis::steady_now() + Micros{5'000'000};
  while (states_.size() < 3 * kScriptKeysMax && redis::steady_now() < end) receive();
  EXPECT_GE(states_.size(), 3 * kScriptKeysMax);
  drive(400);
}

// Each write-back has an id, but a single ticket in Redis records that all write-backs of a call were applied.
TEST_F(ScriptPipelineTest, WriteBacksOfACallShareATicket) {
  warm_up();
  const std::size_t before = test::call_redis(server_->port(), {"KEYS", "*"}).items.size();
  const auto calls = pipeline_->counts().calls;
  constexpr int kPairs = 40;
  for (int i = 0; i < kPairs; ++i) {
    const std::string key = "k" + std::to_string(i), id = "id" + std::to_string(i);
    const Charge unsynced{.key = key, .limit = &limit_, .cost = 5}, one{.key = key, .limit = &limit_};
    const ScriptRequest back{
        .what = What::write_back, .charges = {&unsynced, 1}, .id = id, .lasts = kWriteBackLasts, .is_tied = true};
    ASSERT_TRUE(submit(back));
    ask(one);
  }
  drive(2 * kPairs);
  for (std::size_t i = 0; i < states_.size(); ++i) {
    ASSERT_EQ(states_[i], State::answered) << i;
    EXPECT_EQ(decisions_[i].remaining, 94) << i;
  }
  EXPECT_EQ(test::call_redis(server_->port(), {"KEYS", "*"}).items.size() - before,
            kPairs + (pipeline_->counts().calls - calls));
}

TEST_F(ScriptPipelineTest, FailsRequestsWhoseServerIsGoneWithoutWaiting) {
  open({.deadline = Micros{60'000'000}});
  warm_up();
  server_->kill();
  std::vector<std::string> keys;
  for (int i = 0; i < 600; ++i) keys.push_back(std::to_string(i));
  for (const std::string& key : keys) ask({.key = key, .limit = &limit_});
  drive(600, Micros{20'000'000});
  for (const State state : states_) EXPECT_EQ(state, State::failed);
}

TEST_F(ScriptPipelineTest, RefusesOnlyTheRequestWhoseStateIsInvalid) {
  warm_up();
  std::string name;
  append_redis_key(name, "weir:", 'f', "bad", "bad");
  test::call_redis(server_->port(), {"SET", name, std::string(44, 'x')});
  for (const char* key : {"a", "bad", "b"}) ask({.key = key, .limit = &limit_});
  drive(3);
  int refused = 0;
  for (std::size_t i = 0; i < 3; ++i) {
    if (states_[i] != State::refused) continue;
    ++refused;
    EXPECT_NE(errors_[i].find("not a limit state of this version"), std::string::npos) << errors_[i];
  }
  EXPECT_EQ(refused, 1);
  EXPECT_FALSE(pipeline_->is_open(-1)) << "the server is healthy";
}

TEST_F(ScriptPipelineTest, FailsRequestsAtTheirDeadlineAndChargesNothingLate) {
  open({});
  warm_up();
  server_->pause();
  for (int i = 0; i < 5; ++i) ask({.key = "k", .limit = &limit_});
  drive(5);
  for (const State state : states_) EXPECT_EQ(state, State::failed);
  for (int i = 0; i < 20 && !pipeline_->is_open(-1); ++i) {
    clear();
    ask({.key = "k", .limit = &limit_});
    drive(1);
  }
  EXPECT_TRUE(pipeline_->is_open(-1));
  clear();
  ask({.key = "k", .limit = &limit_});
  EXPECT_EQ(states_.size(), 1u) << "a request does not wait behind an open breaker";
  // The server's time is known to within half a round trip. Beyond that, a call is certainly late.
  std::this_thread::sleep_for(std::chrono::microseconds(warm_up_took_.count()));
  server_->resume();
  for (const Micros end = redis::steady_now() + Micros{60'000'000};
       pipeline_->is_open(-1) && redis::steady_now() < end;) {
    look();
  }
  EXPECT_FALSE(pipeline_->is_open(-1));
  open({.deadline = kPatient});
  clear();
  warm_up();
  ask({.key = "k", .limit = &limit_, .cost = 0});
  drive(1);
  EXPECT_EQ(decisions_[0].remaining, 100) << "a call that was too late charged nothing";
}

TEST_F(ScriptPipelineTest, BoundsTheRequestsInFlight) {
  open({.deadline = kPatient, .requests_max = 10});
  for (int i = 0; i < 15; ++i) ask({.key = "k", .limit = &limit_});
  EXPECT_EQ(states_.size(), 5u);
  EXPECT_EQ(pipeline_->counts().unsent, 5u);
  drive(15);
}

TEST_F(ScriptPipelineTest, FailsWaitingRequestsWhenItIsClosed) {
  server_->pause();
  for (int i = 0; i < 3; ++i) ask({.key = "k", .limit = &limit_});
  pipeline_->flush(redis::steady_now());
  pipeline_->close();
  EXPECT_EQ(states_.size(), 3u);
  ask({.key = "k", .limit = &limit_});
  EXPECT_EQ(states_.back(), State::failed);
  server_->resume();
}

// With a clock of the test's own: a server that is slow once, and then is fast.
TEST_F(ScriptPipelineTest, FailsAtOnceWhatCouldNotBeAnsweredInTime) {
  constexpr Micros kDeadline{10'000'000};
  open({.deadline = kDeadline, .client = {.silence = 10 * kDeadline}});
  warm_up();
  constexpr int kCall = static_cast<int>(kScriptKeysMax);
  Micros now = redis::steady_now();
  const auto ask_many = [&](int count) {
    for (int i = 0; i < count; ++i) {
      const std::string key = "k" + std::to_string(i);
      const Charge charge{.key = key, .limit = &limit_};
      submit({.charges = {&charge, 1}}, now);
    }
    pipeline_->flush(now);
  };
  const auto wait_for = [&](std::size_t count, Micros took) {
    now += took;
    for (int i = 0; i < 5'000 && states_.size() < count; ++i) {
      receive(now);
      pipeline_->flush(now);
    }
    ASSERT_EQ(states_.size(), count);
  };
  ask_many(kCall);
  wait_for(kCall, kDeadline * 3 / 4);  // so another call would be answered after three quarters of its deadline
  EXPECT_EQ(pipeline_->counts().unsent, 0u);
  clear();
  ask_many(6 * kCall);
  EXPECT_GE(pipeline_->counts().unsent, static_cast<std::uint64_t>(2 * kCall));
  EXPECT_LE(pipeline_->counts().unsent, static_cast<std::uint64_t>(5 * kCall)) << "a call may always be filled";
  EXPECT_FALSE(pipeline_->is_open(-1)) << "the server is healthy";
  wait_for(6 * kCall, Micros{1'000});
  for (int i = 0; i < 10; ++i) {
    clear();
    ask_many(kCall);
    wait_for(kCall, Micros{1'000});
  }
  const std::uint64_t before = pipeline_->counts().unsent;
  clear();
  ask_many(6 * kCall);
  EXPECT_EQ(pipeline_->counts().unsent, before) << "the server is fast again";
  wait_for(6 * kCall, Micros{1'000});
}

TEST_F(ScriptPipelineTest, DialsOftenEnoughToBeBackWithinASecond) {
  warm_up();
  server_->kill();
  Micros now = redis::steady_now();
  const auto pass = [&](int tenths) {
    for (int i = 0; i < tenths; ++i) pipeline_->turn(now += Micros{100'000});
  };
  pass(50);  // until every backoff has grown
  for (int i = 0; i < 50; ++i) {
    const std::uint64_t before = pipeline_->client().counters().dials;
    pass(6);
    EXPECT_GT(pipeline_->client().counters().dials, before);
  }
}

TEST_F(ScriptPipelineTest, ReportsALossOnceHoweverOftenItDials) {
  int losses = 0;
  PipelineOptions options{.deadline = kPatient};
  options.client.on_event = [&](const redis::Event& event) {
    if (event.kind == redis::Event::Kind::lost) ++losses;
  };
  open(options);
  warm_up();
  server_->kill();
  Micros now = redis::steady_now();
  const std::uint64_t before = pipeline_->client().counters().dials;
  for (int i = 0; i < 1'000 && pipeline_->client().counters().dials < before + 20; ++i) {
    pipeline_->turn(now += Micros{100'000});
  }
  EXPECT_GE(pipeline_->client().counters().dials, before + 20);
  EXPECT_TRUE(pipeline_->is_open(-1));
  EXPECT_EQ(losses, 2) << "the connection, and that none can be made";
}

// A call is as urgent as its most urgent request, so a new request would be refused with the old one. The first
// call is always refused: it teaches us the server's time.
TEST_F(ScriptPipelineTest, ARetriedRequestSharesNoCallWithANewOne) {
  ask({.key = "old", .limit = &limit_});
  for (int i = 0; i < 5'000 && pipeline_->counts().late == 0; ++i) look();
  ASSERT_EQ(pipeline_->counts().late, 1u);
  ASSERT_EQ(pipeline_->counts().calls, 1u) << "the old one waits to be sent again";
  for (int i = 0; i < 3; ++i) ask({.key = "new", .limit = &limit_});
  pipeline_->flush(redis::steady_now());
  EXPECT_EQ(pipeline_->counts().calls, 3u) << "one for the old request, one for all new ones";
  drive(4);
  for (const State state : states_) EXPECT_EQ(state, State::answered);
}

class ScriptPipelineOnClusterTest : public ScriptPipelineTest {
 protected:
  void SetUp() override {
    auto cluster = test::RedisCluster::start();
    ASSERT_TRUE(cluster) << cluster.error().message;
    cluster_ = *std::move(cluster);
    url_ = "redis+cluster://" + cluster_->addresses();
    open({.deadline = kPatient});
  }
  // Finds a key on each master, by asking until each has answered once.
  std::map<std::uint64_t, std::string> keys_of_masters() {
    std::map<std::uint64_t, std::string> keys;
    for (int i = 0; i < 1'000 && keys.size() < 3; ++i) {
      const std::string key = "k" + std::to_string(i);
      clear();
      ask({.key = key, .limit = &limit_});
      drive(1);
      if (states_.back() == State::answered) keys.emplace(pipeline_->client().owner_of(pipeline_->slot_of(key)), key);
    }
    clear();
    return keys;
  }
  std::unique_ptr<test::RedisCluster> cluster_;
};

// While a slot migrates, Redis refuses calls whose keys lie on both servers (TRYAGAIN).
class ScriptPipelineOnMigratingSlotTest : public ScriptPipelineOnClusterTest {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(ScriptPipelineOnClusterTest::SetUp());
    ASSERT_EQ(keys_of_masters().size(), 3u) << "every master has answered";
    for (int i = 0; subject_.empty(); ++i) {
      const std::string subject = "u" + std::to_string(i);
      if (pipeline_->slot_of(subject) < 5'000) subject_ = subject;  // the first master's
    }
    a_ = "{" + subject_ + "}a", b_ = "{" + subject_ + "}b";
    from_ = cluster_->master(0).port();
    to_ = cluster_->master(1).port();
    slot_ = std::to_string(pipeline_->slot_of(subject_));
    charge_all({"a"});
    ASSERT_EQ(states_, std::vector{State::answered});
    clear();
    const std::string from_id = test::call_redis(from_, {"CLUSTER", "MYID"}).text;
    const std::string to_id = test::call_redis(to_, {"CLUSTER", "MYID"}).text;
    test::call_redis(to_, {"CLUSTER", "SETSLOT", slot_, "IMPORTING", from_id});
    test::call_redis(from_, {"CLUSTER", "SETSLOT", slot_, "MIGRATING", to_id});
  }
  // One request for each key. All are in the same slot, so they go in one call.
  void charge_all(const std::vector<std::string>& names) {
    std::deque<std::string> keys;
    for (const std::string& name : names) {
      keys.push_back("{" + subject_ + "}" + name);
      ask({.key = keys.back(), .limit = &limit_});
    }
    drive(states_.size() + names.size());
  }
  // The first key stays on the old server, and the second one is created on the new one.
  void put_a_key_on_each_server() {
    charge_all({"b"});
    clear();
    open({.deadline = Micros{300'000}});
    ask({.key = a_, .limit = &limit_, .cost = 0});  // so that the server's time is known
    drive(1);
    clear();
  }
  std::int64_t keys_on(std::uint16_t port) const {
    return test::call_redis(port, {"CLUSTER", "COUNTKEYSINSLOT", slot_}).integer;
  }

  std::string subject_, slot_, a_, b_;
  std::uint16_t from_ = 0, to_ = 0;
};

TEST_F(ScriptPipelineOnMigratingSlotTest, ACallIsSplitIntoSingleKeysThatFollowAsk) {
  const auto before = pipeline_->counts();
  for (int round = 0; round < 5; ++round) charge_all({"a", "b", "c"});
  ASSERT_EQ(states_.size(), 15u);
  for (std::size_t i = 0; i < states_.size(); ++i) {
    EXPECT_EQ(states_[i], State::answered) << i << ": " << errors_[i];
    EXPECT_EQ(decisions_[i].remaining, 99 - static_cast<std::int64_t>(i / 3) - (i % 3 == 0 ? 1 : 0)) << i;
  }
  EXPECT_EQ(keys_on(from_), 1) << "the existing key is charged on the old server";
  EXPECT_EQ(keys_on(to_), 2) << "new keys are charged on the new server";
  EXPECT_EQ(pipeline_->counts().timeouts, before.timeouts);
  EXPECT_EQ(pipeline_->counts().breaker_openings, before.breaker_openings);
}

// A check must not be decided without the unsynced charges that it carries.
TEST_F(ScriptPipelineOnMigratingSlotTest, AWriteBackAndItsCheckFailTogether) {
  const Charge unsynced{.key = a_, .limit = &limit_, .cost = 5}, one{.key = a_, .limit = &limit_};
  const auto submit_both = [&] {
    const ScriptRequest back{.what = What::write_back,
                             .charges = {&unsynced, 1},
                             .id = "some id",
                             .lasts = kWriteBackLasts,
                             .is_tied = true};
    ASSERT_TRUE(submit(back));
    ASSERT_TRUE(submit({.charges = {&one, 1}}));
    drive(2);
  };
  submit_both();
  EXPECT_EQ(states_, (std::vector{State::failed, State::failed}));
  clear();
  test::call_redis(from_, {"CLUSTER", "SETSLOT", slot_, "STABLE"});
  test::call_redis(to_, {"CLUSTER", "SETSLOT", slot_, "STABLE"});
  submit_both();
  ASSERT_EQ(states_, (std::vector{State::answered, State::answered}));
  EXPECT_EQ(decisions_[1].remaining, 93) << "the first charge, the five and this one";
}

// One request with keys on both servers cannot be split. Its failure says nothing about the server.
TEST_F(ScriptPipelineOnMigratingSlotTest, ARequestAcrossBothServersFailsAndTheBreakerStaysClosed) {
  put_a_key_on_each_server();
  const Charge both[] = {{.key = a_, .limit = &limit_}, {.key = b_, .limit = &limit_}};
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(submit({.charges = both}));
    ASSERT_NO_FATAL_FAILURE(drive(static_cast<std::size_t>(i) + 1));
  }
  for (const State state : states_) EXPECT_EQ(state, State::failed);
  EXPECT_FALSE(pipeline_->is_any_open()) << "five failures in a row of the server would open its breaker";
  clear();
  test::call_redis(from_, {"MIGRATE", "127.0.0.1", std::to_string(to_), redis_name("weir:", both[0]), "0", "1000"});
  EXPECT_EQ(keys_on(to_), 2);
  for (int i = 0; i < 100 && (states_.empty() || states_.back() != State::answered); ++i) {
    submit({.charges = both});
    ASSERT_NO_FATAL_FAILURE(drive(static_cast<std::size_t>(i) + 1));
    look();
  }
  EXPECT_EQ(states_.back(), State::answered) << "both keys are on one server";
}

// A request is refused (TRYAGAIN) and sent again, and its deadline passes before the second reply. That reply
// belongs to no request any more. It must not end the call of the next request, which would then wait forever.
TEST_F(ScriptPipelineOnMigratingSlotTest, ALateReplyToARetriedRequestDoesNotEndTheNextOne) {
  put_a_key_on_each_server();
  const Charge both[] = {{.key = a_, .limit = &limit_}, {.key = b_, .limit = &limit_}};
  ASSERT_TRUE(submit({.charges = both}));
  while (states_.empty() && pipeline_->client().counters().retries == 0) look();
  cluster_->master(0).pause();
  drive(1);
  EXPECT_EQ(states_, std::vector{State::failed});
  ask({.key = a_, .limit = &limit_});
  pipeline_->flush(redis::steady_now());
  cluster_->master(0).resume();
  drive(2);
}

TEST_F(ScriptPipelineOnClusterTest, OnlyRequestsForTheLostServerFail) {
  const auto keys = keys_of_masters();
  ASSERT_EQ(keys.size(), 3u);
  const std::uint64_t failed = pipeline_->counts().failed;
  cluster_->master(0).kill();
  for (int i = 0; i < 3'000 && !pipeline_->is_any_open(); ++i) look();
  EXPECT_EQ(pipeline_->counts().failed, failed) << "no request had to wait for that";
  int open = 0;
  for (const auto& [owner, key] : keys) {
    clear();
    if (pipeline_->is_open(pipeline_->slot_of(key))) {
      ++open;
      ask({.key = key, .limit = &limit_});
      EXPECT_EQ(states_.size(), 1u) << "it fails at once";
    } else {
      ask({.key = key, .limit = &limit_});
      drive(1);
      EXPECT_EQ(states_[0], State::answered);
    }
  }
  EXPECT_EQ(open, 1);
}

}  // namespace
}  // namespace weir::fleet
