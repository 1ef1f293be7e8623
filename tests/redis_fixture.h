// A test with a Redis of its own, as server_; start() gives it another one.
//
// For the thread of the test. Fixture of the tests of a fleet, and of the script in Redis.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

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

}  // namespace weir::test
