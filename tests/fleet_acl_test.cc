// The Redis user of docs/fleet.md has the rights that a fleet needs, and no others: real servers of Redis deny it
// nothing, and deny it something as soon as it lacks any of these rights.
//
// ACL LOG of Redis lists what was denied. The test reads the user from the page, so the page cannot be wrong.

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "fleet/fleet_store.h"
#include "fleet/redis_key.h"
#include "redis_fixture.h"
#include "store_fixture.h"
#include "until.h"
#include "weir/limiter.h"

namespace weir::test {
namespace {

using Words = std::vector<std::string>;

// The words of the page's lines that begin with `ACL SETUSER weir`. The first makes the user, the others add rights.
std::vector<Words> lines_of_page() {
  std::ifstream page(WEIR_SOURCE_DIR "/docs/fleet.md");
  std::vector<Words> lines;
  for (std::string line; std::getline(page, line);) {
    if (line.rfind("ACL SETUSER weir ", 0) != 0) continue;
    std::istringstream text(line.substr(0, line.find("  #")));
    Words& words = lines.emplace_back();
    for (std::string word; text >> word;) words.push_back(word);
  }
  return lines;
}

bool is_permission(const std::string& word) { return word[0] == '+' || word[0] == '~' || word[0] == '&'; }

// The line that makes the user, and one that adds to it if it has this word.
Words user_with(const std::string& addition = "") {
  Words user;
  for (const Words& line : lines_of_page()) {
    if (user.empty()) {
      user = line;
    } else if (!addition.empty() && std::ranges::find(line, addition) != line.end()) {
      user.insert(user.end(), line.begin() + 3, line.end());
    }
  }
  return user;
}

Words without(const Words& user, const std::string& permission) {
  Words less = user;
  std::erase(less, permission);
  return less;
}

struct Node {
  // With a long deadline, it also waits that long for a silent server. But then it sends no PING in time.
  Node(const std::string& url, Micros beat, std::optional<Micros> long_deadline = {}) {
    fleet::FleetStoreOptions options{.target = base::redis::parse_url(url).value()};
    options.pipeline.deadline = long_deadline.value_or(Micros{2'000'000});
    if (long_deadline) options.pipeline.client.silence = *long_deadline;
    options.pipeline.client.subscribe_gap = Micros{50'000};
    options.membership.beat = beat;
    options.on_invalidation_refused = [this](std::string_view why) {
      const std::lock_guard lock(mutex);
      told.emplace_back(why);
    };
    options.membership.on_refused = [this](std::string_view why) {
      const std::lock_guard lock(mutex);
      unheard.emplace_back(why);
    };
    store = std::make_shared<fleet::FleetStore>(options);
    limiter = std::make_unique<Limiter>(LimiterOptions{.keys = 1'000, .shared = store});
  }
  std::vector<std::string> deaf() {
    const std::lock_guard lock(mutex);
    return told;
  }

  std::size_t times_unheard() {
    const std::lock_guard lock(mutex);
    return unheard.size();
  }

  std::mutex mutex;
  std::vector<std::string> told, unheard;
  std::shared_ptr<fleet::FleetStore> store;  // is destroyed before what it writes to
  std::unique_ptr<Limiter> limiter;
};

class FleetUser : public RedisTest {
 protected:
  void SetUp() override {}  // a test of a page, a cluster or sentinels needs no server

  // The servers of the test: one, and the user with these permissions on it.
  void start_with(const Words& user) {
    ASSERT_NO_FATAL_FAILURE(start());
    ports_ = {server_->port()};
    make_user(user);
  }
  std::string user_url() const { return "redis://weir:SECRET@" + server_->address(); }
  // How many calls the servers have denied.
  std::size_t denied() const {
    std::size_t count = 0;
    for (const std::uint16_t port : ports_) count += call_redis(port, {"ACL", "LOG"}).items.size();
    return count;
  }
  std::string first_denied() const {
    for (const std::uint16_t port : ports_) {
      const resp::Value log = call_redis(port, {"ACL", "LOG"});
      std::string text;
      for (std::size_t i = 0; !log.items.empty() && i < log.items[0].items.size(); ++i) {
        text += log.items[0].items[i].text + " ";
      }
      if (!text.empty()) return text;
    }
    return "nothing";
  }
  std::int64_t calls_of(const std::string& command) const {
    std::int64_t calls = 0;
    for (const std::uint16_t port : ports_) {
      const std::string stats = call_redis(port, {"INFO", "commandstats"}).text;
      const std::size_t at = stats.find("cmdstat_" + command + ":calls=");
      if (at != stats.npos) calls += std::stoll(stats.substr(stats.find('=', at) + 1));
    }
    return calls;
  }
  void make_user(const Words& user) {
    for (const std::uint16_t port : ports_) {
      call_redis(port, {"ACL", "DELUSER", "weir"});
      RedisClient client(port);
      const resp::Value made = client.call(user);
      ASSERT_EQ(made.text, "OK");
      client.call({"ACL", "LOG", "RESET"});
    }
  }

  // Makes every call of a limiter, on two nodes by turns, whether Redis is available or not.
  static void ask_everything(Limiter& one, Limiter& other) {
    for (const Algorithm algorithm : kChecked) {
      const Limit limit = limit_of("10/year", algorithm);
      const std::string name(weir::to_string(algorithm)), too = name + " too", once = name + " once",
                                                          later = name + " later";
      const Charge charges[] = {{name, &limit, 2}, {too, &limit, 1}};
      const Charge single[] = {{once, &limit, 1}}, reserved[] = {{later, &limit, 3}};
      one.check(name, limit);
      other.check_all(charges);
      one.preview(name, limit);
      other.check_once(name + " id", single);
      one.check_once(name + " id", single);
      one.reserve(reserved, {.id = name});
      other.commit(name, single);
      other.commit(name, reserved);
      one.overdraw(charges);
      other.refund(name, limit, 1);
      one.reset(name);
    }
    const Limit permits = compile("2 concurrent").value();
    one.acquire("held", "a", permits);
    other.acquire("held", "b", permits);
    other.release("held", "a");
    one.release("held", "b");
  }
  // What else the servers of a fleet do: they share runtime changes, and read the state of Redis.
  static void manage(Node& node) {
    fleet::SharedLog& log = node.store->background().log();
    if (const auto lines = log.since(0)) {
      log.append(lines->last, lines->last + 1, "line");
      log.drop({lines->last + 1});
    }
    node.store->inspect();
  }
  static bool is_strict(Node& node) {
    const Limit limit = limit_of("1000000/year", Algorithm::token_bucket);
    bool is_so = true;
    for (int i = 0; i < 8 && is_so; ++i) {  // of a cluster, on all of its servers
      const auto decision = node.limiter->check("warm " + std::to_string(i), limit);
      is_so = decision && decision->decided_by == DecidedBy::strict;
    }
    return is_so;
  }

  std::vector<std::uint16_t> ports_;
};

TEST_F(FleetUser, IsDescribedInTheDocs) {
  const auto lines = lines_of_page();
  ASSERT_EQ(lines.size(), 4u) << "the user; and what a database, a cluster and sentinels add";
  EXPECT_EQ(lines[0][3], "on");
  EXPECT_NE(std::ranges::find(lines[0], "-@all"), lines[0].end());
  EXPECT_GT(user_with("+select").size(), lines[0].size());
}

TEST_F(FleetUser, MayDoAllThatAFleetDoesAndNothingElse) {
  const Words user = user_with("+select");
  ASSERT_NO_FATAL_FAILURE(start_with(user));
  const std::string url = user_url() + "/1";
  {
    Node one(url, Micros{20'000}), other(url, Micros{20'000});
    ASSERT_TRUE(until([&] { return is_strict(one) && is_strict(other); })) << first_denied();
    ASSERT_TRUE(until([&] { return one.store->rank().nodes == 2 && other.store->rank().nodes == 2; }));
    ask_everything(*one.limiter, *other.limiter);
    manage(one);
    // A reset invalidates the cached denial of the other node.
    const Limit limit = limit_of("1/year", Algorithm::fixed_window);
    one.limiter->check("news", limit);
    ASSERT_TRUE(until([&] { return other.limiter->check("news", limit)->decided_by == DecidedBy::cached; }));
    one.limiter->reset("news");
    EXPECT_TRUE(until([&] { return other.limiter->check("news", limit)->decided_by == DecidedBy::strict; }));
    // Redis closes the connections: the nodes connect again, and probes pass.
    call_redis(ports_[0], {"CLIENT", "KILL", "USER", "weir"});
    EXPECT_TRUE(until([&] { return is_strict(one) && is_strict(other); })) << first_denied();
    // The server loses the script.
    call_redis(ports_[0], {"SCRIPT", "FLUSH"});
    EXPECT_TRUE(until([&] { return is_strict(one) && is_strict(other); })) << first_denied();
    const std::int64_t beats = calls_of("hgetall");
    EXPECT_TRUE(until([&] { return calls_of("hgetall") > beats + 10; })) << "both send heartbeats";
    EXPECT_TRUE(until([&] { return one.store->background().membership().nodes().size() == 2; }));
  }
  // A node that ends while it connects cannot leave the fleet. Then another node tries.
  EXPECT_TRUE(until([&] {
    if (calls_of("hdel") > 0) return true;
    Node another(url, Micros{20'000});
    until([&] { return is_strict(another); });
    return false;
  })) << "no node left the fleet";
  EXPECT_EQ(denied(), 0u) << first_denied();

  for (const std::string& permission : user) {
    if (!is_permission(permission)) continue;
    ASSERT_NO_FATAL_FAILURE(make_user(without(user, permission)));
    const auto breaks = [&] { return denied() > 0; };
    {
      Node one(url, Micros{20'000}), other(url, Micros{20'000});
      for (int i = 0; i < 200 && !breaks(); ++i) {
        ask_everything(*one.limiter, *other.limiter);
        manage(one);
        if (is_strict(one) && is_strict(other)) break;  // what is still missing shows at the end
      }
    }
    EXPECT_TRUE(until(breaks, 5'000)) << "it can do without " << permission;
  }
}

constexpr Micros kLong{10'000'000};  // a busy machine stalls for seconds, and then a node decides by its share

// Two nodes that receive no invalidation: neither caches a denial.
void expect_no_denial_is_remembered(Node& one, Node& other) {
  const Limit limit = limit_of("1/year", Algorithm::fixed_window);
  one.limiter->check("deaf", limit);
  for (int i = 0; i < 50; ++i) {
    const auto denied = other.limiter->check("deaf", limit);
    ASSERT_TRUE(denied && !denied->allowed);
    ASSERT_EQ(denied->decided_by, DecidedBy::strict) << i;
  }
  ASSERT_TRUE(one.limiter->reset("deaf"));
  const auto again = other.limiter->check("deaf", limit);
  EXPECT_TRUE(again && again->allowed) << "the other one knows nothing of the reset";
  EXPECT_EQ(other.store->counts().cached.get(), 0u);
}

TEST_F(FleetUser, CachesNoDenialIfTheChannelIsForbidden) {
  const Words user = user_with();
  ASSERT_NO_FATAL_FAILURE(start_with(user));
  const Limit limit = limit_of("1/year", Algorithm::fixed_window);
  for (const std::string permission : {"&weir:*", "+subscribe", "+publish"}) {
    SCOPED_TRACE(permission);
    ASSERT_NO_FATAL_FAILURE(make_user(without(user, permission)));
    Node one(user_url(), Micros{20'000}, kLong), other(user_url(), Micros{20'000}, kLong);
    ASSERT_TRUE(until([&] { return is_strict(one) && is_strict(other); })) << first_denied();
    ASSERT_TRUE(until([&] { return !one.deaf().empty() && !other.deaf().empty(); })) << "nobody says so";
    const std::string command = permission == "+publish" ? "PUBLISH" : "SUBSCRIBE";
    EXPECT_NE(one.deaf()[0].find(command), std::string::npos) << one.deaf()[0];
    EXPECT_NE(one.deaf()[0].find("NOPERM"), std::string::npos) << one.deaf()[0];
    EXPECT_EQ(one.store->background().invalidation().refusal(), one.deaf()[0]);
    ASSERT_NO_FATAL_FAILURE(expect_no_denial_is_remembered(one, other));
    EXPECT_EQ(one.deaf().size(), 1u) << "once is enough";
    // The operator grants the right while the nodes run.
    ASSERT_EQ(call_redis(ports_[0], {"ACL", "SETUSER", "weir", permission}).text, "OK");
    one.limiter->check("heard", limit);
    ASSERT_TRUE(until([&] { return other.limiter->check("heard", limit)->decided_by == DecidedBy::cached; }));
    EXPECT_TRUE(until([&] { return other.deaf().back().empty(); }));
    one.limiter->reset("heard");
    EXPECT_TRUE(until([&] { return other.limiter->check("heard", limit)->decided_by == DecidedBy::strict; }));
    call_redis(ports_[0], {"FLUSHALL"});
  }
}

TEST_F(FleetUser, ReportsOnceThatTheHeartbeatIsForbidden) {
  ASSERT_NO_FATAL_FAILURE(start_with(user_with()));
  Node one(user_url(), Micros{20'000}), other(user_url(), Micros{20'000});
  ASSERT_TRUE(until([&] { return one.store->background().membership().nodes().size() == 2; }));
  ASSERT_EQ(one.times_unheard(), 0u);
  ASSERT_EQ(call_redis(ports_[0], {"ACL", "SETUSER", "weir", "-hset"}).text, "OK");
  const fleet::Membership& membership = one.store->background().membership();
  ASSERT_TRUE(until([&] { return one.times_unheard() == 1; }));
  EXPECT_NE(membership.refusal(), "");
  // Membership reports how old its data of the other nodes is.
  ASSERT_TRUE(until([&] {
    return std::ranges::all_of(membership.nodes(),
                               [](const fleet::FleetNode& node) { return node.age > Micros{300'000}; });
  }));
  EXPECT_GT(membership.heard(), Micros{280'000});
  EXPECT_EQ(one.times_unheard(), 1u) << "once is enough";
  ASSERT_EQ(call_redis(ports_[0], {"ACL", "SETUSER", "weir", "+hset"}).text, "OK");
  ASSERT_TRUE(until([&] { return one.times_unheard() == 2; }));
  EXPECT_EQ(membership.refusal(), "");
  EXPECT_TRUE(until([&] { return membership.nodes().size() == 2 && membership.heard() < Micros{100'000}; }));
}

TEST_F(FleetUser, CachesNoDenialIfMessagesCannotArrive) {
  ASSERT_NO_FATAL_FAILURE(start({.settings = {"--rename-command", "HELLO", ""}}));
  Node one(url(), Micros{20'000}, kLong), other(url(), Micros{20'000}, kLong);
  ASSERT_TRUE(until([&] { return is_strict(one) && is_strict(other); }));
  ASSERT_TRUE(until([&] { return !one.deaf().empty() && !other.deaf().empty(); }));
  EXPECT_NE(one.deaf()[0].find("RESP3"), std::string::npos) << one.deaf()[0];
  expect_no_denial_is_remembered(one, other);
}

TEST_F(FleetUser, MayDoAllThatAFleetDoesInAClusterAndNothingElse) {
  auto cluster = RedisCluster::start();
  ASSERT_TRUE(cluster) << cluster.error().message;
  for (std::size_t i = 0; i < 3; ++i) ports_.push_back((*cluster)->master(i).port());
  for (std::size_t i = 0; i < 3; ++i) ports_.push_back((*cluster)->replica(i).port());
  std::string addresses = (*cluster)->addresses();
  const std::string url = "redis+cluster://weir:SECRET@" + addresses;
  const bool has_shards = redis_major_version() >= 7;
  const Words user = user_with("+asking");
  ASSERT_NE(std::ranges::find(user, "+asking"), user.end());

  // A key whose slot is on its way from one server to another.
  const Limit limit = limit_of("10/year", Algorithm::fixed_window);
  const std::string slot =
      std::to_string(redis::slot_of(fleet::redis_name("weir:", {.key = "moving", .limit = &limit})));
  const std::size_t from = static_cast<std::size_t>(std::stoi(slot)) * 3 / 16'384, to = (from + 1) % 3;
  const auto id_of = [&](std::size_t i) { return call_redis(ports_[i], {"CLUSTER", "MYID"}).text; };
  ASSERT_EQ(call_redis(ports_[to], {"CLUSTER", "SETSLOT", slot, "IMPORTING", id_of(from)}).text, "OK");
  ASSERT_EQ(call_redis(ports_[from], {"CLUSTER", "SETSLOT", slot, "MIGRATING", id_of(to)}).text, "OK");

  const auto do_all = [&](const std::function<bool()>& is_enough) {
    Node one(url, Micros{60'000'000}), other(url, Micros{60'000'000});
    for (int i = 0; i < 200 && !is_enough(); ++i) {
      ask_everything(*one.limiter, *other.limiter);
      one.limiter->check("moving", limit);
      if (is_strict(one) && is_strict(other) && calls_of("asking") > 0) break;
      std::this_thread::sleep_for(std::chrono::milliseconds{20});
    }
    // A connection that only subscribes sends PING after some seconds.
    until([&] { return is_enough() || calls_of("ping") > 0; }, 10'000);
  };
  for (const std::uint16_t port : ports_) {
    call_redis(port, {"CONFIG", "SET", "repl-ping-replica-period", "3600"});  // a replica would count them as calls
    call_redis(port, {"CONFIG", "RESETSTAT"});
  }
  ASSERT_NO_FATAL_FAILURE(make_user(user));
  do_all([] { return false; });
  EXPECT_EQ(denied(), 0u) << first_denied();
  EXPECT_GT(calls_of("asking"), 0);
  EXPECT_GT(calls_of("ping"), 0);
  for (const std::string permission : {"+asking", "+ping", has_shards ? "+cluster|shards" : "+cluster|slots"}) {
    for (const std::uint16_t port : ports_) call_redis(port, {"CONFIG", "RESETSTAT"});
    ASSERT_NO_FATAL_FAILURE(make_user(without(user, permission)));
    const auto breaks = [&] { return denied() > 0; };
    do_all(breaks);
    EXPECT_TRUE(until(breaks, 5'000)) << "it can do without " << permission;
  }
}

TEST_F(FleetUser, MayDoAllThatAFleetDoesBehindSentinels) {
  auto sentinels = RedisSentinels::start();
  ASSERT_TRUE(sentinels) << sentinels.error().message;
  ports_ = {(*sentinels)->master().port()};
  const Words user = user_with("+role");
  const std::string url = "redis+sentinel://weir:SECRET@" + (*sentinels)->addresses() + "/main";
  ASSERT_NO_FATAL_FAILURE(make_user(user));
  {
    Node node(url, Micros{20'000});
    ASSERT_TRUE(until([&] { return is_strict(node); })) << first_denied();
    EXPECT_EQ(denied(), 0u) << first_denied();
  }
  ASSERT_NO_FATAL_FAILURE(make_user(without(user, "+role")));
  Node node(url, Micros{20'000});
  EXPECT_TRUE(until([&] { return denied() > 0; }));
}

}  // namespace
}  // namespace weir::test
