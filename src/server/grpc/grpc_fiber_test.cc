// Tests gRPC calls on fibers with a store that makes every call wait: meanwhile streams are reset, deadlines pass and
// connections end. grpc_session_test.cc tests the same calls without waiting.
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "grpc_fixture.h"
#include "sanitized.h"
#include "server/grpc/grpc_decision.h"
#include "slow_store.h"

namespace weir::server::grpc {
namespace {

using test::GrpcClient;
using test::kShouldRateLimit;

constexpr std::string_view kGrpcRules = "rules:\n  - {name: each, per: ip, limit: 3/minute, algorithm: fixed_window}\n";

class GrpcFibers : public test::GrpcTest, protected loop::SessionOwner {
 protected:
  GrpcFibers() {
    limiter = Limiter({.clock = clock, .keys = 1'000, .sweeping = Sweeping::by_hand, .shared = store.store()});
    use(kGrpcRules);
    begin({});
  }
  void begin(const base::FiberOptions& options) {
    tasks.reset();
    fibers.emplace(options);
    tasks.emplace(*fibers);
    service.tasks = &*tasks;
    session->set_owner(this);
  }

  static std::string message(int n) {
    const std::string address = "10.0.0." + std::to_string(n);
    const std::string entry = std::string("\x0a\x0eremote_address\x12") + static_cast<char>(address.size()) + address;
    const std::string descriptor = std::string("\x0a") + static_cast<char>(entry.size()) + entry;
    return std::string(
               "\x0a\x04"
               "edge\x12") +
           static_cast<char>(descriptor.size()) + descriptor;
  }
  std::int32_t ask(int n, const test::Fields& more = {}) {
    test::Fields fields = GrpcClient::usual(test::kShouldRateLimit);
    fields.insert(fields.end(), more.begin(), more.end());
    const std::int32_t stream = begin_call(fields, test::framed(message(n)), true);
    return stream;
  }
  // Wakes the session, as a loop does in the turn in which a decision has ended.
  bool wake_if_ready() {
    if (!std::exchange(is_ready, false)) return false;
    session->wake(clock->now(), client->player.output);
    answered += client->player.feed("").answered;
    client->exchange();
    return true;
  }
  std::string status(std::int32_t stream) { return client->heard[stream].status(); }
  // The overall code: 1 is OK, 2 is over the limit.
  int code(std::int32_t stream) {
    const auto messages = client->heard[stream].messages();
    return messages.size() == 1 && messages[0].size() >= 2 && messages[0][0] == '\x08' ? messages[0][1] : 0;
  }
  void leave() {
    client.reset();
    session.reset();
  }

  test::SlowStore store;
  std::optional<base::Fibers> fibers;
  std::optional<loop::FiberTasks> tasks;
  bool is_ready = false;
  std::size_t answered = 0;

 private:
  void on_ready() override { is_ready = true; }
};

TEST_F(GrpcFibers, AnswerAtOnceIfNothingWaits) {
  store.hurry();
  const std::int32_t stream = ask(1);
  EXPECT_EQ(status(stream), "0");
  EXPECT_EQ(code(stream), 1);
  EXPECT_FALSE(is_ready);
}

TEST_F(GrpcFibers, AnswerWhenTheDecisionHasCome) {
  const std::int32_t stream = ask(1);
  EXPECT_EQ(status(stream), "none");
  EXPECT_FALSE(session->is_holding()) << "other calls of the connection continue";
  EXPECT_EQ(store.waiting(), 1U);
  store.answer_all();
  EXPECT_EQ(status(stream), "none") << "until it is woken";
  EXPECT_TRUE(wake_if_ready());
  EXPECT_EQ(status(stream), "0");
  EXPECT_EQ(code(stream), 1);
  EXPECT_EQ(answered, 1U);
  EXPECT_TRUE(client->heard[stream].is_closed);
}

TEST_F(GrpcFibers, AnswerEachCallWithItsOwnDecision) {
  constexpr int kMany = test::kIsSanitized ? 30 : 90;
  auto random = test::seeded();
  std::vector<std::int32_t> streams;
  for (int i = 0; i < kMany; ++i) streams.push_back(ask(i % 10));
  EXPECT_EQ(store.waiting(), static_cast<std::size_t>(kMany));
  while (store.waiting() > 0) {
    store.answer_one(random);
    if (test::pick(random, 0, 3) == 0) wake_if_ready();
  }
  wake_if_ready();
  int allowed = 0;
  for (const std::int32_t stream : streams) {
    EXPECT_EQ(status(stream), "0");
    if (code(stream) == 1) ++allowed;
  }
  EXPECT_EQ(allowed, 30) << "three of each address";
  EXPECT_EQ(answered, static_cast<std::size_t>(kMany));
  EXPECT_EQ(fibers->in_flight(), 0U);
}

TEST_F(GrpcFibers, DropTheResultIfTheStreamIsReset) {
  const std::int32_t reset = ask(1), other = ask(2);
  nghttp2_submit_rst_stream(client->http2, NGHTTP2_FLAG_NONE, reset, NGHTTP2_CANCEL);
  client->exchange();
  store.answer_all();
  wake_if_ready();
  EXPECT_EQ(status(other), "0");
  EXPECT_EQ(status(reset), "none");
}

TEST_F(GrpcFibers, DropTheResultIfTheStreamIsResetBeforeTheAnswer) {
  const std::int32_t reset = ask(1), other = ask(2);
  store.answer_all();
  nghttp2_submit_rst_stream(client->http2, NGHTTP2_FLAG_NONE, reset, NGHTTP2_CANCEL);
  client->exchange();
  wake_if_ready();
  EXPECT_EQ(status(other), "0");
}

TEST_F(GrpcFibers, KeepTheDeadlinesOfTheirCalls) {
  const std::int32_t late = ask(1, {{"grpc-timeout", "20m"}}), other = ask(2);
  EXPECT_EQ(session->due(), kStart + Micros{20'000});
  wake_at(Micros{20'000});
  EXPECT_EQ(status(late), "4");
  EXPECT_EQ(status(other), "none");
  store.answer_all();
  wake_if_ready();
  EXPECT_EQ(status(late), "4");
  EXPECT_EQ(status(other), "0");
}

TEST_F(GrpcFibers, EndAfterTheirConnectionHasEnded) {
  for (int i = 0; i < 5; ++i) ask(i);
  store.answer(2);
  leave();
  EXPECT_EQ(fibers->in_flight(), 4U);
  store.answer_all();
  EXPECT_EQ(fibers->in_flight(), 0U);
}

TEST_F(GrpcFibers, ShedACallIfNoFiberIsFree) {
  begin({.most = 1});
  const std::int32_t first = ask(1), second = ask(2);
  EXPECT_EQ(status(second), "0");
  EXPECT_EQ(code(second), 2);
  EXPECT_EQ(counts.count(loop::Refused::overload), 1U);
  store.answer_all();
  wake_if_ready();
  EXPECT_EQ(code(first), 1);
}

TEST_F(GrpcFibers, DelayTheEndOfADrainingConnection) {
  const std::int32_t stream = ask(1);
  session->drain(client->player.output);
  client->exchange();
  wake_at(kGrpcDrainNotice);
  EXPECT_FALSE(session->is_drained());
  store.answer_all();
  wake_if_ready();
  EXPECT_EQ(status(stream), "0");
  EXPECT_TRUE(session->is_drained());
}

// Calls come, are reset or run out of time; connections end and new ones come. No answer may reach the wrong stream.
TEST_F(GrpcFibers, SurviveTheEndOfCallsAndConnectionsAtAnyTime) {
  auto random = test::seeded();
  std::vector<std::int32_t> streams;
  Micros after{0};
  for (int i = 0; i < (test::kIsSanitized ? 500 : 3'000); ++i) {
    const std::int64_t chance = test::pick(random, 0, 99);
    if (chance < 40) {
      streams.push_back(ask(static_cast<int>(test::pick(random, 0, 9)),
                            chance < 10 ? test::Fields{{"grpc-timeout", "3m"}} : test::Fields{}));
    } else if (chance < 75) {
      if (store.waiting() > 0) store.answer_one(random);
    } else if (chance < 85) {
      wake_if_ready();
    } else if (chance < 90 && !streams.empty()) {
      nghttp2_submit_rst_stream(client->http2, NGHTTP2_FLAG_NONE, streams.back(), NGHTTP2_CANCEL);
      client->exchange();
    } else if (chance < 97) {
      wake_at(after += Micros{1'000});
    } else {
      leave();
      is_ready = false;
      session = make_grpc_session(service);
      session->set_owner(this);
      client = std::make_unique<GrpcClient>(*session, limiter);
      streams.clear();
    }
  }
  leave();
  store.answer_all();
  EXPECT_EQ(fibers->in_flight(), 0U);
}

}  // namespace
}  // namespace weir::server::grpc
