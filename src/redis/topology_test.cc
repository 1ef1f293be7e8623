// Tests maps, redirections and sentinel replies as real servers write them, and malformed ones.
#include "redis/topology.h"

#include <gtest/gtest.h>

#include "redis/slot.h"

namespace weir::redis {
namespace {

const base::Endpoint kAsked{.host = "10.0.0.9", .port = 7000};

resp::Value parsed(std::string text) {
  std::string wire;  // a blank stands for the end of a line
  for (const char c : text) c == ' ' ? wire += "\r\n" : wire += c;
  const resp::ParsedReply reply = resp::ReplyParser().parse(wire);
  EXPECT_EQ(reply.status, resp::Status::done) << text;
  return reply.value;
}

std::string node(const std::string& fields) { return "%" + fields; }

TEST(RedisTopology, ReadsShardsOfRedisSeven) {
  const std::string master = node("4 +port :7001 +ip +10.0.0.1 +role +master +health +online ");
  const std::string replica = node("4 +port :7002 +ip +10.0.0.2 +role +replica +health +online ");
  const auto map =
      read_shards(parsed("*1 %2 +slots *4 :0 :99 :200 :16383 +nodes *2 " + replica + master), kAsked, false);
  ASSERT_TRUE(map);
  ASSERT_EQ(map->shards.size(), 1u);
  EXPECT_EQ(map->shards[0].master, (base::Endpoint{.host = "10.0.0.1", .port = 7001}));
  EXPECT_EQ(map->shards[0].replicas, (std::vector<base::Endpoint>{{.host = "10.0.0.2", .port = 7002}}));
  EXPECT_EQ(map->shards[0].slots, (std::vector<SlotRange>{{0, 99}, {200, 16'383}}));
}

TEST(RedisTopology, PrefersTheEndpointNameAndTheTlsPort) {
  const std::string both = node(
      "6 +port :7001 +tls-port :8001 +ip +10.0.0.1 +endpoint +redis-1.example +role +master "
      "+health +online ");
  const std::string shard = "*1 %2 +slots *2 :0 :1 +nodes *1 ";
  EXPECT_EQ(read_shards(parsed(shard + both), kAsked, false)->shards[0].master,
            (base::Endpoint{.host = "redis-1.example", .port = 7001}));
  EXPECT_EQ(read_shards(parsed(shard + both), kAsked, true)->shards[0].master,
            (base::Endpoint{.host = "redis-1.example", .port = 8001}));
  const std::string plain = node("4 +port :7001 +endpoint +? +ip +10.0.0.1 +role +master ");
  EXPECT_EQ(read_shards(parsed(shard + plain), kAsked, false)->shards[0].master.host, "10.0.0.1");
  EXPECT_FALSE(read_shards(parsed(shard + plain), kAsked, true));
  const std::string nameless = node("3 +port :7001 +ip $0  +role +master ");
  EXPECT_EQ(read_shards(parsed(shard + nameless), kAsked, false)->shards[0].master.host, "10.0.0.9");
}

TEST(RedisTopology, PrefersTheOnlineMasterOfTwo) {
  const std::string dead = node("4 +port :1 +ip +a +role +master +health +fail ");
  const std::string well = node("4 +port :2 +ip +b +role +master +health +online ");
  const std::string shard = "*1 %2 +slots *2 :0 :1 +nodes *2 ";
  EXPECT_EQ(read_shards(parsed(shard + dead + well), kAsked, false)->shards[0].master.host, "b");
  EXPECT_EQ(read_shards(parsed(shard + well + dead), kAsked, false)->shards[0].master.host, "b");
}

TEST(RedisTopology, ReadsSlotsOfRedisSix) {
  const auto map = read_slots(parsed("*3 *4 :0 :5460 *3 +10.0.0.1 :7001 +id *3 +10.0.0.2 :7002 +id "
                                     "*3 :5461 :10922 *3 $0  :7003 +id *3 :10923 :16383 *2 +10.0.0.1 :7001 "),
                              kAsked);
  ASSERT_TRUE(map);
  ASSERT_EQ(map->shards.size(), 2u);
  EXPECT_EQ(map->shards[0].slots, (std::vector<SlotRange>{{0, 5'460}, {10'923, 16'383}}));
  EXPECT_EQ(map->shards[1].master, (base::Endpoint{.host = "10.0.0.9", .port = 7003}));
}

TEST(RedisTopology, RefusesMalformedMaps) {
  for (const char* text : {"*0 ", "+OK ", ":1 ", "*1 :1 ", "*1 *3 :0 :16384 *2 +a :1 ", "*1 *3 :5 :4 *2 +a :1 ",
                           "*1 *3 :-1 :4 *2 +a :1 ", "*1 *3 :0 :4 *2 +a :0 ", "*1 *3 :0 :4 *2 +a :65536 ",
                           "*1 *3 :0 :4 *1 +a ", "*1 *3 :0 :4 *2 +? :1 ", "*1 *2 :0 :4 "}) {
    EXPECT_FALSE(read_slots(parsed(text), kAsked)) << text;
    EXPECT_FALSE(read_shards(parsed(text), kAsked, false)) << text;
  }
}

TEST(RedisTopology, ReadsRedirections) {
  const auto moved = read_redirection("MOVED 3999 127.0.0.1:6381", kAsked);
  ASSERT_TRUE(moved);
  EXPECT_FALSE(moved->is_ask);
  EXPECT_EQ(moved->slot, 3'999);
  EXPECT_EQ(moved->to, (base::Endpoint{.host = "127.0.0.1", .port = 6381}));
  EXPECT_TRUE(read_redirection("ASK 0 ::1:6381", kAsked)->is_ask);
  EXPECT_EQ(read_redirection("ASK 0 ::1:6381", kAsked)->to.host, "::1");
  EXPECT_EQ(read_redirection("MOVED 1 :6381", kAsked)->to.host, "10.0.0.9");
  for (const char* text :
       {"ERR x", "MOVED", "MOVED 1", "MOVED x 1.1.1.1:1", "MOVED 16384 a:1", "MOVED -1 a:1", "MOVED 1 a:0",
        "MOVED 1 a:x", "MOVED 1 a", "MOVED 1 ?:1", "MOVED 1 a b:1", "MOVEDON 1 a:1"}) {
    EXPECT_FALSE(read_redirection(text, kAsked)) << text;
  }
}

TEST(RedisTopology, ReadsMessagesOfSentinels) {
  EXPECT_EQ(read_master_address(parsed("*2 +10.0.0.1 +6379 ")), (base::Endpoint{.host = "10.0.0.1", .port = 6379}));
  EXPECT_FALSE(read_master_address(parsed("_ ")));
  EXPECT_FALSE(read_master_address(parsed("*2 +10.0.0.1 +x ")));
  EXPECT_FALSE(read_master_address(parsed("*2 $0  +1 ")));
  EXPECT_EQ(read_switch("main 10.0.0.1 6379 10.0.0.2 6380", "main"),
            (base::Endpoint{.host = "10.0.0.2", .port = 6380}));
  EXPECT_EQ(read_promotion("slave 10.0.0.2:6380 10.0.0.2 6380 @ main 10.0.0.1 6379", "main"),
            (base::Endpoint{.host = "10.0.0.2", .port = 6380}));
  EXPECT_FALSE(read_promotion("slave 10.0.0.2:6380 10.0.0.2 6380 @ other 10.0.0.1 6379", "main"));
  EXPECT_FALSE(read_promotion("master main 10.0.0.2 6380 @ main 10.0.0.1 6379", "main"));
  for (const char* text : {"other 10.0.0.1 6379 10.0.0.2 6380", "main 10.0.0.1 6379 10.0.0.2", "main", "",
                           "main 10.0.0.1 6379 10.0.0.2 6380 more", "main 10.0.0.1 6379  6380"}) {
    EXPECT_FALSE(read_switch(text, "main")) << text;
  }
}

}  // namespace
}  // namespace weir::redis
