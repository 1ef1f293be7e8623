// For the operator of the Redis of a fleet: every key expires as soon as it is not needed, a key takes no more memory
// than the table in docs/fleet.md states, and the fleet leaves no key behind.
//
// On a real server of Redis, by its own clock.

#include <gtest/gtest.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "fleet/redis_key.h"
#include "fleet_node.h"
#include "redis_fixture.h"

namespace weir::test {
namespace {

constexpr std::int64_t kBeat = 5'000;  // ms without a heartbeat after which a node is no member any more

class FleetKeys : public RedisTest {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(start());
    client_ = std::make_unique<RedisClient>(server_->port());
    nodes_ = make_nodes(3, url(), with_deadline(Micros{20'000'000}));  // machines that run tests are busy
  }
  Limiter& limiter(int i) { return *nodes_[static_cast<std::size_t>(i) % nodes_.size()]->limiter; }

  std::vector<std::string> keys(const std::string& pattern = "*") {
    std::vector<std::string> out;
    for (const resp::Value& item : client_->call({"KEYS", pattern}).items) out.push_back(item.text);
    return out;
  }
  std::int64_t number(std::initializer_list<std::string> words) { return client_->call(words).integer; }
  static std::string name_of(const std::string& key, const Limit& limit) {
    return fleet::redis_name("weir:", {.key = key, .limit = &limit});
  }

  std::unique_ptr<RedisClient> client_;
  Nodes nodes_;
};

// Redis keeps a key at least until its limit has recovered, and at most about twice as long.
TEST_F(FleetKeys, ExpireAsSoonAsTheyAreNotNeeded) {
  const auto server_us = [&] {
    const resp::Value time = client_->call({"TIME"});
    return std::stoll(time.items.at(0).text) * 1'000'000 + std::stoll(time.items.at(1).text);
  };
  for (const Algorithm algorithm : kChecked) {
    for (const char* quota : {"10/minute", "10/hour", "100/day"}) {
      const Limit limit = limit_of(quota, algorithm);
      const std::string key = "a " + std::string(quota);
      std::int64_t before = 0, between = 0, after = 0, ttl_us = 0;
      Decision last;
      do {  // within one window: at its end the key is gone
        limiter(0).reset(key);
        before = server_us();
        for (int i = 0; i < 5; ++i) ASSERT_EQ(limiter(i).check(key, limit)->decided_by, DecidedBy::strict);
        last = limiter(0).peek(key, limit).value();
        between = server_us();
        ttl_us = number({"PTTL", name_of(key, limit)}) * 1'000;
        after = server_us();
      } while (before / limit.period_us != after / limit.period_us);
      // A key may stay for as long again, an hour at most.
      const std::int64_t reset = last.reset_after.count();
      const std::int64_t slack = reset > 1'000'000 ? std::min<std::int64_t>(reset, 3'600'000'000) + 2'003'000 : 2'000;
      // Redis decided at some moment between these readings, and a TTL has milliseconds.
      EXPECT_GE(after + ttl_us + 1'000, before + last.reset_after.count())
          << weir::to_string(algorithm) << " " << quota;
      EXPECT_LE(between + ttl_us, after + last.reset_after.count() + slack)
          << weir::to_string(algorithm) << " " << quota;
    }
  }
  const Limit permits = compile("5 concurrent for 90s").value(), limit = limit_of("10/hour", Algorithm::fixed_window);
  const Charge charge{"r", &limit};
  ASSERT_TRUE(limiter(0).acquire("c", "id", permits)->allowed);
  ASSERT_TRUE(limiter(1).check_once("request", {&charge, 1}, Micros{70'000'000})->allowed);
  ASSERT_TRUE(limiter(2).reserve({&charge, 1}, {.id = "reservation", .lasts = Micros{80'000'000}}));
  EXPECT_LE(number({"PTTL", name_of("c", permits)}), 91'001);
  const auto tickets = keys("weir:2s*");
  EXPECT_EQ(tickets.size(), 2u);
  for (const std::string& key : tickets) EXPECT_LE(number({"PTTL", key}), 80'000) << key;
  for (const std::string& key : keys()) {
    EXPECT_NE(number({"PTTL", key}), -1) << key << " would stay";
    EXPECT_EQ(key.rfind("weir:2", 0), 0u) << key;
  }
  const auto own = keys("weir:2!*");
  ASSERT_EQ(own.size(), 1u) << "the heartbeats";
  EXPECT_LE(number({"PTTL", own[0]}), kBeat);
}

TEST_F(FleetKeys, LeaveNothingBehind) {
  on_threads(3, [&](int node) {
    for (int i = 0; i < 60; ++i) {
      const std::string key = "key " + std::to_string(i % 20), one = key + " one", two = key + " two",
                        id = std::to_string(node) + "-" + std::to_string(i);
      for (const Algorithm algorithm : kChecked) limiter(node).check(key, limit_of("5/s", algorithm));
      const Limit limit = limit_of("50/s", Algorithm::token_bucket), permits = compile("4 concurrent for 1s").value();
      const Charge charges[] = {{one, &limit}, {two, &limit}};
      limiter(node).check_once(id, charges, Micros{300'000});
      limiter(node).reserve(charges, {.id = "r" + id, .lasts = Micros{300'000}});
      if (i % 2 == 0) limiter(node + 1).commit("r" + id, charges);
      limiter(node).acquire(key, id, permits);
      if (i % 3 == 0) limiter(node + 1).release(key, id);
      if (i % 5 == 0) limiter(node).reset(key);
    }
  });
  nodes_.clear();
  EXPECT_TRUE(until([&] { return number({"DBSIZE"}) == 0; })) << keys().size() << " keys are left";
  const std::string stats = client_->call({"INFO", "stats"}).text, expired = "expired_keys:";
  EXPECT_GT(std::stoll(stats.substr(stats.find(expired) + expired.size())), 100) << "there were some";
}

// The rows of the page's table: the text of the first column, and the bytes in the second.
std::map<std::string, std::int64_t> sizes_of_page() {
  std::ifstream page(WEIR_SOURCE_DIR "/docs/fleet.md");
  std::map<std::string, std::int64_t> sizes;
  for (std::string line; std::getline(page, line);) {
    const std::size_t middle = line.find(" | ");
    std::int64_t bytes = 0;
    if (line.rfind("| ", 0) != 0 || middle == line.npos) continue;
    const std::string cell = line.substr(middle + 3);
    if (std::from_chars(cell.data(), cell.data() + cell.size(), bytes).ec == std::errc{}) {
      sizes[line.substr(2, middle - 2)] = bytes;
    }
  }
  return sizes;
}

TEST_F(FleetKeys, TakeTheMemoryThatThePageStates) {
  const auto stated = sizes_of_page();
  const auto compare = [&](const std::string& what, const std::string& name) {
    const std::int64_t bytes = number({"MEMORY", "USAGE", name, "SAMPLES", "0"});
    ASSERT_EQ(stated.count(what), 1u) << what << ", which takes " << bytes << " bytes";
    EXPECT_LE(bytes, stated.at(what)) << what;
    if (redis_major_version() == 7) {
      EXPECT_GE(bytes * 4, stated.at(what) * 3) << what << ": the page states far more";
    }
  };
  const std::string key = "user:1234567";
  for (const Algorithm algorithm : kChecked) {
    const Limit limit = limit_of("100000/year", algorithm);
    ASSERT_TRUE(limiter(0).check(key, limit, 3)->allowed);
    if (algorithm != Algorithm::sliding_log) {
      compare("`" + std::string(weir::to_string(algorithm)) + "`", name_of(key, limit));
      continue;
    }
    compare("`sliding_log`, of one event", name_of(key, limit));
    for (int i = 1; i < 1'000; ++i) ASSERT_TRUE(limiter(i).check(key, limit)->allowed);
    compare("`sliding_log`, of a thousand", name_of(key, limit));
    EXPECT_EQ(client_->call({"TYPE", name_of(key, limit)}).text, "string");
    EXPECT_LE(number({"STRLEN", name_of(key, limit)}), 50 + 16 * 1'000) << "packed, 16 bytes an event";
  }
  const Limit permits = compile("100 concurrent for 1h").value(), limit = limit_of("9/year", Algorithm::fixed_window);
  const Charge charge{key, &limit};
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(limiter(i).acquire(key, "0123456789abcdef" + std::to_string(1'000 + i), permits)->allowed);
    if (i == 0) compare("`concurrency`, of one permit", name_of(key, permits));
  }
  compare("`concurrency`, of a hundred", name_of(key, permits));
  ASSERT_TRUE(limiter(0).check_once("0123456789abcdef", {&charge, 1})->allowed);
  compare("the id of a request", keys("weir:2s*").at(0));
}

}  // namespace
}  // namespace weir::test
