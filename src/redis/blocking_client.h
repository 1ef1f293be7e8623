// A Client for those who may wait: a command, its answer.
//
//     BlockingClient client(*parse_url("redis://127.0.0.1"));
//     Result<resp::Value> answer = client.call({"PING"}, Micros{500'000});
//
// For commands that people type. One thread. Tested by client_test.cc.
#pragma once

#include <initializer_list>
#include <span>
#include <string_view>

#include "redis/client.h"
#include "resp/reply.h"
#include "weir/result.h"

namespace weir::redis {

class BlockingClient final : private Receiver {
 public:
  explicit BlockingClient(Target target, ClientOptions options = {}) : client_(std::move(target), std::move(options)) {}

  // An error's text begins with the kind of the fault.
  Result<resp::Value> call(std::span<const std::string_view> words, Micros patience, int node = kAnyNode);
  Result<resp::Value> call(std::initializer_list<std::string_view> words, Micros patience, int node = kAnyNode) {
    return call(std::span(words.begin(), words.size()), patience, node);
  }
  // Who the masters are is known after the first call.
  std::vector<NodeState> masters() const { return client_.masters(); }
  Client& client() { return client_; }

 private:
  void on_reply(std::uint64_t tag, const Reply& reply) override;

  Result<resp::Value> answer_ = resp::Value{};
  bool is_answered_ = false;
  Client client_;  // the last member: it answers when it ends
};

// Until the client has something to do, or `until`; then turns it. For threads that do nothing else.
void wait_and_turn(Client& client, Micros until);

}  // namespace weir::redis
