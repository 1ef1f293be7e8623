// Tests the client behind real sentinels: finding the master, following it, and running without sentinels.
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>

#include "redis_driver.h"
#include "redis_fleet.h"

namespace weir::redis {
namespace {

class RedisSentinelClient : public ::testing::Test {
 protected:
  void start(const std::string& password = "") {
    const Micros begin = steady_now();
    auto started = test::RedisSentinels::start(password);
    ASSERT_TRUE(started) << started.error().message;
    all = *std::move(started);
    std::printf("sentinels are ready after %lld ms\n", static_cast<long long>((steady_now() - begin).count() / 1'000));
  }
  std::string url() const { return "redis+sentinel://" + all->addresses() + "/main"; }

  // Whether a live sentinel names another master than the first one.
  bool is_told_of_another() const {
    for (const std::size_t i : {1U, 2U}) {
      const resp::Value told =
          test::call_redis(all->sentinel(i).port(), {"SENTINEL", "GET-MASTER-ADDR-BY-NAME", "main"});
      if (told.items.size() == 2 && told.items[1].text != std::to_string(all->master().port())) return true;
    }
    return false;
  }

  std::unique_ptr<test::RedisSentinels> all;
};

TEST_F(RedisSentinelClient, FindsTheMasterAndFollowsIt) {
  start();
  all->expect_failover();
  all->sentinel(0).pause();                             // the first sentinel to be asked does not reply
  Driver driver(url() + "/1", {.silence = 30'000_ms});  // long, so that only a sentinel's message can help
  driver.client->add_script("return 1");
  EXPECT_EQ(driver.ask({"SET", "a", "1"}).text, "OK");
  EXPECT_EQ(driver.client->masters()[0].address, all->master().address());
  EXPECT_EQ(driver.ask({"WAIT", "2", "1000"}).value.integer, 2);

  all->sentinel(0).resume();  // all sentinels are needed, or votes may be split
  const Micros begin = steady_now();
  all->master().pause();  // no connection closes; only a sentinel's message helps
  std::size_t faults = 0;
  Micros told_at{0};
  while (driver.ask({"SET", "a", "2"}, {.deadline = steady_now() + 15_ms}).fault) {
    ++faults;
    driver.run_for(5_ms);
    if (told_at == Micros{0} && is_told_of_another()) told_at = steady_now();
    ASSERT_LT(steady_now() - begin, 120'000_ms);
  }
  std::printf("back after %lld ms, %zu faults\n", static_cast<long long>((steady_now() - begin).count() / 1'000),
              faults);
  EXPECT_GT(faults, 0u);
  const Micros after = told_at == Micros{0} ? Micros{0} : steady_now() - told_at;
  std::printf("%lld ms after a sentinel knew of the new master\n", static_cast<long long>(after.count() / 1'000));
  EXPECT_NE(driver.client->masters()[0].address, all->master().address());
  EXPECT_EQ(driver.ask({"0"}, {.script = 0}).value.integer, 1);
  bool has_moved = false;
  for (const Event& event : driver.events) has_moved = has_moved || event.kind == Event::Kind::moved;
  EXPECT_TRUE(has_moved);
}

TEST_F(RedisSentinelClient, LogsInToSentinelsAndReportsWhatIsWrong) {
  start("guard");
  const std::string file = all->master().folder() + "/password";
  std::ofstream(file) << "guard\n";
  Driver driver(url() + "?sentinel_password_file=" + file);
  EXPECT_EQ(driver.ask({"PING"}).text, "PONG");
  Driver stranger(url());
  const Heard refused = stranger.ask({"PING"}, {.deadline = steady_now() + 300_ms});
  EXPECT_TRUE(refused.fault);
  Driver other("redis+sentinel://" + all->addresses() + "/nobody?sentinel_password_file=" + file);
  ASSERT_TRUE(other.wait([&] {
    const Heard unknown = other.ask({"PING"}, {.deadline = steady_now() + Micros{1'000}});
    return unknown.text.find("unknown master name nobody") != std::string::npos;
  }));

  // A server that is not a master is not used as one, whatever sentinels say.
  test::call_redis(all->master().port(), {"REPLICAOF", "127.0.0.1", std::to_string(all->replica(0).port())});
  Driver early(url() + "?sentinel_password_file=" + file);
  ASSERT_TRUE(early.wait(
      [&] { return early.ask({"PING"}, {.deadline = steady_now() + Micros{1'000}}).fault == FaultKind::readonly; }));
  test::call_redis(all->master().port(), {"REPLICAOF", "NO", "ONE"});
  EXPECT_EQ(early.ask({"PING"}).text, "PONG");

  // Sentinels are needed only to find the master.
  for (std::size_t i = 0; i < 3; ++i) all->sentinel(i).kill();
  driver.run_for(300_ms);
  EXPECT_EQ(driver.ask({"PING"}).text, "PONG");
}

}  // namespace
}  // namespace weir::redis
