// A real redis-server for a test: on a free port of loopback, with nothing on disk. The destructor stops it.
//
// The test can kill and restart it, pause and resume it, and give it any setting. Also a simple client, which blocks
// and sends one command after the other or many at once. Not for several threads at once. Clusters and sentinels are in
// redis_fleet.h.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "resp/reply.h"
#include "weir/result.h"

namespace weir::test {

struct RedisOptions {
  std::vector<std::string> settings{};  // words of a command line: "--maxmemory", "1mb"
  std::string config{};                 // or lines of a file, which the server may write to
  bool is_sentinel = false;
  std::vector<std::string> environment{};  // more than the test's own: "NAME=value"
};

class RedisServer {
 public:
  // Fails with the output of redis-server if it does not start.
  static Result<std::unique_ptr<RedisServer>> start(RedisOptions options = {});
  ~RedisServer();
  RedisServer(const RedisServer&) = delete;
  RedisServer& operator=(const RedisServer&) = delete;

  std::uint16_t port() const { return port_; }
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  const std::string& folder() const { return folder_; }  // its own, which the destructor removes

  void kill();
  Result<void> restart();  // on the same port, and with the same folder
  void pause();            // returns when it is stopped
  void resume();

 private:
  RedisServer() = default;
  Result<void> run();
  pid_t pid_ = -1;
  std::uint16_t port_ = 0;
  int claim_ = -1;  // a socket whose name claims the port
  std::string folder_;
  RedisOptions options_;
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

// Of the redis-server in PATH: tests run on others than Debian's, too.
int redis_major_version();

// A command to a server on a connection of its own.
resp::Value call_redis(std::uint16_t port, std::initializer_list<std::string> words);

}  // namespace weir::test
