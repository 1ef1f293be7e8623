// Fuzzes a gRPC connection: whatever bytes follow the preface, in pieces of any size, the session answers or closes the
// connection.
//
// The first byte of an input sets the size of the pieces, whether the client sends the preface, when the server drains
// and when time passes. The memory and the output of the session must stay within their bounds.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "fuzz.h"
#include "server/grpc/grpc_greeting.h"
#include "server/grpc/grpc_session.h"
#include "server/loop/session_fixture.h"

namespace {

using namespace weir;

struct World {
  std::shared_ptr<ManualClock> clock = std::make_shared<ManualClock>(Micros{1'789'992'000'000'000});
  Limiter limiter{LimiterOptions{.clock = clock, .keys = 1'000, .sweeping = Sweeping::by_hand}};
  Gate gate{limiter};
  server::grpc::GrpcService service{limiter, &gate};

  World() {
    WEIR_ASSERT(gate.apply(*parse_policy("rules: [{name: a, per: ip, limit: 3/second}]", "fuzz")).has_value());
  }
};

void talk(World& world, std::string_view bytes, std::uint8_t how) {
  const auto session = server::grpc::make_grpc_session(world.service);
  server::loop::SessionPlayer player(*session, world.limiter);
  const std::size_t piece = (how & 3) == 0 ? bytes.size() + 1 : std::size_t{1} << (how & 7);
  server::loop::Progress progress;
  if ((how & 8) == 0) player.feed(server::grpc::kHttp2Preface);
  while (!bytes.empty() && !progress.close) {
    progress = player.feed(bytes.substr(0, piece));
    bytes.remove_prefix(std::min(piece, bytes.size()));
    WEIR_ASSERT(session->held() <= server::grpc::kGrpcHeldMax + 65'536);
    WEIR_ASSERT(player.output.size() <= 2 * server::loop::kOutputMax);
    player.take();
    if ((how & 16) != 0) {
      world.clock->advance(Micros{10'000'000});
      session->wake(world.limiter.now(), player.output);
    }
    if ((how & 32) != 0 && bytes.size() < 40) session->drain(player.output);
  }
  static_cast<void>(session->is_drained());
  session->give_up(server::loop::GiveUp::no_memory, player.output);
}

}  // namespace

void fuzz(std::string_view input) {
  if (input.empty()) return;
  static World world;
  const std::uint8_t how = take_byte(input);
  talk(world, input, how);
}
