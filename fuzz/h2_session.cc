// A gRPC connection: any bytes after the preface, in any pieces, end in answers or in the end of the connection.
//
// The first byte says how the rest is cut, when the server drains and when time passes. Nothing may grow beyond its
// bound. Without the preface the bytes are those of somebody at the wrong door.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include "server/grpc/grpc_greeting.h"
#include "server/grpc/grpc_session.h"
#include "server/loop/session_player.h"

namespace {

using namespace weir;

void require(bool condition) {
  if (!condition) std::abort();
}

struct World {
  std::shared_ptr<ManualClock> clock = std::make_shared<ManualClock>(Micros{1'789'992'000'000'000});
  Limiter limiter{LimiterOptions{.clock = clock, .keys = 1'000, .sweeping = Sweeping::by_hand}};
  Gate gate{limiter};
  GrpcService service{limiter, &gate};

  World() { require(gate.apply(*parse_policy("rules: [{name: a, per: ip, limit: 3/second}]", "fuzz")).has_value()); }
};

void talk(World& world, std::string_view bytes, std::uint8_t how) {
  const auto session = make_grpc_session(world.service);
  SessionPlayer player(*session, world.limiter);
  const std::size_t piece = (how & 3) == 0 ? bytes.size() + 1 : std::size_t{1} << (how & 7);
  Progress progress;
  if ((how & 8) == 0) player.feed(kHttp2Preface);
  while (!bytes.empty() && !progress.close) {
    progress = player.feed(bytes.substr(0, piece));
    bytes.remove_prefix(std::min(piece, bytes.size()));
    require(session->held() <= kGrpcHeldMax + 65'536);
    require(player.output.size() <= 2 * kOutputMax);
    player.take();
    if ((how & 16) != 0) {
      world.clock->advance(Micros{10'000'000});
      session->wake(world.limiter.now(), player.output);
    }
    if ((how & 32) != 0 && bytes.size() < 40) session->drain(player.output);
  }
  static_cast<void>(session->is_drained());
  session->give_up(GiveUp::no_room, player.output);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  static World world;
  talk(world, {reinterpret_cast<const char*>(data) + 1, size - 1}, data[0]);
  return 0;
}
