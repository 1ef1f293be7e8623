// Fuzzes connections of Redis clients: the answers do not depend on how the bytes are cut into pieces, and nothing
// grows without bound.
//
// The first byte of an input sets the size of the pieces, and whether the server has a password. The rest is what the
// client sends. It is sent twice, each time to a new limiter, whose clock moves only after a wrong password. Then two
// clients send at once. Our own reply parser must accept every answer.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "fuzz.h"
#include "log/log.h"
#include "resp/reply.h"
#include "server/loop/session_fixture.h"
#include "server/resp/resp_session.h"
#include "weir/policy.h"

namespace {

constexpr weir::Micros kStart{1'700'000'000'000'000};
constexpr const char* kRules =
    "rules:\n- {name: steps, per: user, limit: 3/minute}\n- {name: all, per: ip, limit: 9/s burst 20}\n";

// Parsed once, because parsing takes longer than all the rest.
const weir::Policy& rules() {
  static const weir::Policy policy = *weir::parse_policy(kRules, "weir.yaml");
  return policy;
}

struct World {
  explicit World(bool is_locked) {
    service.password = is_locked ? "pw" : "";
    weir::log::set_log_level(weir::log::LogLevel::error);  // the server logs a wrong password as a warning
    WEIR_ASSERT(gate.apply(rules()).has_value());
    session = weir::server::resp::make_resp_session(service, 7);
  }

  std::shared_ptr<weir::ManualClock> clock = std::make_shared<weir::ManualClock>(kStart);
  weir::Limiter limiter{weir::LimiterOptions{.clock = clock, .keys = 1000, .sweeping = weir::Sweeping::by_hand}};
  weir::Gate gate{limiter};
  weir::server::resp::RespService service{.limiter = limiter, .gate = &gate, .version = "0"};
  std::unique_ptr<weir::server::loop::Session> session;
};

struct Outcome {
  std::string output;
  bool is_closed = false;
  std::size_t left = 0;
  friend bool operator==(const Outcome&, const Outcome&) = default;
};

Outcome play(std::string_view stream, std::size_t piece, bool is_locked) {
  World world(is_locked);
  weir::server::loop::SessionPlayer player(*world.session, world.limiter);
  Outcome outcome;
  for (std::size_t at = 0; at < stream.size() && !outcome.is_closed; at += piece) {
    auto progress = player.feed(stream.substr(at, piece));
    while ((progress.full || world.session->is_holding()) && !progress.close) {
      if (world.session->is_holding()) {  // after a wrong password
        world.clock->advance(weir::server::observe::kWrongSecretDelay);
        world.session->wake(world.clock->now(), player.output);
      }
      outcome.output += player.take();
      progress = player.feed("");
    }
    WEIR_ASSERT(world.service.home.sessions == 0 && world.service.home.steps.empty() &&
                world.service.home.texts.empty());
    outcome.is_closed = progress.close;
  }
  outcome.output += player.take();
  outcome.left = outcome.is_closed ? 0 : player.pending().size();
  WEIR_ASSERT(world.limiter.size() <= 4000);
  return outcome;
}

// The output must be complete RESP replies.
void read_back(std::string_view output) {
  weir::resp::ReplyParser parser;
  while (!output.empty()) {
    const auto reply = parser.parse(output);
    WEIR_ASSERT(reply.status == weir::resp::Status::done && reply.consumed > 0);
    output.remove_prefix(reply.consumed);
  }
}

// Two clients whose requests are decided together: both get complete replies, also if one disconnects before.
void overlap(std::string_view stream) {
  World world(false);
  auto other = weir::server::resp::make_resp_session(world.service, 8);
  weir::server::loop::Turn turn(world.limiter);
  std::string out, out_other;
  const auto first = world.session->consume(stream, turn, out);
  const auto second = other->consume(stream.substr(stream.size() / 2), turn, out_other);
  turn.decide();
  if (stream.size() % 2 == 0) other.reset();  // disconnects before its answer
  if (first.asked) world.session->settle(turn, out);
  if (other && second.asked) other->settle(turn, out_other);
  read_back(out);
  if (other) read_back(out_other);
  WEIR_ASSERT(world.service.home.sessions == 0);
}

}  // namespace

void fuzz(std::string_view input) {
  if (input.size() < 2) return;
  const std::uint8_t how = take_byte(input);
  const std::size_t piece = how % 32 + 1;
  const bool is_locked = how >= 192;
  const Outcome whole = play(input, input.size(), is_locked);
  WEIR_ASSERT(whole == play(input, piece, is_locked));
  read_back(whole.output);
  overlap(input);
}
