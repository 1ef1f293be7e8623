// The list of runtime changes that the nodes of a fleet share in Redis: also if it is too long for one reply, and if
// Redis replaces it by another list meanwhile. src/control/journal_shared_test.cc tests the journals that use it.
#include "fleet/shared_log.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "fleet/redis_key.h"
#include "fleet_node.h"
#include "redis_fixture.h"
#include "resp/reply.h"

namespace weir::test {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

class FleetLog : public RedisTest {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(start());
    first_ = std::make_unique<Node>(url());
    second_ = std::make_unique<Node>(url());
    ASSERT_TRUE(until([&] { return one().since(0) && other().since(0); }));
  }
  fleet::SharedLog& one() { return first_->store->background().log(); }
  fleet::SharedLog& other() { return second_->store->background().log(); }

  std::unique_ptr<Node> first_, second_;
};

// Each has its number at its end, as lines of a journal have their check.
std::string line_of(std::size_t bytes, const std::string& end) { return std::string(bytes - end.size(), 'x') + end; }

// If two nodes append at once, one of them must read the list first.
TEST_F(FleetLog, IsOneForAllNodes) {
  fleet::SharedLog &one = this->one(), &other = this->other();
  EXPECT_EQ(one.since(0)->last, 0u);
  EXPECT_EQ(one.append(0, 1, "a").value(), true);
  EXPECT_EQ(other.append(0, 1, "b").value(), false);
  EXPECT_EQ(other.since(0)->lines, std::vector<std::string>{"a"});
  EXPECT_EQ(other.append(1, 7, "b").value(), true);
  EXPECT_EQ(other.append(7, 8, "c").value(), true);
  EXPECT_TRUE(other.drop({1, 5}));
  const auto lines = one.since(0);
  EXPECT_EQ(lines->last, 8u);
  EXPECT_EQ(lines->lines, (std::vector<std::string>{"b", "c"}));
  EXPECT_EQ(one.since(7)->lines, std::vector<std::string>{"c"});
  EXPECT_EQ(one.since(7)->tail, "b") << "of the line itself";
  EXPECT_EQ(one.since(5)->tail, "") << "there is none";
  const auto append_some = [&](int thread) {
    fleet::SharedLog& log = thread % 2 == 0 ? one : other;
    for (int i = 0; i < 20;) {
      const std::uint64_t last = log.since(8)->last;
      if (!log.append(last, last + 1, std::to_string(thread) + ' ' + std::to_string(i)).value()) continue;
      ++i;
    }
  };
  on_threads(4, append_some);
  EXPECT_EQ(one.since(8)->lines.size(), 80u) << "nobody's line was lost";
  server_->kill();
  EXPECT_FALSE(one.since(0));
  EXPECT_FALSE(one.append(88, 89, "d"));
}

// The journal keeps up to 32 MiB, and more if more changes are in effect.
TEST_F(FleetLog, IsReadBeyondWhatOneReplyHolds) {
  std::vector<std::string> lines;
  for (std::size_t i = 1; i <= 36; ++i) {
    lines.push_back(line_of(i % 4 == 0 ? 2 * kMiB : kMiB, std::to_string(i)));
    ASSERT_EQ(one().append(i - 1, i, lines.back()).value(), true);
  }
  const auto found = other().since(0);
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->last, 36u);
  EXPECT_EQ(found->tail, "");
  EXPECT_TRUE(found->lines == lines);
  const auto newest = other().since(34);
  ASSERT_TRUE(newest);
  EXPECT_EQ(newest->lines.size(), 2u);
  EXPECT_TRUE(newest->tail.ends_with("34"));
  EXPECT_EQ(other().since(99)->lines.size(), 0u);
  EXPECT_EQ(second_->lost, 0) << "no connection was given up";
}

TEST_F(FleetLog, IsReadIfItHasManyLines) {
  RedisClient client(server_->port());
  const std::string key = fleet::own_key("weir:", "changes");
  std::vector<std::vector<std::string>> commands;
  for (int i = 1; i <= 10'500; ++i)
    commands.push_back({"ZADD", key, std::to_string(3 * i), "line " + std::to_string(i)});
  client.call_all(commands);
  const auto found = one().since(3);
  ASSERT_TRUE(found) << found.error().message;
  ASSERT_EQ(found->lines.size(), 10'499u);
  for (std::size_t i = 0; i < found->lines.size(); ++i) ASSERT_EQ(found->lines[i], "line " + std::to_string(i + 2));
  EXPECT_EQ(found->last, 31'500u);
  EXPECT_EQ(found->tail, "line 1");
}

TEST_F(FleetLog, RefusesALineThatCouldNotBeReadAgain) {
  static_assert(fleet::SharedLog::kLineMax < resp::kReplyBytesMax);
  EXPECT_EQ(one().append(0, 1, line_of(fleet::SharedLog::kLineMax, "1")).value(), true);
  const auto refused = one().append(1, 2, line_of(fleet::SharedLog::kLineMax + 1, "2"));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::out_of_range);
  EXPECT_NE(refused.error().message.find("too long"), std::string::npos) << refused.error().message;
  EXPECT_EQ(one().append(1, 2, "2").value(), true);
  const auto found = other().since(0);
  ASSERT_TRUE(found) << found.error().message;
  ASSERT_EQ(found->lines.size(), 2u);
  EXPECT_EQ(found->lines[0].size(), fleet::SharedLog::kLineMax);
}

// A failover may lose the newest lines of the list, and other lines take their place.
TEST_F(FleetLog, IsOneListEvenIfItBecomesAnotherWhileItIsRead) {
  const std::string key = fleet::own_key("weir:", "changes"), spare = fleet::own_key("weir:", "spare");
  RedisClient client(server_->port());
  for (int i = 1; i <= 4; ++i) {
    for (const auto& [name, mark] : {std::pair{key, 'a'}, {spare, 'b'}}) {
      const std::string end = "behind the x's: " + (std::to_string(i) + mark);
      client.call({"ZADD", name, std::to_string(i), line_of(kMiB - 100, end)});
    }
  }
  const std::jthread swapping([&](const std::stop_token& stop) {
    const std::string swap =
        "redis.call('RENAME', KEYS[1], KEYS[3]) redis.call('RENAME', KEYS[2], KEYS[1]) "
        "redis.call('RENAME', KEYS[3], KEYS[2])";
    while (!stop.stop_requested()) client.call({"EVAL", swap, "3", key, spare, fleet::own_key("weir:", "between")});
  });
  int read = 0;
  for (int i = 0; i < 1'000 && read < 12; ++i) {
    const auto found = one().since(0);
    if (!found) continue;  // it changed during each attempt to read it
    ++read;
    ASSERT_EQ(found->lines.size(), 4u);
    for (const std::string& line : found->lines) EXPECT_EQ(line.back(), found->lines[0].back());
  }
  EXPECT_GE(read, 5);
}

}  // namespace
}  // namespace weir::test
