// A test with its own Redis, server_, or with its own Redis Cluster, cluster_. start() replaces either by a new one.
//
// For the thread of the test. Fixtures of the tests of a fleet, and of the script in Redis.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "redis_fleet.h"
#include "redis_server.h"

namespace weir::test {

class RedisTest : public ::testing::Test {
 protected:
  void SetUp() override { start(); }

  void start(RedisOptions options = {}) {
    server_.reset();
    auto server = RedisServer::start(std::move(options));
    ASSERT_TRUE(server) << server.error().message;
    server_ = *std::move(server);
  }
  std::string url() const { return "redis://" + server_->address(); }

  std::unique_ptr<RedisServer> server_;
};

class RedisClusterTest : public ::testing::Test {
 protected:
  void SetUp() override { start(); }

  void start(std::vector<std::string> settings = {}) {
    cluster_.reset();
    auto cluster = RedisCluster::start(std::move(settings));
    ASSERT_TRUE(cluster) << cluster.error().message;
    cluster_ = *std::move(cluster);
  }
  std::string url() const { return "redis+cluster://" + cluster_->addresses(); }

  std::unique_ptr<RedisCluster> cluster_;
};

}  // namespace weir::test
