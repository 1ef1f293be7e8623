// A Redis client that blocks: sends a command and waits for the reply. For tests and benches.
//
//     BlockingClient client(*parse_url("redis://127.0.0.1"));
//     Result<resp::Value> answer = client.call({"PING"}, Micros{500'000});
//
// One thread may use it. Tested by src/redis/client_test.cc.
#pragma once

#include <poll.h>

#include <algorithm>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "redis/client.h"
#include "resp/reply.h"
#include "weir/result.h"

namespace weir::redis {

// Waits until the client has work or until `until`, then calls turn(). For threads that do nothing else.
inline void wait_and_turn(Client& client, Micros until) {
  constexpr Micros kLookMax{1'000'000};
  const Micros now = steady_now();
  client.flush(now);
  const Micros left = std::clamp(std::min(client.due(), until) - now, Micros{0}, kLookMax);
  pollfd poll{client.descriptor(), POLLIN, 0};
  timespec timeout{};
  timeout.tv_sec = static_cast<time_t>(left.count() / 1'000'000);
  timeout.tv_nsec = static_cast<long>(left.count() % 1'000'000 * 1'000);
  (void)::ppoll(&poll, 1, &timeout, nullptr);
  client.turn(steady_now());
}

class BlockingClient final : private Receiver {
 public:
  explicit BlockingClient(base::redis::Target target) : client_(std::move(target)) {}

  // Waits at most `timeout`. The text of an error begins with the name of its FaultKind.
  Result<resp::Value> call(std::initializer_list<std::string_view> words, Micros timeout) {
    is_answered_ = false;
    const Micros deadline = steady_now() + timeout;
    client_.turn(steady_now());
    client_.send({.words = std::span(words.begin(), words.size()), .deadline = deadline}, {this, 0});
    while (!is_answered_) wait_and_turn(client_, deadline);
    return answer_;
  }

 private:
  void on_reply(std::uint64_t, const Reply& reply) override {
    is_answered_ = true;
    if (reply.is_ok()) {
      answer_ = *reply.value;
    } else {
      answer_ =
          fail(ErrorCode::unavailable, std::string(name_of(reply.fault->kind)) + ": " + std::string(reply.fault->text));
    }
  }

  Result<resp::Value> answer_ = resp::Value{};
  bool is_answered_ = false;
  Client client_;  // must be the last member: its destructor calls on_reply()
};

}  // namespace weir::redis
