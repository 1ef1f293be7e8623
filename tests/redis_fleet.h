// A real Redis Cluster, and a master with replicas behind sentinels, for a test: on free ports of loopback.
//
// A cluster has three masters with a replica each. start() returns when all replicas are in sync, since only such a
// replica takes over. For sentinels, it returns when each knows the others and both replicas. Not for several threads
// at once.
//
// A server of a busy machine may stall for seconds. At first no replica takes over because of that, and no server
// answers that the cluster is down: a test would lose charges, or get answers of the node's share. A test of failovers
// calls expect_failover() before it kills a master.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "redis_server.h"
#include "weir/result.h"

namespace weir::test {

// Whether the server reports that it is a master.
bool is_master(const RedisServer& server);

class RedisCluster {
 public:
  // With more settings for each server, such as TLS's.
  static Result<std::unique_ptr<RedisCluster>> start(std::vector<std::string> settings = {});

  RedisServer& master(std::size_t i) const { return *servers_[i]; }  // 0 to 2, as it began
  RedisServer& replica(std::size_t i) const { return *servers_[i + 3]; }
  std::string addresses() const;  // all six, with commas

  // A replica takes over once its master has not answered for a second. Call these while all servers run.
  void expect_failover() const;
  void expect_stalls() const;  // as at first
  // By redis-cli, which takes some seconds; 0 if all is well.
  int reshard(std::size_t from, std::size_t to, int slots) const;

 private:
  RedisCluster() = default;
  Result<void> form();
  void set_timeout(const std::string& ms) const;
  std::vector<std::unique_ptr<RedisServer>> servers_;
};

class RedisSentinels {
 public:
  static Result<std::unique_ptr<RedisSentinels>> start(const std::string& sentinel_password = "");

  RedisServer& master() const { return *servers_[0]; }  // as it began
  RedisServer& replica(std::size_t i) const { return *servers_[i + 1]; }
  RedisServer& sentinel(std::size_t i) const { return *sentinels_[i]; }
  std::string addresses() const;  // of the sentinels, with commas
  // A replica takes over once the master has not answered for some tenths of a second.
  void expect_failover() const;

 private:
  RedisSentinels() = default;
  std::vector<std::unique_ptr<RedisServer>> servers_, sentinels_;
};

}  // namespace weir::test
