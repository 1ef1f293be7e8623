// What the parser reads from INFO.
#include "base/redis_health.h"

#include <gtest/gtest.h>

namespace weir::base {
namespace {

TEST(RedisHealth, IsReadFromInfo) {
  const RedisHealth health = read_info(
      "# Server\r\nredis_version:7.0.15\r\nused_memory:1048576\r\nmaxmemory:2097152\r\nmaxmemory_policy:allkeys-lru\r\n"
      "loading:0\r\nrdb_last_bgsave_status:err\r\nevicted_keys:17\r\nrole:master\r\nconnected_slaves:2\r\n"
      "slave0:ip=127.0.0.1,port=7001,state=online,offset=900,lag=1\r\n"
      "slave1:ip=127.0.0.1,port=7002,state=online,offset=1000,lag=4\r\nmaster_repl_offset:1000\r\n");
  EXPECT_EQ(health.software, "redis");
  EXPECT_EQ(health.version, "7.0.15");
  EXPECT_EQ(health.role, "master");
  EXPECT_EQ(health.eviction, "allkeys-lru");
  EXPECT_EQ(health.memory, 1'048'576u);
  EXPECT_EQ(health.memory_max, 2'097'152u);
  EXPECT_EQ(health.evicted, 17u);
  EXPECT_EQ(health.replicas, 2u);
  EXPECT_EQ(health.behind, 100u);
  EXPECT_EQ(health.lag_seconds, 4u);
  EXPECT_TRUE(health.is_saving_broken);
  EXPECT_FALSE(health.is_loading);
}

TEST(RedisHealth, KnowsValkey) {
  const RedisHealth health = read_info("redis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:8.0.1\r\n");
  EXPECT_EQ(health.software, "valkey");
  EXPECT_EQ(health.version, "8.0.1");
}

TEST(RedisHealth, StaysEmptyOnInvalidText) {
  for (const char* text : {"", ":", "a", "maxmemory:-7\nslave0:offset=x,lag=\nmaster_repl_offset:", "#:\r\n\r\n::"}) {
    const RedisHealth health = read_info(text);
    EXPECT_EQ(health.version, "");
    EXPECT_EQ(health.memory_max, 0u);
    EXPECT_EQ(health.behind, 0u);
  }
}

}  // namespace
}  // namespace weir::base
