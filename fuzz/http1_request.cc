// Fuzzes an HTTP connection: the answers do not depend on how the bytes are cut into pieces.
//
// The first byte of an input sets the size of the pieces. One session gets the rest whole, the other gets it in pieces.
// Each session has its own server, and the clocks of both show the same time.
#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include "fuzz.h"
#include "server/http/http_session.h"
#include "server/loop/session_fixture.h"

namespace {

constexpr std::string_view kRules = R"(
trusted_proxies: [192.0.2.1]
rules:
  - {name: address, per: ip, limit: 3/minute}
  - {name: keys, match: {path: /api/**}, per: [api_key, path], limit: 2/minute}
)";

struct Outcome {
  std::string answers;
  bool is_closed = false;
};

// A server for one session.
struct World {
  World() {
    if (!gate.apply(*weir::parse_policy(kRules, "rules"))) std::abort();
  }

  std::shared_ptr<weir::ManualClock> clock = std::make_shared<weir::ManualClock>(weir::Micros{1'000'000});
  weir::Limiter limiter{weir::LimiterOptions{.clock = clock, .keys = 64, .sweeping = weir::Sweeping::by_hand}};
  weir::Gate gate{limiter};
  weir::server::http::HttpService service{limiter, &gate};
};

Outcome talk(World& world, std::string_view bytes, std::size_t piece) {
  world.clock->advance(weir::Micros{86'400'000'000});  // every limit is full again
  while (!world.limiter.sweep()) {
  }
  const auto session = weir::server::http::make_http_session(world.service, "192.0.2.1");
  weir::server::loop::SessionPlayer player(*session, world.limiter);
  Outcome outcome;
  while (!bytes.empty() && !outcome.is_closed) {
    const std::size_t size = std::min(piece, bytes.size());
    const weir::server::loop::Progress progress = player.feed(bytes.substr(0, size));
    bytes.remove_prefix(size);
    outcome.is_closed = progress.close;
    if (progress.full) return outcome;  // more answers than are worth comparing
    if (session->held() > (std::size_t{5} << 20)) std::abort();
  }
  outcome.answers = player.take();
  return outcome;
}

// Removes `100 Continue`, which the server sends only if the body did not arrive with the header.
std::string without_continue(std::string text) {
  constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
  for (std::size_t at = text.find(kContinue); at != text.npos; at = text.find(kContinue, at)) {
    text.erase(at, kContinue.size());
  }
  return text;
}

}  // namespace

void fuzz(std::string_view bytes) {
  if (bytes.empty() || bytes.size() > 20'000) return;
  const std::size_t piece = 1 + take_byte(bytes) % 64;
  if (bytes.find("acquire") != bytes.npos || bytes.find("reserve") != bytes.npos)
    return;  // ids of permits and reservations are random
  static World one, other;
  const Outcome whole = talk(one, bytes, bytes.size());
  const Outcome pieces = talk(other, bytes, piece);
  if (whole.is_closed != pieces.is_closed) std::abort();
  if (without_continue(whole.answers) != without_continue(pieces.answers)) std::abort();
}
