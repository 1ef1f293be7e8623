// HTTP in any pieces: a session that is fed byte by byte, or in pieces that the input picks, answers as one that is fed
// all at once.
//
// The first byte is the size of the pieces. Both sessions have a server of their own, on clocks that show the same.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include "server/http/http_session.h"
#include "server/loop/session_player.h"

namespace {

constexpr std::string_view kRules = R"(
trusted_proxies: [192.0.2.1]
rules:
  - {name: address, per: ip, limit: 3/minute}
  - {name: keys, match: {path: /api/**}, per: [api_key, path], limit: 2/minute}
)";

struct Heard {
  std::string answers;
  bool is_closed = false;
};

// A server that nobody else talks to.
struct World {
  World() {
    if (!gate.apply(*weir::parse_policy(kRules, "rules"))) std::abort();
  }

  std::shared_ptr<weir::ManualClock> clock = std::make_shared<weir::ManualClock>(weir::Micros{1'000'000});
  weir::Limiter limiter{weir::LimiterOptions{.clock = clock, .keys = 64, .sweeping = weir::Sweeping::by_hand}};
  weir::Gate gate{limiter};
  weir::HttpService service{limiter, &gate};
};

Heard talk(World& world, std::string_view bytes, std::size_t piece) {
  world.clock->advance(weir::Micros{86'400'000'000});  // what was spent before is back
  while (!world.limiter.sweep()) {
  }
  const auto session = weir::make_http_session(world.service, "192.0.2.1");
  weir::SessionPlayer player(*session, world.limiter);
  Heard heard;
  while (!bytes.empty() && !heard.is_closed) {
    const std::size_t size = std::min(piece, bytes.size());
    const weir::Progress progress = player.feed(bytes.substr(0, size));
    bytes.remove_prefix(size);
    heard.is_closed = progress.close;
    if (progress.full) return heard;  // an answer of a megabyte: enough
    if (session->held() > (std::size_t{5} << 20)) std::abort();
  }
  heard.answers = player.take();
  return heard;
}

// The invitation to send a body comes only if it is not there yet.
std::string without_invitations(std::string text) {
  constexpr std::string_view kInvitation = "HTTP/1.1 100 Continue\r\n\r\n";
  for (std::size_t at = text.find(kInvitation); at != text.npos; at = text.find(kInvitation, at)) {
    text.erase(at, kInvitation.size());
  }
  return text;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0 || size > 20'000) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (bytes.find("acquire") != bytes.npos || bytes.find("reserve") != bytes.npos) return 0;  // their ids are random
  static World one, other;
  const Heard whole = talk(one, bytes, bytes.size());
  const Heard pieces = talk(other, bytes, 1 + data[0] % 64);
  if (whole.is_closed != pieces.is_closed) std::abort();
  if (without_invitations(whole.answers) != without_invitations(pieces.answers)) std::abort();
  return 0;
}
