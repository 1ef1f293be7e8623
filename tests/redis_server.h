// A real redis-server for a test: started on a free port of loopback, with nothing on disk, stopped when it goes away.
//
// And the plainest client that can talk to it: blocking, one command after the other or many at once. Not for several
// threads at once.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "resp/reply.h"
#include "weir/result.h"

namespace weir::test {

class RedisServer {
 public:
  // Fails with what redis-server said if it does not come up.
  static Result<std::unique_ptr<RedisServer>> start();
  ~RedisServer();
  RedisServer(const RedisServer&) = delete;
  RedisServer& operator=(const RedisServer&) = delete;

  std::uint16_t port() const { return port_; }

 private:
  RedisServer() = default;
  pid_t pid_ = -1;
  std::uint16_t port_ = 0;
  std::string log_;
};

class RedisClient {
 public:
  explicit RedisClient(std::uint16_t port);
  ~RedisClient();
  RedisClient(const RedisClient&) = delete;
  RedisClient& operator=(const RedisClient&) = delete;

  resp::Value call(std::span<const std::string> words);
  resp::Value call(std::initializer_list<std::string> words) { return call(std::span(words.begin(), words.size())); }
  // All at once; the answers in order.
  std::vector<resp::Value> call_all(std::span<const std::vector<std::string>> commands);

 private:
  resp::Value read();
  int socket_ = -1;
  std::string input_;
  resp::ReplyParser parser_;
};

}  // namespace weir::test
