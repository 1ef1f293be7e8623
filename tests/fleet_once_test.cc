// Requests with an id, some sent twice, to two nodes of a fleet on a real Redis: both nodes answer as the model of
// once_model.h does.

#include "fleet_node.h"
#include "once_model.h"
#include "redis_fixture.h"

namespace weir::test {
namespace {

class FleetOnce : public RedisTest {};

TEST_F(FleetOnce, IsAsTheModelWhicheverNodeIsAsked) {
  const auto nodes = make_nodes(2, url(), with_deadline(Micros{10'000'000}));  // machines that run tests are busy
  compare_once(1'000, [&](int i) -> Limiter& { return *nodes[static_cast<std::size_t>(i) % 2]->limiter; });
}

}  // namespace
}  // namespace weir::test
