// A gRPC session with a client and with rules; the clock stands still.
//
// Fixture of src/server/grpc/grpc_session_test.cc and grpc_abuse_test.cc. One thread.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>

#include "grpc_client.h"
#include "server/grpc/grpc_session.h"
#include "server/resp/resp_call.h"

namespace weir::test {

inline const std::string kShouldRateLimit = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";
inline const std::string kHealthCheck = "/grpc.health.v1.Health/Check";
inline const std::string kHealthList = "/grpc.health.v1.Health/List";
inline const std::string kHealthWatch = "/grpc.health.v1.Health/Watch";
inline const std::string kReflection = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";

// Domain `edge`, one descriptor, remote_address=10.0.0.1.
inline const std::string kOneAddress =
    "\x0a\x04"
    "edge"
    "\x12\x1c\x0a\x1a\x0a\x0e"
    "remote_address"
    "\x12\x08"
    "10.0.0.1";

class GrpcTest : public testing::Test {
 protected:
  GrpcTest() {
    service.is_redis_command = [](std::string_view name) { return server::resp::find_command(name) != nullptr; };
  }

  static constexpr Micros kStart{1'789'992'000'000'000};
  static constexpr Micros kTakeMax{std::int64_t{server::loop::Bounds{}.write_seconds} * 1'000'000};

  void use(std::string_view text) {
    const auto policy = parse_policy(text, "test.yaml");
    ASSERT_TRUE(policy) << policy.error().message;
    ASSERT_TRUE(gate.apply(*policy, Force::yes));
  }

  // Another connection in place of this one.
  void connect(std::int32_t window = 65'535) {
    client.reset();
    session = server::grpc::make_grpc_session(service);
    client = std::make_unique<GrpcClient>(*session, limiter, window);
  }

  // Begins a call, and delivers what it sends.
  std::int32_t begin_call(const Fields& fields, std::string body = {}, bool ends = false) {
    const std::int32_t stream = client->begin(fields, std::move(body), ends);
    client->exchange();
    return stream;
  }
  void send_more(std::int32_t stream, std::string_view more, bool ends) {
    client->send(stream, more, ends);
    client->exchange();
  }

  // Sets the clock to this time after the start, and wakes the session.
  void wake_at(Micros after) {
    clock->set(kStart + after);
    session->wake(kStart + after, client->player.output);
    client->exchange();
  }

  // All that another connection is answered to these bytes; it must end.
  std::string talk(std::string_view bytes) {
    const auto another = server::grpc::make_grpc_session(service);
    server::loop::SessionPlayer player(*another, limiter);
    EXPECT_TRUE(player.feed(bytes).close);
    return player.take();
  }

  static server::loop::ListenerBounds counting(server::loop::ListenerCounts& into) {
    server::loop::ListenerBounds bounds;
    bounds.counts = &into;
    return bounds;
  }

  std::shared_ptr<ManualClock> clock = std::make_shared<ManualClock>(kStart);
  Limiter limiter{
      {.clock = clock, .keys = 1'000, .sweeping = Sweeping::by_hand, .shared = server::loop::store_of_tests()}};
  weir::Gate gate{limiter};
  server::loop::ListenerCounts counts;
  server::grpc::GrpcService service{limiter, &gate, counting(counts)};
  std::unique_ptr<server::loop::Session> session = server::grpc::make_grpc_session(service);
  std::unique_ptr<GrpcClient> client = std::make_unique<GrpcClient>(*session, limiter);
};

}  // namespace weir::test
