// Requests that may be sent twice, by their id, to two nodes of a fleet on a real Redis: whichever node is asked, the
// answer is that of the model of once_model.h.

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <thread>

#include "fleet/fleet_store.h"
#include "once_model.h"
#include "redis_fixture.h"
#include "store_fixture.h"

namespace weir::test {
namespace {

class FleetOnce : public RedisTest {
 protected:
  std::unique_ptr<Limiter> node() {
    FleetStoreOptions options;
    options.target = redis::parse_url(url()).value();
    options.lane.deadline = Micros{10'000'000};  // machines that run tests are busy
    auto limiter =
        std::make_unique<Limiter>(LimiterOptions{.keys = 10'000, .shared = std::make_shared<FleetStore>(options)});
    const Limit limit = limit_of("1000000/year", Algorithm::token_bucket);
    for (int i = 0; i < 6'000; ++i) {
      const auto decision = limiter->check("warm", limit);
      if (decision && decision->decided_by == DecidedBy::strict) return limiter;
      std::this_thread::sleep_for(std::chrono::milliseconds{10});
    }
    ADD_FAILURE() << "Redis is not asked";
    return limiter;
  }
};

TEST_F(FleetOnce, IsAsTheModelWhicheverNodeIsAsked) {
  const auto first = node(), second = node();
  compare_once(1'000, [&](int i) -> Limiter& { return i % 2 == 0 ? *first : *second; });
}

}  // namespace
}  // namespace weir::test
