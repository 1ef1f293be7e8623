// A Client that blocks: sends a command and waits for the reply.
//
//     BlockingClient client(*parse_url("redis://127.0.0.1"));
//     Result<resp::Value> answer = client.call({"PING"}, Micros{500'000});
//
// For interactive commands of the command line. One thread may use it. Tested by client_test.cc.
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

  // Waits at most `patience`. The text of an error begins with the name of its FaultKind.
  Result<resp::Value> call(std::span<const std::string_view> words, Micros patience, int node = kAnyNode);
  Result<resp::Value> call(std::initializer_list<std::string_view> words, Micros patience, int node = kAnyNode) {
    return call(std::span(words.begin(), words.size()), patience, node);
  }
  // The masters are known after the first call.
  std::vector<NodeState> masters() const { return client_.masters(); }
  Client& client() { return client_; }

 private:
  void on_reply(std::uint64_t tag, const Reply& reply) override;

  Result<resp::Value> answer_ = resp::Value{};
  bool is_answered_ = false;
  Client client_;  // must be the last member: its destructor calls on_reply()
};

// Waits until the client has work or until `until`, then calls turn(). For threads that do nothing else.
void wait_and_turn(Client& client, Micros until);

}  // namespace weir::redis
