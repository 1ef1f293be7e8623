// Drives a client with ppoll(). See blocking_client.h.
#include "redis/blocking_client.h"

#include <poll.h>

#include <algorithm>

namespace weir::redis {

void wait_and_turn(Client& client, Micros until) {
  constexpr Micros kLookMax{1'000'000};
  const Micros now = steady_now();
  client.flush(now);
  const Micros left = std::clamp(std::min(client.due(), until) - now, Micros{0}, kLookMax);
  pollfd poll{client.descriptor(), POLLIN, 0};
  timespec patience{};
  patience.tv_sec = static_cast<time_t>(left.count() / 1'000'000);
  patience.tv_nsec = static_cast<long>(left.count() % 1'000'000 * 1'000);
  (void)::ppoll(&poll, 1, &patience, nullptr);
  client.turn(steady_now());
}

Result<resp::Value> BlockingClient::call(std::span<const std::string_view> words, Micros patience, int node) {
  is_answered_ = false;
  const Micros deadline = steady_now() + patience;
  client_.turn(steady_now());
  client_.send({.words = words, .node = node, .deadline = deadline}, {this, 0});
  while (!is_answered_) wait_and_turn(client_, deadline);
  return answer_;
}

void BlockingClient::on_reply(std::uint64_t, const Reply& reply) {
  is_answered_ = true;
  if (reply.is_ok()) {
    answer_ = *reply.value;
  } else {
    answer_ =
        fail(ErrorCode::unavailable, std::string(name_of(reply.fault->kind)) + ": " + std::string(reply.fault->text));
  }
}

}  // namespace weir::redis
