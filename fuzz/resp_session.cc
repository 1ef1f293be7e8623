// A whole conversation of Redis clients: random pieces are answered as the whole is, and nothing grows without bound.
//
// The first byte says how large the pieces are and whether there is a password, the rest is what the client sends. It
// is played twice, each time on a limiter of its own whose clock moves only when a wrong password is waited for. Two
// clients speak in turns, so that rounds overlap. With every answer the reply parser must agree.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include "log/log.h"
#include "resp/reply.h"
#include "server/loop/session_player.h"
#include "server/resp/resp_session.h"
#include "weir/policy.h"

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

constexpr weir::Micros kStart{1'700'000'000'000'000};
constexpr const char* kRules =
    "rules:\n- {name: steps, per: user, limit: 3/minute}\n- {name: all, per: ip, limit: 9/s burst 20}\n";

// Read once: it would take longer than all the rest.
const weir::Policy& rules() {
  static const weir::Policy policy = *weir::parse_policy(kRules, "weir.yaml");
  return policy;
}

struct World {
  explicit World(bool is_locked) {
    service.password = is_locked ? "pw" : "";
    weir::set_log_level(weir::LogLevel::error);  // wrong passwords are warnings
    require(gate.apply(rules()).has_value());
    session = weir::make_resp_session(service, 7);
  }

  std::shared_ptr<weir::ManualClock> clock = std::make_shared<weir::ManualClock>(kStart);
  weir::Limiter limiter{weir::LimiterOptions{.clock = clock, .keys = 1000, .sweeping = weir::Sweeping::by_hand}};
  weir::Gate gate{limiter};
  weir::RespService service{.limiter = limiter, .gate = &gate, .version = "0"};
  std::unique_ptr<weir::Session> session;
};

struct Heard {
  std::string output;
  bool is_closed = false;
  std::size_t left = 0;
  friend bool operator==(const Heard&, const Heard&) = default;
};

Heard play(std::string_view stream, std::size_t piece, bool is_locked) {
  World world(is_locked);
  weir::SessionPlayer player(*world.session, world.limiter);
  Heard heard;
  for (std::size_t at = 0; at < stream.size() && !heard.is_closed; at += piece) {
    auto progress = player.feed(stream.substr(at, piece));
    while ((progress.full || world.session->is_holding()) && !progress.close) {
      if (world.session->is_holding()) {  // after a wrong password
        world.clock->advance(weir::kWrongSecretDelay);
        world.session->wake(world.clock->now(), player.output);
      }
      heard.output += player.take();
      progress = player.feed("");
    }
    require(world.service.sessions == 0 && world.service.steps.empty() && world.service.texts.empty());
    heard.is_closed = progress.close;
  }
  heard.output += player.take();
  heard.left = heard.is_closed ? 0 : player.pending().size();
  require(world.limiter.size() <= 4000);
  return heard;
}

// What is written is RESP, to the last byte.
void read_back(std::string_view output) {
  weir::resp::ReplyParser parser;
  while (!output.empty()) {
    const auto reply = parser.parse(output);
    require(reply.status == weir::resp::Status::done && reply.consumed > 0);
    output.remove_prefix(reply.consumed);
  }
}

// Two clients at once: what one of them is told does not depend on where the other stopped.
void overlap(std::string_view stream) {
  World world(false);
  auto other = weir::make_resp_session(world.service, 8);
  weir::Turn turn(world.limiter);
  std::string out, out_other;
  const auto first = world.session->consume(stream, turn, out);
  const auto second = other->consume(stream.substr(stream.size() / 2), turn, out_other);
  turn.decide();
  if (stream.size() % 2 == 0) other.reset();  // leaves before it is answered
  if (first.asked) world.session->settle(turn, out);
  if (other && second.asked) other->settle(turn, out_other);
  read_back(out);
  if (other) read_back(out_other);
  require(world.service.sessions == 0);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const std::size_t piece = data[0] % 32 + 1;
  const bool is_locked = data[0] >= 192;
  const std::string_view stream(reinterpret_cast<const char*>(data) + 1, size - 1);
  const Heard whole = play(stream, stream.size(), is_locked);
  require(whole == play(stream, piece, is_locked));
  read_back(whole.output);
  overlap(stream);
  return 0;
}
